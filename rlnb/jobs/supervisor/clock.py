"""Clocks of a supervisor that may be stopped (SIGSTOP) and continued at any moment."""

from __future__ import annotations

import os
import select
import signal
import time
from types import FrameType


class AwakeClock:
    """Counts only the time this process was awake.

    A supervisor that was stopped for an hour has not waited an hour for training: it just has not
    looked. A step of this clock is therefore never longer than `longest`.
    """

    def __init__(self, *, longest: float = 1.0) -> None:
        self.now = 0.0
        self._longest = longest
        self._last = time.monotonic()

    def tick(self) -> float:
        """Moves on; returns the seconds awake since the start."""
        current = time.monotonic()
        self.now += min(current - self._last, self._longest)
        self._last = current
        return self.now


class Timer:
    """How long a condition has held without a break."""

    def __init__(self, clock: AwakeClock) -> None:
        self._clock = clock
        self._since: float | None = None
        self._key: object = None

    def held(self, condition: bool, *, key: object = None) -> float:
        """Returns the awake seconds for which `condition` has held with this same `key`."""
        if not condition:
            self._since = None
            return 0.0
        if self._since is None or key != self._key:
            self._since, self._key = self._clock.now, key
        return self._clock.now - self._since


class Signals:
    """Collects the signals of a supervisor and wakes it.

    Handlers rather than SIG_IGN: an ignored signal would stay ignored in every child.
    """

    PREEMPTION = (signal.SIGTERM, signal.SIGUSR1)

    def __init__(self) -> None:
        self._got: list[int] = []
        self._reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in self.PREEMPTION:
            signal.signal(number, self._note)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _pass)

    def preemption(self) -> int | None:
        """Returns a preemption signal that has arrived since the last call, or None."""
        return self._got.pop() if self._got else None

    def wait(self, seconds: float) -> None:
        """Waits, or until a signal arrives (a child's end is one)."""
        if select.select([self._reading], [], [], seconds)[0]:
            os.read(self._reading, 4096)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._got.append(number)


def _pass(number: int, frame: FrameType | None) -> None:
    """Wakes the loop and does nothing else."""
