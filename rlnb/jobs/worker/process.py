"""The worker of one attempt: executes the frozen notebook with papermill, in one kernel.

    python -m rlnb.jobs.worker RUN_FOLDER --attempt N [--lifeline FD]

It reads commands from its standard input ("end": save the notebook and end) and ends when that
closes, which means that its supervisor is gone. How it ended stands in `local/worker.json`; what
that means for the run is the supervisor's to say.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.jobs.capture.bundle import lay_out
from rlnb.jobs.capture.notebook import read_notebook
from rlnb.jobs.processes import descendants, end_all, marked
from rlnb.jobs.worker.kernel import JobKernel, modules_to_preimport
from rlnb.run.host import process_start, utc_now
from rlnb.run.identity import VARIABLE
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.record import read_record
from rlnb.run.secrets import Redactor, secret_values
from rlnb.run.writing import try_to_write

if TYPE_CHECKING:
    from rlnb.jobs.worker.execution import Execution


#: What a worker exits with that could not write its report.
DISK_FULL = 4


class Worker:
    """One attempt's worker."""

    def __init__(self, layout: RunLayout, attempt: int, lifeline: int | None) -> None:
        self.layout, self.attempt = layout, attempt
        self._supervisor = os.getppid()
        self._ending = threading.Event()
        self._execution: Execution | None = None
        self._environ = dict(os.environ)
        os.environ.pop(VARIABLE, None)
        self.notebook = read_notebook(layout.bundle_notebook)
        work = lay_out(layout)
        sources = [cell.source for cell in self.notebook.cells if cell.in_job]
        self.kernel = JobKernel(
            layout, self._environ, lifeline=lifeline, cwd=work, preimport=modules_to_preimport(sources)
        )

    def run(self) -> dict[str, Any]:
        """Executes the notebook; returns the report for worker.json."""
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._pass_on)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=self._obey, daemon=True).start()
        # Imported only now: it brings papermill with it, and the kernel is starting meanwhile.
        from rlnb.jobs.worker.execution import Execution

        record = read_record(self.layout)
        redactor = Redactor(secret_values(self._environ))
        self._execution = Execution(
            self.layout, self.attempt, record, self.notebook, self.kernel, redactor, self._ending
        )
        try:
            return self._execution.run()
        finally:
            self._end_kernel()

    def _obey(self) -> None:
        """Waits for commands; the end of the pipe is the end of the supervisor."""
        while os.read(sys.stdin.fileno(), 64):  # "end" is the only command
            self._ending.set()
            self._kill_kernel()
            if self._execution is not None:
                self._execution.wake()
        self._ending.set()
        self._kill_kernel()
        me = os.getpid()
        end_all(lambda: marked(self.layout.root) - {me})
        # Nobody is left to judge what a report would say.
        os.kill(me, signal.SIGKILL)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        """A scheduler's signal is the supervisor's to answer: it suspends the run."""
        if os.getppid() == self._supervisor:
            os.kill(self._supervisor, number)

    def _kill_kernel(self) -> None:
        """Ends the kernel first, so that it starts nothing more, then what it has started."""
        pid = self.kernel.process.pid
        started = descendants(pid)
        self.kernel.process.kill()
        end_all(lambda: {p for p in started if process_start(p) is not None})

    def _end_kernel(self) -> None:
        if self.kernel.process.poll() is None:
            self._kill_kernel()
            self.kernel.process.wait()
        self.kernel.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a worker; returns 0 whenever it could report, else `DISK_FULL`."""
    parser = argparse.ArgumentParser(prog="python -m rlnb.jobs.worker", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--attempt", type=int, required=True)
    parser.add_argument("--lifeline", type=int, default=None)
    options = parser.parse_args(argv)
    layout = RunLayout(options.root)
    try:
        report = Worker(layout, options.attempt, options.lifeline).run()
    except Exception as error:
        traceback.print_exc()
        message = f"the worker failed with {type(error).__name__}: {error}"
        # What rlnb itself refuses (a damaged bundle, an unreadable notebook) is refused again.
        report = {"outcome": "worker_error", "message": message, "retry": not isinstance(error, RlnbError)}
    said = {"attempt": options.attempt, "time": utc_now(), **report}
    return 0 if try_to_write(lambda: write_json(layout.worker_json, said)) else DISK_FULL
