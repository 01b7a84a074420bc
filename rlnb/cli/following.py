"""Following a job in a terminal: one line that moves, or one line now and then in a log file."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from rlnb.cli.output import JOB_FAILED, OK
from rlnb.errors import JobFailed
from rlnb.words import progress_text

if TYPE_CHECKING:
    from rlnb.job import Job
    from rlnb.run.status import Observation

REDRAW = 0.5  # seconds between two looks at the run folder
UPLOAD_PATIENCE = 30.0  # seconds without progress after which an upload is left to itself
LOG_EVERY = 10.0  # seconds between two lines where a line cannot be redrawn


def follow(job: Job, *, quiet: bool = False, timeout: float | None = None) -> int:
    """Shows progress until the job rests: ended or suspended. A paused one holds its machine, so it is waited for.

    Args:
        job: the job.
        quiet: print nothing on stdout (`--json`).
        timeout: seconds to wait at most; None waits for ever.

    Returns:
        The command's exit code: 0 completed or at rest by request, 1 failed or lost.

    Raises:
        JobFailed: the job has failed; its message is what the job's `exception` says.
        TimeoutError: the job was still going after `timeout` seconds.
    """
    line, upload = ProgressLine(quiet=quiet), Upload()
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        while True:
            seen = job.observe()
            line.show(progress_text(job.layout, seen))
            if not seen.state.living and not upload.goes_on(seen):
                break
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{job.id} is still {job.state.value} after {timeout:g} s; it goes on.")
            time.sleep(REDRAW)
    finally:
        line.close()
    if seen.status is not None and seen.status.upload_pending and seen.status.store != "ok":
        print(
            f"rlnb: the store is {seen.status.store}; what it lacks is sent when it answers.", file=sys.stderr
        )
    if job.failed:
        raise JobFailed(job.failure_text(), job)
    return OK


class Upload:
    """Whether a supervisor stays only to send the rest, which a script that reads the store waits for."""

    def __init__(self) -> None:
        self._pending = -1
        self._since = time.monotonic()

    def goes_on(self, seen: Observation) -> bool:
        """Says whether more is about to arrive: the supervisor lives, the store answers, and bytes move."""
        status = seen.status
        if status is None or not status.supervisor.alive or status.store != "ok":
            return False
        if status.upload_pending != self._pending:
            self._pending, self._since = status.upload_pending, time.monotonic()
        return time.monotonic() - self._since < UPLOAD_PATIENCE


class ProgressLine:
    """One terminal line that is redrawn; in a pipe, a new line every ten seconds or at a change of state."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.moving = not quiet and sys.stdout.isatty()
        self._last, self._said, self._state, self._printed = "", "", "", -LOG_EVERY

    def show(self, text: str) -> None:
        """Shows `text` in place of what was shown before."""
        if self.quiet or text == self._last:
            return
        self._last = text
        if self.moving:
            width = shutil.get_terminal_size().columns - 1
            sys.stdout.write("\r" + text[:width].ljust(width))
            sys.stdout.flush()
            return
        state = text.split(",", 1)[0]
        now = time.monotonic()
        if state != self._state or now - self._printed >= LOG_EVERY:
            self._print(text, state)

    def close(self) -> None:
        """Ends the line; in a pipe, says the last word if it has not been said."""
        if self.moving and self._last:
            sys.stdout.write("\n")
            sys.stdout.flush()
        elif not self.quiet and self._last != self._said:
            self._print(self._last, self._state)

    def _print(self, text: str, state: str) -> None:
        self._said, self._state, self._printed = text, state, time.monotonic()
        print(text, flush=True)


__all__ = ["JOB_FAILED", "ProgressLine", "follow"]
