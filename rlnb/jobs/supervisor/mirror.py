"""Keeping the mirror process alive: it carries the working copy to the store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from rlnb.run.events import EventLog
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.writing import try_to_write

#: What the mirror exits with when the store holds a claim of a newer attempt.
SUPERSEDED = 3

_LONGEST_DELAY = 60.0
_PATIENCE = 30.0
_GIVE_UP_AFTER = 6  # crashes in a row after the run has ended


class MirrorKeeper:
    """Starts the mirror, starts it again when it dies, and knows when it is done.

    Args:
        layout: the run.
        command: how to start a mirror, without its arguments; tests give another one.
    """

    def __init__(self, layout: RunLayout, *, command: list[str] | None = None) -> None:
        self.layout = layout
        self.superseded = False
        self.done = False
        self.gave_up = False
        self._command = command or [sys.executable, "-P", "-m", "rlnb.jobs.mirror"]
        self._popen: subprocess.Popen[bytes] | None = None
        self._attempt = 0
        self._crashes = 0
        self._again_at = 0.0
        self._terminated_at: float | None = None
        self._seen: tuple[int, dict[str, Any]] = (0, {})

    @property
    def pid(self) -> int | None:
        """The mirror's pid, None while none runs."""
        return self._popen.pid if self._popen else None

    @property
    def report(self) -> dict[str, Any]:
        """What the mirror last said of itself (local/mirror.json)."""
        try:
            changed = os.stat(self.layout.mirror_json).st_mtime_ns
        except FileNotFoundError:
            return {}
        if changed != self._seen[0]:
            self._seen = changed, read_json(self.layout.mirror_json) or self._seen[1]
        return self._seen[1]

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait for the store."""
        return int(self.report.get("pending_bytes") or 0)

    @property
    def store(self) -> str:
        """The store's condition in words, "ok" when all is well."""
        state, since = str(self.report.get("state") or "ok"), self.report.get("since")
        return state if state == "ok" or not since else f"{state} since {since}"

    def serve(self, attempt: int) -> None:
        """Mirrors for this attempt from now on; a mirror of an earlier attempt is replaced."""
        self._attempt = attempt
        self.done = False
        if self._popen is None:
            self._start()
        elif self._terminated_at is None:
            self._signal(signal.SIGTERM)
            self._terminated_at = time.monotonic()

    def attend(self, exits: Mapping[int, int], *, ended: bool = False) -> None:
        """Looks after the mirror; call it often.

        Args:
            exits: pid → exit code of the children that were reaped.
            ended: whether the run has ended, so that a mirror that exits is done.
        """
        now = time.monotonic()
        if self._popen is not None and self._popen.pid in exits:
            code = self._popen.returncode = exits[self._popen.pid]
            self._popen = None
            self._note_exit(code, now, ended=ended)
        if self._terminated_at is not None and now - self._terminated_at > _PATIENCE:
            self._signal(signal.SIGKILL)
        if (
            self._popen is None
            and not (self.done or self.superseded or self.gave_up)
            and now >= self._again_at
        ):
            self._start()

    def end(self) -> None:
        """Ends the mirror at once; what it has not sent stays in the working copy."""
        self._signal(signal.SIGKILL)
        self.done = True

    def _note_exit(self, code: int, now: float, *, ended: bool) -> None:
        replaced, self._terminated_at = self._terminated_at is not None, None
        if code == SUPERSEDED:
            self.superseded = True
        elif code == 0 and ended:
            self.done = True
        elif code == 0 or replaced:
            self._crashes, self._again_at = 0, now
        else:
            self._crashes += 1
            delay = min(_LONGEST_DELAY, 0.5 * 2.0**self._crashes)
            self._again_at = now + delay
            message = (
                f"The mirror ended with code {code}; it is started again in {delay:g} s "
                f"(see {self.layout.relative(self._log)})."
            )
            try_to_write(lambda: EventLog(self.layout, attempt=self._attempt).append("mirror_died", message))
            self.gave_up = ended and self._crashes >= _GIVE_UP_AFTER

    @property
    def _log(self) -> Path:
        return self.layout.local / "mirror.log"

    def _start(self) -> None:
        with _open_log(self._log) as log:
            self._popen = subprocess.Popen(
                [*self._command, os.fspath(self.layout.root), "--attempt", str(self._attempt)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
            )  # fmt: skip

    def _signal(self, signum: int) -> None:
        if self._popen is not None:
            try:
                os.kill(self._popen.pid, signum)  # ours and not yet reaped, so the pid is its own
            except ProcessLookupError:
                pass  # it has ended; its exit code is collected next


def _open_log(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab")
    except OSError:  # a full disk has no room for a new file's name either
        return open(os.devnull, "ab")
