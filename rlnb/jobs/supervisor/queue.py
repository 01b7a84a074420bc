"""Waiting for one's turn when `RLNB_MAX_RUNNING` limits the jobs on this machine.

A slot and a ticket are files on which their owner holds an `flock`: the operating system gives
them back however the owner ends, so nothing needs to be cleaned up after a crash.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from rlnb import settings


class Queue:
    """One run's place in the queue of this machine.

    Args:
        run_id: whose place it is.
        limit: how many may run at once; 0 means no limit.
        folder: where slots and tickets lie; by default in rlnb's home.
    """

    def __init__(self, run_id: str, *, limit: int, folder: Path | None = None) -> None:
        self.run_id, self.limit = run_id, limit
        self.folder = folder or settings.home() / "queue"
        self._ticket: tuple[Path, int] | None = None
        self._slot: int | None = None

    def enter(self) -> str | None:
        """Tries to take a slot.

        Returns:
            None when the run may start, else why it must wait, as one sentence.
        """
        if self.limit <= 0 or self._slot is not None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._ticket is None:
            path = self.folder / f"{time.time_ns():020d}-{self.run_id}.ticket"
            handle = _lock(path)
            assert handle is not None  # the name is ours alone
            self._ticket = path, handle
        ahead = sum(1 for path in self.folder.glob("*.ticket") if path < self._ticket[0] and _is_held(path))
        holders = []
        for number in range(self.limit):
            path = self.folder / f"{number}.slot"
            handle = None if ahead else _lock(path)
            if handle is None:
                holders.append(path.read_text().strip() if path.exists() else "")
                continue
            os.ftruncate(handle, 0)
            os.pwrite(handle, self.run_id.encode(), 0)
            self._slot = handle
            self._drop_ticket()
            return None
        running = ", ".join(name for name in holders if name)
        before = f"; {ahead} before it" if ahead else ""
        return f"waiting for one of {self.limit} places (RLNB_MAX_RUNNING), taken by {running}{before}"

    def leave(self) -> None:
        """Gives slot and ticket back."""
        self._drop_ticket()
        if self._slot is not None:
            os.close(self._slot)
            self._slot = None

    def _drop_ticket(self) -> None:
        if self._ticket is not None:
            path, handle = self._ticket
            path.unlink(missing_ok=True)
            os.close(handle)
            self._ticket = None


def _lock(path: Path) -> int | None:
    """Opens and locks a file; None when somebody else holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _is_held(path: Path) -> bool:
    """Whether a ticket's owner lives; a dead owner's ticket is thrown away."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(handle)
