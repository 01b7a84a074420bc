"""Freezing: from the saved file and what ran, the notebook that the job will run.

The order is the saved file's. A cell's source is that of its last successful run here, else the
saved one. A cell that ran but was not saved yet follows the cell that ran before it. A cell that
ran and was deleted since is named and left out: what it defined lives in this kernel only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlnb.jobs.capture.notebook import INJECTED, NOTEBOOK_ONLY, Cell, Notebook, without_installs
from rlnb.jobs.capture.recorder import CellRun
from rlnb.run.findings import Finding, Level


@dataclass(frozen=True)
class Frozen:
    """A notebook as the job will run it.

    Attributes:
        notebook: without outputs; its cells' ids are those the job sees.
        target: id of the cell that runs now, None without a kernel.
        findings: what a person should know about the freezing.
    """

    notebook: Notebook
    target: str | None
    findings: tuple[Finding, ...]


def freeze(notebook: Notebook, runs: Sequence[CellRun] = ()) -> Frozen:
    """Freeze a notebook.

    Args:
        notebook: the saved file.
        runs: what ran in this kernel, oldest first; empty without a kernel, then the file counts.
    """
    matched = _match(notebook, runs)
    findings: list[Finding] = []
    placed, deleted = _place_unsaved(notebook, runs, matched)
    if deleted:
        names = "; ".join(f"`{_first_line(run.source)}`" for run in deleted)
        findings.append(_warn("deleted_cells", f"These cells ran here but are not in {notebook.path.name} (deleted, or typed into a console), so the job will not run them: {names}. Restore them if the job needs what they define."))  # fmt: skip
    last: dict[str, CellRun] = {}
    for run, cell_id in zip(runs, matched, strict=True):
        if cell_id is not None and run.ok is not False:
            last[cell_id] = run
    target = matched[-1] if runs and runs[-1].ok is None else None
    cells: list[Cell] = [new for after, new in placed if after is None]
    reached = target is None
    for cell in notebook.cells:
        cells.append(_as_run(notebook, cell, last.get(cell.id), not runs or reached, findings))
        reached = reached or cell.id == target
        cells += _following(cell.id, placed)
    for _, new in placed:
        if target is None and runs and runs[-1].ok is None and new.source == runs[-1].source:
            target = new.id
        if INJECTED not in new.tags:
            findings.append(_warn("unsaved_cell", f"The cell `{_first_line(new.source)}` is not saved in {notebook.path.name}; the job runs it after the cell that ran before it. Save the notebook to be sure of the order."))  # fmt: skip
    return Frozen(notebook.with_cells(_without_installs(cells, findings)), target, tuple(findings))


def _match(notebook: Notebook, runs: Sequence[CellRun]) -> list[str | None]:
    """For each run the id of its cell in the file, or None.

    An id that the file does not know (VS Code's, or a file older than format 4.5) stands for the
    cell whose saved source any run under that id had; without an id the source alone decides.
    """
    ids = {cell.id for cell in notebook.code}
    by_source: dict[str, str] = {}
    for cell in notebook.code:
        by_source.setdefault(cell.source.strip(), cell.id)
    foreign: dict[str, str] = {}
    for run in runs:
        if run.cell_id is not None and run.cell_id not in ids and run.source.strip() in by_source:
            foreign[run.cell_id] = by_source[run.source.strip()]
    matched: list[str | None] = []
    for run in runs:
        if run.cell_id in ids:
            matched.append(run.cell_id)
        elif run.cell_id is not None and run.cell_id in foreign:
            matched.append(foreign[run.cell_id])
        else:
            matched.append(by_source.get(run.source.strip()))
    return matched


def _place_unsaved(
    notebook: Notebook, runs: Sequence[CellRun], matched: Sequence[str | None]
) -> tuple[list[tuple[str | None, Cell]], list[CellRun]]:
    """Where the cells go that the file does not have, and which runs are of deleted cells.

    Returns:
        (id of the cell to follow or None for the top, cell) in run order; deleted cells' runs.
    """
    newest: dict[str, tuple[int, CellRun]] = {}
    for position, (run, cell_id) in enumerate(zip(runs, matched, strict=True)):
        if cell_id is None and run.ok is not False:
            newest[run.cell_id or run.source] = (position, run)
    placed: list[tuple[str | None, Cell]] = []
    deleted: list[CellRun] = []
    new_ids: dict[int, str] = {}
    saved = notebook.saved
    ids = {cell.id for cell in notebook.code}
    names_cells = any(run.cell_id in ids for run in runs)
    first_known = next((run.started for run in runs if run.started is not None), None)
    for key, (position, run) in newest.items():
        # What started before the last save would be in the file if its cell still existed. For a
        # run before rlnb was imported the first known time is the best bound there is.
        started = run.started if run.started is not None else first_known
        # A front end that names its cells names all of them: what has no id came from a console.
        typed = names_cells and run.cell_id is None and run.started is not None
        if run.ok is not None and (typed or (started is not None and started < saved)):
            deleted.append(run)
            continue
        after = None
        for earlier in range(position - 1, -1, -1):
            after = matched[earlier] or new_ids.get(earlier)
            if after is not None:
                break
        cell_id = "unsaved-" + hashlib.sha256(key.encode()).hexdigest()[:12]
        new_ids[position] = cell_id
        # Plain papermill runs its parameters as a cell of this form, which no file holds.
        tags = (INJECTED,) if run.source.startswith("# Parameters\n") else ()
        placed.append((after, Cell(cell_id, "code", run.source, tags)))
    return placed, deleted


def _following(cell_id: str, placed: Sequence[tuple[str | None, Cell]]) -> list[Cell]:
    """The unsaved cells that follow a cell, each with those that follow it in turn."""
    cells: list[Cell] = []
    for after, new in placed:
        if after == cell_id:
            cells += [new, *_following(new.id, placed)]
    return cells


def _as_run(
    notebook: Notebook, cell: Cell, run: CellRun | None, after_target: bool, findings: list[Finding]
) -> Cell:
    if cell.kind != "code" or (not cell.source.strip() and run is None):
        return cell
    number = notebook.number(cell.id)
    if run is None:
        if not after_target and NOTEBOOK_ONLY not in cell.tags and not _only_installs(cell.source):
            findings.append(_warn("cell_not_run", f"Cell {number} (`{_first_line(cell.source)}`) did not run successfully here; the job runs it as it is saved. Run it, or tag it {NOTEBOOK_ONLY!r} to leave it out."))  # fmt: skip
        return cell
    if run.source.strip() != cell.source.strip():
        findings.append(_warn("cell_differs", f"Cell {number} (`{_first_line(run.source)}`) was edited since it last ran without an error; the job gets the source that ran. Run it again to promote the edit."))  # fmt: skip
        return replace(cell, source=run.source)
    return cell


def _only_installs(source: str) -> bool:
    """Whether nothing of a cell is left for a job, which installs nothing."""
    rest, removed = without_installs(source)
    return bool(removed) and all(
        not line.strip() or line.lstrip().startswith("#") for line in rest.splitlines()
    )


def _without_installs(cells: Sequence[Cell], findings: list[Finding]) -> list[Cell]:
    result = []
    left_out = 0
    for cell in cells:
        if not cell.in_job:
            left_out += NOTEBOOK_ONLY in cell.tags
            result.append(cell)
            continue
        source, removed = without_installs(cell.source)
        for line in removed:
            findings.append(Finding(Level.INFO, "install_skipped", f"`{line}` is not run in the job: a job uses the packages of this interpreter."))  # fmt: skip
        result.append(replace(cell, source=source))
    if left_out:
        cells_are = "1 cell is" if left_out == 1 else f"{left_out} cells are"
        findings.append(Finding(Level.INFO, "notebook_only", f"{cells_are} tagged {NOTEBOOK_ONLY!r} and not run in the job."))  # fmt: skip
    return result


def _first_line(source: str) -> str:
    line = next((line.strip() for line in source.splitlines() if line.strip()), "")
    return line if len(line) <= 60 else line[:57] + "…"


def _warn(code: str, message: str) -> Finding:
    return Finding(Level.WARNING, code, message)
