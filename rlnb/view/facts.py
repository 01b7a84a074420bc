"""What is to be said about a run besides its charts: state in words, progress, time left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from rlnb.run.progress import Phase
from rlnb.run.status import Evidence, State


class Tone(StrEnum):
    """How a state should look; always beside the words, never instead of them."""

    BUSY = "busy"
    WAITING = "waiting"
    GOOD = "good"
    BAD = "bad"


_TONES = {
    State.RUNNING: Tone.BUSY,
    State.STARTING: Tone.BUSY,
    State.COMPLETED: Tone.GOOD,
    State.FAILED: Tone.BAD,
    State.LOST: Tone.BAD,
}

_WORDS = {
    State.QUEUED: "queued",
    State.STARTING: "starting",
    State.RUNNING: "running",
    State.PAUSED: "paused, keeps the machine",
    State.SUSPENDED: "suspended, the machine is free",
    State.STOPPING: "stopping at the next safe point",
    State.COMPLETED: "completed",
    State.FAILED: "failed",
    State.STOPPED: "stopped",
    State.LOST: "lost",
}


@dataclass(frozen=True)
class Facts:
    """One run at one moment.

    Attributes:
        id: the run's id.
        name: the experiment's name.
        what: algorithm and environment, e.g. "PPO on CartPole-v1"; "" while unknown.
        state: see `State`.
        silent: a supervisor elsewhere has stopped counting.
        why: the reason for the state, one sentence, or "".
        phase: what the kernel does, None when unknown.
        attempt: the newest attempt, 0 before the first.
        step: environment steps done.
        total: environment steps asked for, 0 while unknown.
        steps_per_second: recent speed, None when unknown.
        return_mean: mean return of the last 100 episodes, None before any ended.
        checkpoint: step of the newest checkpoint, None without one.
        upload_pending: bytes that wait for the store.
        store: the store's condition, "ok" when nothing is wrong.
        evidence: how the last attempt ended, None while none has.
        folder: where the run can be read on this machine.
        url: where it is kept.
    """

    id: str
    name: str = ""
    what: str = ""
    state: State = State.QUEUED
    silent: bool = False
    why: str = ""
    phase: Phase | None = None
    attempt: int = 0
    step: int = 0
    total: int = 0
    steps_per_second: float | None = None
    return_mean: float | None = None
    checkpoint: int | None = None
    upload_pending: int = 0
    store: str = "ok"
    evidence: Evidence | None = None
    folder: str = ""
    url: str = ""

    @property
    def fraction(self) -> float | None:
        """The part of the steps that is done, 0 to 1; None while the total is unknown."""
        return min(1.0, self.step / self.total) if self.total > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds that training still needs at the recent speed; None when nobody can tell."""
        if self.state is not State.RUNNING or self.silent or self.phase in (Phase.FINISHED, Phase.BROKEN_OFF):
            return None
        if not self.total or not self.steps_per_second or self.steps_per_second <= 0:
            return None
        return max(0, self.total - self.step) / self.steps_per_second

    @property
    def tone(self) -> Tone:
        if self.silent:
            return Tone.WAITING
        done = self.state is State.RUNNING and self.phase is Phase.FINISHED  # only later cells are left
        return Tone.GOOD if done else _TONES.get(self.state, Tone.WAITING)

    @property
    def state_words(self) -> str:
        """The state for a person, e.g. "paused, keeps the machine"."""
        if self.silent:
            return f"silent ({self.state})"
        if self.state is State.RUNNING and self.phase is Phase.SETUP:
            return "running the cells before promote()"
        if self.state is State.RUNNING and self.phase is Phase.FINISHED:
            return "training finished"
        return _WORDS[self.state]

    @property
    def explanation(self) -> str:
        """One sentence on why it is so, or "": the end's evidence for an end, else the reason."""
        if self.evidence is not None and self.evidence.message and (self.state.final or not self.why):
            return self.evidence.message
        return self.why

    @property
    def progress_words(self) -> str:
        """E.g. "123,000 of 500,000 steps (24.6 %)"."""
        if self.fraction is None:
            return f"{self.step:,} steps"
        return f"{self.step:,} of {self.total:,} steps ({100 * self.fraction:.1f} %)"

    @property
    def left_words(self) -> str:
        """E.g. "3 min 20 s left", or "" when nobody can tell."""
        left = self.seconds_left
        return "" if left is None else f"{duration(left)} left"

    @property
    def details(self) -> list[str]:
        """Short further facts, the most important first."""
        found = []
        if self.return_mean is not None and math.isfinite(self.return_mean):
            found.append(f"return {number(self.return_mean)} (last 100 episodes)")
        if self.steps_per_second and self.state is State.RUNNING and self.phase is not Phase.FINISHED:
            found.append(f"{number(self.steps_per_second)} steps/s")
        if self.attempt > 1:
            found.append(f"attempt {self.attempt}")
        if self.checkpoint is not None:
            found.append(f"checkpoint at {self.checkpoint:,}")
        if self.store not in ("", "ok"):
            found.append(f"store {self.store}")
        if self.upload_pending:
            found.append(f"{size(self.upload_pending)} to upload")
        return found


def duration(seconds: float) -> str:
    """Writes a duration with its two largest units: "3 min 20 s", "2 h 05 min", "4 d 3 h"."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    if minutes:
        return f"{minutes} min {rest:02d} s"
    return f"{rest} s"


def number(value: float) -> str:
    """Writes a number with four significant digits and thousands separators."""
    if not math.isfinite(value):
        return str(value)
    magnitude = abs(value)
    if magnitude >= 1000:
        return f"{value:,.0f}"
    if magnitude >= 100:
        return f"{value:.1f}"
    if magnitude >= 1:
        return f"{value:.2f}"
    return "0" if value == 0 else f"{value:.3g}"


def size(count: float) -> str:
    """Writes a number of bytes: "820 B", "1.4 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")
