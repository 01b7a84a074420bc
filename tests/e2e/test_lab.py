"""A lab in a real JupyterLab in Chromium: drag, edit, undo, scrub, reload, restart, a second notebook.

The tests run in order in one notebook. `RLNB_SCREENSHOTS=folder pytest tests/e2e/test_lab.py` leaves pictures.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlnb.design.reward import Term
from rlnb.run.design_file import DesignFile
from tests.browser import NotebookPage, chromium, jupyter_lab, needs_browser, write_notebook
from tests.e2e.lab_page import OPEN, LabPage
from tests.e2e.waiting import until

pytestmark = [pytest.mark.browser, needs_browser]

SCREENSHOTS = os.environ.get("RLNB_SCREENSHOTS")
ROOT = Path(__file__).parents[2]

LAB = """
import rlnb
lab = rlnb.Lab("CartPole-v1", design="pole.yaml", episodes=3, frames=0.5, reward=[
    rlnb.Term("alive", "reward"),
    rlnb.Term("upright", "-abs(theta)", weight=0.5),
    rlnb.Term("centred", "-abs(x)", weight=0.2),
])
lab
""".strip()

BUSY = """
import pathlib, time
while not pathlib.Path("go").exists():
    time.sleep(0.02)
""".strip()

WEIGHT, UPRIGHT, CENTRED = 0, 1, 2


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    with jupyter_lab(folder, env={"PYTHONPATH": str(ROOT)}) as server, chromium() as browser:
        write_notebook(server.root / "a.ipynb", LAB, BUSY)
        write_notebook(server.root / "b.ipynb", LAB)
        yield NotebookPage.open(browser, server, "a.ipynb")


@pytest.fixture(scope="module")
def lab(notebook):
    notebook.run_cell(0)
    notebook.command("notebook:hide-all-cell-code")
    page = LabPage(notebook)
    page.wait()
    return page


@pytest.fixture(autouse=True)
def no_errors(notebook):
    yield
    assert notebook.errors == []


@pytest.fixture
def on_disk(notebook) -> Callable[[], dict[str, Term]]:
    """Returns what reads the terms of the design file by name."""

    def read() -> dict[str, Term]:
        design = DesignFile(notebook.lab.root / "pole.yaml").read()
        return {} if design is None else {one.name: one for one in design.reward.terms}

    return read


def test_a_dragged_weight_moves_the_plots_and_is_saved(notebook, lab, on_disk):
    lab.pictures(SCREENSHOTS, "lab")
    before = {key: lab.pixels(key) for key in ("contributions", "returns", "steps", "ranking")}
    lab.drag(UPRIGHT, 40)
    until(lambda: float(lab.weight(UPRIGHT)) > 0.6, "the exact field to follow", timeout=20)
    for key, pixels in before.items():
        until(lambda key=key, pixels=pixels: lab.pixels(key) != pixels, f"{key} to be drawn anew", timeout=20)
    until(
        lambda: on_disk() and on_disk()["upright"].weight == float(lab.weight(UPRIGHT)), "the weight on disk"
    )
    assert on_disk()["centred"].weight == 0.2
    assert lab.root.locator(".rlnb-lab-head").inner_text().find("saved") > 0


def test_a_slider_works_while_a_cell_is_busy(notebook, lab, on_disk):
    notebook.page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    notebook.command("notebook:run-cell")
    prompt(notebook, "[*]:")
    before = lab.pixels("contributions"), lab.weight(CENTRED)
    lab.drag(CENTRED, 60)
    until(lambda: lab.pixels("contributions") != before[0], "the plot while a cell is busy", timeout=20)
    until(lambda: lab.weight(CENTRED) != before[1], "the exact field", timeout=20)
    until(lambda: on_disk()["centred"].weight == float(lab.weight(CENTRED)), "the weight on disk")
    prompt(notebook, "[*]:")
    (notebook.lab.root / "go").touch()
    prompt(notebook, "[2]:")


def test_an_expression_is_typed_completed_marked_and_taken_back(notebook, lab, on_disk):
    field = lab.expression(UPRIGHT)
    names = notebook.page.locator(".rlnb-names:visible")
    field.click()
    field.press("End")
    field.type(" - 0.1*abs(theta_d")
    assert names.locator("code").first.inner_text() == "theta_dot"
    field.press("Tab")
    field.type(")")
    assert field.input_value() == "-abs(theta) - 0.1*abs(theta_dot)"
    lab.term(UPRIGHT).locator(".rlnb-expression[data-state='ok']").wait_for(timeout=20_000)
    until(
        lambda: on_disk()["upright"].expression == "-abs(theta) - 0.1*abs(theta_dot)",
        "the expression on disk",
    )
    before = lab.pixels("contributions")

    field.type(" + tetha")
    field.press("Escape")
    row = lab.term(UPRIGHT).locator(".rlnb-expression[data-state='error']")
    row.locator(".rlnb-fault", has_text="tetha").wait_for(timeout=20_000)
    assert "theta" in row.locator(".rlnb-expression-error").inner_text()  # did you mean
    assert lab.pixels("contributions") == before
    assert on_disk()["upright"].expression == "-abs(theta) - 0.1*abs(theta_dot)"

    lab.button("Undo").click()
    lab.until(
        "(root, text) => root.querySelectorAll('.rlnb-expression-input')[1].value === text", "-abs(theta)"
    )
    until(lambda: on_disk()["upright"].expression == "-abs(theta)", "the undone expression on disk")
    lab.button("Redo").click()
    lab.until("(root, text) => root.querySelectorAll('.rlnb-expression-input')[1].value === text",
              "-abs(theta) - 0.1*abs(theta_dot)")  # fmt: skip
    until(lambda: "theta_dot" in str(on_disk()["upright"].expression), "what was done again on disk")


def test_an_episode_is_scrubbed(notebook, lab):
    lab.tab("Episodes")
    lab.root.locator(".rlnb-episodes-list").get_by_text(
        "random 2", exact=True
    ).click()  # filled once it is seen
    viewer = lab.root.locator(".rlnb-viewer")
    viewer.locator(".rlnb-viewer-title", has_text="random 2").wait_for(timeout=20_000)
    lab.until("root => root.querySelector('.rlnb-picture img').naturalWidth > 50")
    picture = viewer.locator(".rlnb-picture img")
    assert viewer.locator(".rlnb-now").inner_text().startswith("step 0 /")
    first = picture.get_attribute("src"), viewer.locator(".rlnb-terms").inner_text()
    slider = viewer.get_by_role("slider")
    slider.focus()
    notebook.page.keyboard.press("Shift+ArrowRight")
    assert viewer.locator(".rlnb-now").inner_text().startswith("step 10 /")
    assert viewer.locator(".rlnb-terms").inner_text() != first[1]
    until(lambda: picture.get_attribute("src") != first[0], "another picture", timeout=20)
    assert picture.get_attribute("alt") == "step 10"


def test_an_operation_changes_what_the_agent_sees_and_is_checked(notebook, lab):
    lab.tab("State")
    space = "root => root.querySelector('.rlnb-space').textContent"
    assert "4 dimensions" in lab.root.locator(".rlnb-space").inner_text()
    lab.root.locator(".rlnb-state > * > .widget-dropdown select").first.select_option("Stack the last steps")
    lab.until(f"root => ({space})(root).includes('8 dimensions')")
    lab.tab("Checks")
    assert lab.root.locator(".rlnb-finding").count() > 0


def test_a_reloaded_page_shows_the_same(notebook, lab):
    shown = state(lab)
    notebook.save()  # the page finds its outputs in the file
    notebook.load()
    lab.root.wait_for(timeout=60_000)
    assert lab.tab_in_front == "Checks"
    lab.wait()
    until(lambda: state(lab) == shown, "the same as before", timeout=20)
    lab.tab("Episodes")
    lab.root.locator(".rlnb-viewer-title", has_text="random 2").wait_for(timeout=20_000)
    lab.root.locator(".rlnb-now", has_text="step 10 /").wait_for(timeout=20_000)


def test_a_restarted_kernel_finds_the_design(notebook, lab):
    shown = state(lab)
    notebook.restart_and_run_all()
    lab.root.locator(".rlnb-lab-head", has_text="as on disk").wait_for(timeout=60_000)
    lab.wait()
    assert state(lab) == shown


def test_a_second_notebook_is_told_and_takes_over(notebook, lab, on_disk):
    notebook.command("docmanager:open", {"path": "b.ipynb"})
    shown = "window.jupyterapp.shell.currentWidget?.context"
    notebook.wait_until(f"{shown}?.path === 'b.ipynb'")
    notebook.wait_until(f"{shown}.sessionContext.session?.kernel?.status === 'idle'")
    notebook.run_all()
    lab.wait()
    banner = lab.root.locator(".rlnb-lab-banner")
    banner.filter(has_text="is open in the lab of a.ipynb").wait_for(timeout=20_000)
    if SCREENSHOTS:
        notebook.screenshot(Path(SCREENSHOTS) / "lab-banner.png")
    lab.button("Take over").click()
    banner.wait_for(state="hidden", timeout=20_000)
    lab.drag(CENTRED, -30)
    until(
        lambda: on_disk()["centred"].weight == float(lab.weight(CENTRED)), "the second lab's weight on disk"
    )
    theirs = on_disk()["centred"].weight
    notebook.command("docmanager:open", {"path": "a.ipynb"})
    notebook.wait_until(f"{shown}?.path === 'a.ipynb'")
    lab.tab("Reward")
    lab.drag(WEIGHT, 20)
    banner = lab.root.locator(".rlnb-lab-banner")
    banner.filter(has_text="is open in the lab of b.ipynb").wait_for(timeout=20_000)
    assert on_disk()["centred"].weight == theirs


def test_the_saved_notebook_is_small_and_has_a_still_picture(notebook, lab):
    path = notebook.lab.root / "a.ipynb"
    notebook.page.wait_for_selector(f"{OPEN} .jp-OutputArea img[src^='data:image/png']", state="attached")
    outputs = [one for one in notebook.save()["cells"][0]["outputs"] if "image/png" in one.get("data", {})]
    assert len(outputs) == 1
    assert "widgets" not in json.loads(path.read_text())["metadata"]
    assert path.stat().st_size <= 300_000


def prompt(notebook: NotebookPage, text: str) -> None:
    """Waits until the second cell shows that it runs, or has run."""
    notebook.wait_until(
        f"window.jupyterapp.shell.currentWidget.content.widgets[1].inputArea?.promptNode.textContent === '{text}'"
    )


def state(lab: LabPage) -> dict[str, object]:
    """What a lab shows of its design, as a person reads it."""
    return {
        "weights": [lab.weight(place) for place in (WEIGHT, UPRIGHT, CENTRED)],
        "expressions": [lab.expression(place).input_value() for place in (WEIGHT, UPRIGHT, CENTRED)],
        "operations": lab.root.locator(".rlnb-operation").count(),
        "space": lab.root.locator(".rlnb-space").text_content(),
    }
