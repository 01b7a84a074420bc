"""A tutorial run from top to bottom in a fresh folder, with a tiny budget, and the job that it promotes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import nbformat

from rlnb.job import Job
from rlnb.jobs.capture.notebook import PARAMETERS, Notebook, read_notebook
from tests.promote.live import LiveNotebook

FOLDER = Path(__file__).parents[2] / "notebooks"
TINY = "seed = 0\ntotal_timesteps = 2_000"


@dataclass(frozen=True)
class Told:
    """What a tutorial has shown.

    Attributes:
        said: text of each code cell by its id.
        answer: to a question that was put to its kernel at the end.
        job: that it promoted, at rest.
    """

    said: dict[str, str]
    answer: str
    job: Job


def copied(name: str, folder: Path, parameters: str = TINY) -> Notebook:
    """Writes a copy of a tutorial with other parameters; returns it."""
    book = read_notebook(FOLDER / name)
    cells = [replace(cell, source=parameters) if PARAMETERS in cell.tags else cell for cell in book.cells]
    path = folder / name
    path.write_text(book.with_cells(cells).to_json())
    return read_notebook(path)


def run_all(live: LiveNotebook) -> dict[str, str]:
    """Runs every code cell; returns the text that each has shown, by its id."""
    return {cell.id: live.run(cell.source, cell.id) for cell in live.book.code}


def executed_cells(job: Job) -> dict[str, nbformat.NotebookNode]:
    """Returns the cells of a job's executed notebook by their ids."""
    assert job.executed_notebook is not None
    return {cell.id: cell for cell in nbformat.read(job.executed_notebook, as_version=4).cells}


def html_of(cell: nbformat.NotebookNode) -> str:
    """Returns all HTML that a cell has shown."""
    return "\n".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
