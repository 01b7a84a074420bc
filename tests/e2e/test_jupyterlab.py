"""The quickstart notebook in a real JupyterLab in Chromium, from Run All to another day.

`RLNB_SCREENSHOTS=folder pytest tests/e2e/test_jupyterlab.py` leaves pictures to look at.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

import rlnb
from rlnb.run.status import State
from tests.browser import NotebookPage, chromium, jupyter_lab, needs_browser
from tests.e2e.processes import everything
from tests.e2e.waiting import until

pytestmark = [pytest.mark.browser, needs_browser]

# Set before the autouse fixture clears the variables of rlnb.
SCREENSHOTS = os.environ.get("RLNB_SCREENSHOTS")

ROOT = Path(__file__).parents[2]
NAME = "00_quickstart.ipynb"
LIVE = ".rlnb-job[data-state='running'] .uplot"
STEPS = 120_000  # enough to be running still when JupyterLab is killed

LAB, CHECK, PROMOTE, RESULTS, JOBS = 1, 3, 4, 5, 6
"""Places of the notebook's code cells."""


@pytest.fixture
def lab_folder(tmp_path):
    """A folder for JupyterLab, with the quickstart in its root."""
    root = tmp_path / "root"
    root.mkdir()
    notebook = nbformat.read(ROOT / "notebooks" / NAME, as_version=4)
    parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    assert "total_timesteps = 50_000" in parameters.source
    parameters.source = parameters.source.replace("50_000", str(STEPS))
    nbformat.write(notebook, root / NAME)
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_stays_behind(rlnb_home):
    yield
    for run in run_folders(rlnb_home):
        for process in everything(rlnb.job(run.name).layout):
            process.kill()


def run_folders(home: Path) -> list[Path]:
    return sorted((home / "runs").glob("exp-*"))


def text_of(cell: dict[str, Any]) -> str:
    """Everything a cell of a saved notebook has printed or shown as text."""
    shown = (
        output.get("text") or output.get("data", {}).get("text/plain") or "" for output in cell["outputs"]
    )
    return "\n".join("".join(text) for text in shown)


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def saved(notebook: NotebookPage) -> list[dict[str, Any]]:
    return code_cells(notebook.save())


def step(notebook: NotebookPage) -> int:
    words = notebook.page.locator(".rlnb-words span").first.inner_text()
    return int(words.split(" ")[0].replace(",", ""))


def wait_until_it_moves(notebook: NotebookPage, *, value: bool = False) -> None:
    """Waits until the step (and the return, which comes to rest at 500) has changed on the page."""
    read = "[document.querySelector('.rlnb-words span').textContent.split(' ')[0]"
    read += ", document.querySelector('.rlnb-value').textContent]" if value else "]"
    before = notebook.page.evaluate(read)
    notebook.wait_until(f"{read}.every((now, place) => now !== {before}[place])", timeout=60)
    assert notebook.page.locator(".rlnb-job").get_attribute("data-state") == "running"


def wait_until_all_cells_ran(notebook: NotebookPage) -> None:
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.filter(c => c.model.type === 'code')"
    notebook.wait_until(f"{cells}.every(c => c.model.executionCount && c.prompt !== '*')", timeout=60)


def picture(notebook: NotebookPage, name: str) -> None:
    if SCREENSHOTS:
        notebook.page.locator(".jp-CodeCell").nth(PROMOTE).scroll_into_view_if_needed()
        notebook.screenshot(Path(SCREENSHOTS) / f"{name}.png")


def test_the_quickstart_from_run_all_to_another_day(lab_folder, rlnb_home):
    with chromium() as browser:
        with jupyter_lab(lab_folder, env={"PYTHONPATH": str(ROOT)}) as lab:
            notebook = NotebookPage.open(browser, lab, NAME)
            job = promotes_and_the_plot_moves(notebook, rlnb_home)
            survives_a_restarted_kernel(notebook, rlnb_home)
            survives_a_reload(notebook)
            assert job.state is State.RUNNING
            kernels = lab.kernels()
            assert len(kernels) == 1
            lab.kill()
            notebook.page.close()
        until(lambda: not any(process.is_running() for process in kernels), "the end of JupyterLab's kernel")
        assert job.wait(timeout=240).state is State.COMPLETED
        assert (job.attempt, job.record["step"] >= STEPS) == (1, True)
        with jupyter_lab(lab_folder, env={"PYTHONPATH": str(ROOT)}) as lab:
            shows_the_finished_run(NotebookPage.open(browser, lab, NAME), job)
            shows_the_executed_notebook(browser, lab, job)
    assert run_folders(rlnb_home) == [job.folder]


