"""Interrupts while training, and the wait for one's end."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import TracebackType

from rlnb.run.progress import Phase


class Interrupts:
    """While it is entered, Ctrl-C and the kernel's interrupt are only noted, for the next safe point."""

    def __init__(self) -> None:
        self.noted = False
        self._before: signal._HANDLER = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def take(self) -> bool:
        """Says whether there was an interrupt since the last call."""
        noted, self.noted = self.noted, False
        return noted

    def _note(self, number: int, frame: object) -> None:
        self.noted = True


def wait_to_be_ended(phase: Phase) -> None:
    """Blocks for ever: the supervisor ends this process, whose parent saves the notebook first."""
    while True:
        signal.pause() if threading.current_thread() is threading.main_thread() else time.sleep(3600)
        if os.getppid() == 1:
            os._exit(0)
