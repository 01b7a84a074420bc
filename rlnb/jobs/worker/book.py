"""The executed notebook, `output.<n>.ipynb`: saved atomically, and saying what really happened."""

from __future__ import annotations

import time
from typing import Any

from rlnb.jobs.worker.papermill import Engine, NotebookExecutionManager, nbformat
from rlnb.run.atomic import write_atomic
from rlnb.run.layout import RunLayout
from rlnb.run.writing import try_to_write

#: Seconds between two saves while a cell runs; doubled when saving takes over a quarter of it.
EVERY = 15.0


class ExecutedNotebook(NotebookExecutionManager):  # type: ignore[misc]
    """papermill's record of an execution, with its shortcomings corrected.

    papermill writes in place (readers see torn files), saves only when a message arrives, and
    marks as completed what was never run.
    """

    SKIPPED = "skipped"
    ENDED = "ended"  # on purpose, while the cell was running

    def __init__(self, nb: Any, *, layout: RunLayout, attempt: int) -> None:
        super().__init__(nb, output_path=None, progress_bar=False)
        self.layout, self.attempt = layout, attempt
        self.dirty = False
        self._every = EVERY
        self._saved = time.monotonic()
        # Paths of this machine do not belong into a notebook that is read elsewhere.
        nb.metadata.papermill["input_path"] = layout.relative(layout.bundle_notebook)
        nb.metadata.papermill["output_path"] = layout.relative(layout.output(attempt))

    def save(self, **_: Any) -> None:
        """Replaces the output file atomically."""
        start = time.monotonic()
        text: str = nbformat.writes(self.nb)  # type: ignore[no-untyped-call]
        try_to_write(lambda: write_atomic(self.layout.output(self.attempt), text, durable=False))
        self.dirty = False
        self._saved = time.monotonic()
        if self._saved - start > self._every / 4:
            self._every *= 2

    def autosave_cell(self, **_: Any) -> None:
        """Notes that something has changed; saves when it is time."""
        self.dirty = True
        self.save_if_due()

    def save_if_due(self) -> None:
        """Saves unsaved changes when the last save is long enough ago."""
        if self.dirty and time.monotonic() - self._saved >= self._every:
            self.save()

    def skip(self, cell: Any) -> None:
        """Marks a cell that is not run in jobs."""
        cell.metadata.papermill["status"] = self.SKIPPED

    def end(self, cell: Any) -> None:
        """Marks the cell in which the kernel was ended on purpose."""
        cell.metadata.papermill["status"] = self.ENDED

    def cell_complete(self, cell: Any, cell_index: int | None = None, **_: Any) -> None:
        """Notes that a cell is over; "ended" stays what it is."""
        status = cell.metadata.papermill["status"]
        super().cell_complete(cell, cell_index=cell_index)
        if status == self.ENDED:
            cell.metadata.papermill["status"] = status
            self.save()

    def notebook_complete(self, **_: Any) -> None:
        """Ends the record; cells that were never run stay pending."""
        self.end_time = self.now()
        about = self.nb.metadata.papermill
        about["end_time"] = self.end_time.isoformat()
        about["duration"] = (self.end_time - self.start_time).total_seconds()
        self.save()


class JobEngine(Engine):  # type: ignore[misc]
    """papermill's engine for jobs: the kernel exists already, the client is ours."""

    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, *, execution: Any, **_: Any) -> Any:
        """Executes; `execution` is the `rlnb.jobs.worker.execution.Execution` that asked for it."""
        book = ExecutedNotebook(nb, layout=execution.layout, attempt=execution.attempt)
        book.notebook_start()
        try:
            execution.execute(book)
        finally:
            book.notebook_complete()
        return book.nb
