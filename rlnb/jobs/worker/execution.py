"""Executing the frozen notebook, cell by cell, and reporting how that went."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from rlnb.jobs.capture.notebook import NOTEBOOK_ONLY, Notebook, without_installs
from rlnb.jobs.capture.parameters import inject_recorded
from rlnb.jobs.worker.book import ExecutedNotebook, JobEngine
from rlnb.jobs.worker.client import JobClient
from rlnb.jobs.worker.kernel import JobKernel
from rlnb.jobs.worker.outputs import OutputFilter, copy_raw_output, without_colours
from rlnb.jobs.worker.papermill import (
    CellExecutionError,
    DeadKernelError,
    PapermillExecutionError,
    execute_notebook,
    new_output,
    papermill_engines,
)
from rlnb.run.atomic import write_atomic
from rlnb.run.events import EventLog
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.record import RunRecord
from rlnb.run.secrets import Redactor
from rlnb.run.writing import try_to_write

papermill_engines.register("rlnb", JobEngine)


class Execution:
    """One execution of a run's notebook.

    Args:
        layout: the run.
        attempt: the attempt.
        record: what was asked.
        notebook: the frozen notebook.
        kernel: a kernel that is starting.
        redactor: knows the secrets of the kernel's environment.
        ending: set when the execution is to end on purpose.
    """

    def __init__(
        self, layout: RunLayout, attempt: int, record: RunRecord, notebook: Notebook, kernel: JobKernel,
        redactor: Redactor, ending: threading.Event,
    ) -> None:  # fmt: skip
        self.layout, self.attempt, self.record = layout, attempt, record
        self._redactor, self._kernel, self._ending = redactor, kernel, ending
        self._frozen = notebook
        self._outputs = OutputFilter(layout, redactor)
        self._client: JobClient | None = None
        self._report: dict[str, Any] = {"outcome": "ok"}
        #: cell id → number as a person counts the frozen notebook's cells, from 1
        self._numbers = {cell.id: number for number, cell in enumerate(notebook.cells, start=1)}

    def run(self) -> dict[str, Any]:
        """Executes the notebook.

        Returns:
            The report: "outcome" (ok, cell_error, exited, kernel_died, ended), and with it "cell",
            "exit_code" and "skipped".
        """
        stdout = self._kernel.process.stdout
        assert stdout is not None
        copier = threading.Thread(
            target=copy_raw_output, args=(stdout.fileno(), self._outputs, self._redactor), daemon=True
        )
        copier.start()
        prepared = self.layout.local / f"input.{self.attempt}.ipynb"
        write_atomic(
            prepared, inject_recorded(self._for_job(), self.record.parameters).to_json(), durable=False
        )
        try:
            # papermill formats paths; one that has braces must come through unchanged.
            path = str(prepared).replace("{", "{{").replace("}", "}}")
            execute_notebook(
                path, None, engine_name="rlnb", kernel_name="python3", progress_bar=False, execution=self
            )
        except PapermillExecutionError:
            pass  # reported from the cell itself, in `execute`
        if self._kernel.process.poll() is not None:
            copier.join(2.0)  # a descendant of the kernel may keep the pipe open
        return self._report

    def execute(self, book: ExecutedNotebook) -> None:
        """Runs the cells of an opened notebook; called back by the engine."""
        self._client = JobClient(book, self._kernel, self._outputs)
        try:
            with self._client.setup_kernel():
                self._run_cells(book)
                self._client.set_widgets_metadata()
        except DeadKernelError:
            if self._report["outcome"] == "ok":
                self._note_death(book, None)

    def wake(self) -> None:
        """Stops waiting for the running cell; called from another thread when the kernel was ended."""
        if self._client is not None:
            self._client.wake()

    # -- cells --------------------------------------------------------------------------------
    def _run_cells(self, book: ExecutedNotebook) -> None:
        client = self._client
        assert client is not None
        target_done = False
        for index, cell in enumerate(book.nb.cells):
            if cell.cell_type != "code":
                continue
            # A task such as "verify" is done in the target cell; what comes after it is training's.
            if NOTEBOOK_ONLY in cell.metadata.get("tags", []) or target_done:
                book.skip(cell)
                continue
            if self._ending.is_set():
                self._report = {"outcome": "ended"}
                return
            self._say_where(cell)
            book.cell_start(cell, index)
            try:
                client.run_cell(cell, index)
            except CellExecutionError as error:
                self._note_error(book, cell, index, error)
                return
            except DeadKernelError:
                self._note_death(book, cell)
                return
            finally:
                client.set_widgets_metadata()
                book.cell_complete(cell, cell_index=index)
            target_done = self.record.task != "train" and cell.get("id") == self.record.target.cell

    def _for_job(self) -> Notebook:
        """The notebook without what a job does not run; says so in an event."""
        cells, left_out = [], [
            f"cell {self._numbers[cell.id]} (tagged {NOTEBOOK_ONLY!r})"
            for cell in self._frozen.code if NOTEBOOK_ONLY in cell.tags
        ]  # fmt: skip
        for cell in self._frozen.cells:
            if cell.in_job:
                source, removed = without_installs(cell.source)
                left_out += [f"`{line}` in cell {self._numbers[cell.id]}" for line in removed]
                cells.append(replace(cell, source=source))
            else:
                cells.append(cell)
        if left_out:
            self._report["skipped"] = left_out
            message = f"Not run in jobs: {', '.join(left_out)}."
            try_to_write(lambda: EventLog(self.layout, attempt=self.attempt).append("cells_skipped", message))
        return self._frozen.with_cells(cells)

    def _about(self, cell: Any) -> dict[str, Any]:
        return {"number": self._numbers.get(cell.get("id"), 0), "id": cell.get("id")}

    def _say_where(self, cell: Any) -> None:
        where = {"attempt": self.attempt, "running": self._about(cell)}
        try_to_write(lambda: write_json(self.layout.worker_json, where, durable=False))

    # -- ends -----------------------------------------------------------------------------------
    def _note_error(self, book: ExecutedNotebook, cell: Any, index: int, error: Any) -> None:
        book.cell_exception(cell, cell_index=index, exception=error)
        assert self._client is not None
        lines = without_colours("\n".join(self._client.last_traceback)).splitlines()
        about = self._redactor.redact_json({"ename": error.ename, "evalue": error.evalue, "traceback": lines})
        leaves = error.ename == "SystemExit" and error.evalue in ("", "0", "None")
        self._report |= {
            "outcome": "exited" if leaves else "cell_error",
            "cell": {**self._about(cell), **about},
        }

    def _note_death(self, book: ExecutedNotebook, cell: Any | None) -> None:
        """Marks in the notebook that the kernel ended, which papermill would not."""
        code = self._kernel.process.wait()
        if self._ending.is_set():
            self._report |= {"outcome": "ended"}
            if cell is not None:
                book.end(cell)
            return
        self._report |= {"outcome": "kernel_died", "exit_code": code}
        if cell is None:
            return
        self._report["cell"] = self._about(cell)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        message = f"the kernel ended with {how} while this cell was running"
        cell.outputs.append(new_output("error", ename="KernelDied", evalue=message, traceback=[message]))
        cell.metadata.papermill.update(status=book.FAILED, exception=True)
        book.nb.metadata.papermill["exception"] = True