def promotes_and_the_plot_moves(notebook: NotebookPage, home: Path) -> rlnb.Job:
    notebook.run_all()
    report = notebook.cell(CHECK).locator(".jp-OutputArea-output")
    report.wait_for(timeout=60_000)
    assert "check: ready to promote" in report.inner_text()
    notebook.cell(LAB).locator(".rlnb-lab-head").wait_for()
    notebook.wait_for(LIVE, timeout=90)
    wait_until_it_moves(notebook, value=True)
    picture(notebook, "quickstart-light")
    notebook.theme("JupyterLab Dark")
    wait_until_it_moves(notebook)
    picture(notebook, "quickstart-dark")
    notebook.theme("JupyterLab Light")
    (run,) = run_folders(home)
    cells = saved(notebook)
    assert f"{run.name} has started" in text_of(cells[PROMOTE])
    assert "run this cell again" in text_of(cells[RESULTS])
    assert notebook.errors == []
    return rlnb.job(run.name)


def survives_a_restarted_kernel(notebook: NotebookPage, home: Path) -> None:
    before = step(notebook)
    notebook.restart_and_run_all()
    notebook.wait_until(
        f"document.querySelectorAll('.jp-CodeCell')[{PROMOTE}].innerText.includes('attached to it')",
        timeout=60,
    )
    notebook.wait_for(LIVE)
    wait_until_it_moves(notebook)
    assert step(notebook) > before
    (run,) = run_folders(home)
    wait_until_all_cells_ran(notebook)
    said = text_of(saved(notebook)[PROMOTE])
    assert f"{run.name} is running with this notebook, design and parameters: attached to it" in said
    assert "has started" not in said


def survives_a_reload(notebook: NotebookPage) -> None:
    before = step(notebook)
    notebook.load()
    notebook.wait_for(LIVE)
    wait_until_it_moves(notebook)
    assert step(notebook) > before
    assert notebook.errors == []


def shows_the_finished_run(notebook: NotebookPage, job: rlnb.Job) -> None:
    notebook.run_all()
    notebook.wait_until(
        f"document.querySelectorAll('.jp-CodeCell')[{JOBS}].innerText.includes({job.id!r})", timeout=60
    )
    image = notebook.cell(PROMOTE).locator("img")
    image.wait_for(timeout=20_000)
    assert image.bounding_box()["width"] == 960
    assert notebook.page.locator(".rlnb-job").count() == 0
    picture(notebook, "another-day")
    cells = saved(notebook)
    assert f"{job.id} is completed with this notebook" in text_of(cells[PROMOTE])
    assert "The best checkpoint returns" in text_of(cells[RESULTS])
    assert notebook.errors == []
    notebook.page.close()


def shows_the_executed_notebook(browser: Any, lab: Any, job: rlnb.Job) -> None:
    """The job's own copy: results and an image, nothing that needs the kernel that made it."""
    assert job.executed_notebook is not None
    shutil.copy(job.executed_notebook, lab.root / "executed.ipynb")
    notebook = NotebookPage.open(browser, lab, "executed.ipynb")
    for cell in (LAB, PROMOTE):
        notebook.cell(cell).locator("img").wait_for()
    picture(notebook, "executed")
    assert "model not found" not in notebook.page.locator("body").inner_text()
    cells = saved(notebook)
    assert all("application/vnd.jupyter.widget-view+json" not in str(cell["outputs"]) for cell in cells)
    assert "As in the code: the design file changes nothing." in str(cells[LAB]["outputs"])
    assert "The best checkpoint returns" in text_of(cells[RESULTS])
    assert cells[CHECK]["outputs"] == cells[JOBS]["outputs"] == []  # tagged notebook-only
    notebook.page.close()
