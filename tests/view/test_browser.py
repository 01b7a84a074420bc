"""The live view in a real JupyterLab in Chromium, fed by a synthetic run in another process.

`RLNB_SCREENSHOTS=folder pytest tests/view/test_browser.py` leaves pictures to look at.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.browser import NotebookPage, chromium, jupyter_lab, needs_browser, write_notebook

pytestmark = [pytest.mark.browser, needs_browser]

# Set before the autouse fixture clears the variables of rlnb.
SCREENSHOTS = os.environ.get("RLNB_SCREENSHOTS")

ROOT = Path(__file__).parents[2]

GROW = """
import sys
from rlnb.run.layout import RunLayout
from rlnb.testing.synthetic_run import SyntheticRun
run = SyntheticRun(RunLayout(sys.argv[1]), total=200_000)
run.begin()
run.advance(60_000)
run.checkpoint()
run.advance(9_000)
run.begin(resume_at=60_000)
run.advance(2_000)
print("begun", flush=True)
run.grow(seconds=float(sys.argv[2]))
"""

SHOW = """
from rlnb.run.layout import RunLayout
from rlnb.view.display import show
show(RunLayout({folder!r}))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with jupyter_lab(tmp_path_factory.mktemp("lab"), env={"PYTHONPATH": str(ROOT)}) as started:
        yield started


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def growing(tmp_path):
    """A run folder that another process lets grow for about two minutes."""
    folder = tmp_path / "exp-2026-11-30-lander-7f3a"
    process = subprocess.Popen(
        [sys.executable, "-c", GROW, str(folder), "120"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    yield folder
    process.kill()
    process.wait(10)
    process.stdout.close()


@pytest.fixture
def notebook(browser, lab, growing, request):
    """A notebook that shows the run in its first cell and keeps the kernel busy in its second."""
    name = f"{request.node.name}.ipynb"
    write_notebook(
        lab.root / name,
        SHOW.format(folder=str(growing)).strip(),
        "import time; time.sleep(60)",
        "print('third')",
    )
    opened = NotebookPage.open(browser, lab, name)
    yield opened
    assert opened.errors == []
    opened.page.close()


def step(notebook: NotebookPage) -> int:
    text = notebook.page.locator(".rlnb-words span").first.inner_text()
    return int(text.split(" ")[0].replace(",", ""))


def wait_for_more(notebook: NotebookPage, than: int) -> None:
    read = (
        "parseInt(document.querySelector('.rlnb-words span').textContent.split(' ')[0].replaceAll(',', ''))"
    )
    notebook.wait_until(f"{read} > {than}")


def picture(notebook: NotebookPage, name: str) -> None:
    if SCREENSHOTS:
        notebook.screenshot(Path(SCREENSHOTS) / f"{name}.png")


def ink(notebook: NotebookPage) -> list[int]:
    """Returns the number of coloured pixels of each chart: a plot that was drawn has lines in it."""
    return notebook.page.evaluate(
        """() => [...document.querySelectorAll('.rlnb-plot canvas')].map((canvas) => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          let count = 0;
          for (let i = 0; i < data.length; i += 4) {
            const spread = Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]);
            if (data[i + 3] > 100 && spread > 60) count++;
          }
          return count;
        })"""
    )


def test_charts_move_while_another_cell_is_busy_in_both_themes(notebook):
    notebook.run_all()
    notebook.wait_for(".rlnb-job[data-state='running'] .uplot")
    notebook.wait_until("document.querySelectorAll('.jp-CodeCell')[1].innerText.includes('[*]')")
    before = step(notebook)
    wait_for_more(notebook, before)
    notebook.wait_until("document.querySelectorAll('.rlnb-plot canvas').length === 8")
    assert min(ink(notebook)) > 100
    # Nothing is cut: no chart is wider than its cell, none reaches into another.
    boxes = [box.bounding_box() for box in notebook.page.locator(".rlnb-chart").all()]
    for left, right in itertools.pairwise(boxes):
        if left["y"] == right["y"]:
            assert left["x"] + left["width"] <= right["x"]
    plots = [plot.bounding_box() for plot in notebook.page.locator(".rlnb-plot").all()]
    assert len({round(plot["y"]) for plot in plots[:4]}) == 1  # aligned in a row
    picture(notebook, "live-light")
    colour = "getComputedStyle(document.querySelector('.rlnb-job')).getPropertyValue('--rlnb-c0').trim()"
    assert notebook.page.evaluate(colour) == "#1d63d8"
    notebook.theme("JupyterLab Dark")
    assert notebook.page.evaluate(colour) == "#6ea8fe"
    wait_for_more(notebook, step(notebook))
    picture(notebook, "live-dark")
    notebook.theme("JupyterLab Light")
    notebook.command("notebook:interrupt-kernel")


def test_buttons_answers_images_and_the_end(notebook):
    notebook.run_cell(0)
    notebook.wait_for(".rlnb-job[data-state='running'] .uplot")
    page = notebook.page
    labels = page.locator(".rlnb-buttons button")
    assert labels.all_inner_texts() == ["Pause (keeps the machine)", "Suspend (frees it)", "Resume", "Stop"]
    assert page.locator("button[data-verb='resume']").is_disabled()
    assert (
        page.get_by_role("button", name="Pause (keeps the machine): halt at the next safe point").count() == 1
    )
    page.locator("button[data-verb='pause']").click()
    notebook.wait_for(".rlnb-job[data-state='paused']")
    notebook.wait_until(
        "document.querySelector('.rlnb-answer').textContent.startsWith('pause accepted at step')"
    )
    assert page.locator("button[data-verb='pause']").is_disabled()
    assert page.locator("button[data-verb='resume']").is_enabled()
    # The image is in the notebook, but not on the page as long as the widget is.
    notebook.wait_until("document.querySelectorAll('.jp-OutputArea-child img').length === 1")
    assert not page.locator(".jp-OutputArea-child img").is_visible()
    outputs = notebook.save()["cells"][0]["outputs"]
    assert ["image/png" in output["data"] for output in outputs] == [False, True]
    notebook.theme("JupyterLab Dark")
    picture(notebook, "paused-dark")
    notebook.theme("JupyterLab Light")
    page.locator("button[data-verb='resume']").click()
    notebook.wait_for(".rlnb-job[data-state='running']")
    wait_for_more(notebook, step(notebook))
    page.locator("button[data-verb='stop']").click()
    # At the end the image takes the widget's place.
    notebook.wait_until("document.querySelectorAll('.rlnb-job').length === 0")
    notebook.wait_until("document.querySelectorAll('.jp-OutputArea-child img').length === 1")
    image = page.locator(".jp-OutputArea-child img")
    assert image.bounding_box()["width"] == 960
    outputs = notebook.save()["cells"][0]["outputs"]
    assert [sorted(output["data"]) for output in outputs] == [["image/png", "text/plain"], ["text/plain"]]
    assert "Stopped on request." in "".join(outputs[1]["data"]["text/plain"])
    picture(notebook, "ended-light")


def test_it_survives_a_reload_and_a_restarted_kernel(notebook):
    notebook.run_cell(0)
    notebook.wait_for(".rlnb-job[data-state='running'] .uplot")
    notebook.save()
    before = step(notebook)
    notebook.load()
    notebook.wait_for(".rlnb-job[data-state='running'] .uplot")
    wait_for_more(notebook, before)
    assert min(ink(notebook)) > 100
    picture(notebook, "reloaded")
    before = step(notebook)
    notebook.restart()
    notebook.wait_for(".rlnb-adrift")
    assert not notebook.page.locator(".rlnb-buttons").is_visible()  # they would reach nobody
    picture(notebook, "disconnected")
    notebook.restart_and_run_all()
    notebook.wait_until("document.querySelectorAll('.rlnb-job').length === 1")
    notebook.wait_for(".rlnb-job[data-state='running'] .uplot")
    wait_for_more(notebook, before)
    notebook.command("notebook:interrupt-kernel")


def test_readers_without_a_kernel_see_the_last_image(notebook, browser, lab):
    notebook.run_cell(0)
    notebook.wait_for(".rlnb-job[data-state='running'] .uplot")
    notebook.page.locator("button[data-verb='suspend']").click()
    notebook.wait_for(".rlnb-job[data-state='suspended']")
    notebook.wait_until("document.querySelectorAll('.jp-OutputArea-child img').length === 1")
    notebook.save()
    notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
    notebook.load()  # another day: the kernel that knew the widget is gone
    notebook.wait_until("document.body.innerText.includes('model not found')")
    image = notebook.page.locator(".jp-OutputArea-child img")
    image.wait_for()
    assert image.is_visible()
    picture(notebook, "no-kernel")


def test_a_group_is_one_plot(browser, lab, tmp_path):
    source = f"""
        from rlnb.run.layout import RunLayout
        from rlnb.testing.synthetic_run import SyntheticRun
        from rlnb.view.group import GroupMember, show_group
        members = []
        for seed in range(3):
            run = SyntheticRun(RunLayout({str(tmp_path)!r} + f"/exp-{{seed}}"), seed=seed, total=60_000)
            run.begin()
            run.advance(30_000 + 5_000 * seed)
            members.append(GroupMember(run.layout, f"seed={{seed}}"))
        show_group(members, title="sweep")
    """
    write_notebook(lab.root / "group.ipynb", textwrap.dedent(source).strip())
    notebook = NotebookPage.open(browser, lab, "group.ipynb")
    notebook.run_all()
    notebook.wait_for(".rlnb-job .uplot")
    notebook.wait_until("document.querySelector('.rlnb-state').textContent === '3 running'")
    assert len(ink(notebook)) == 1
    assert ink(notebook)[0] > 1000
    assert notebook.page.locator(".rlnb-buttons button").count() == 0
    picture(notebook, "group-light")
    assert notebook.errors == []
    notebook.page.close()
