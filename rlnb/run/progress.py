"""How training tells the supervisor where it is, and how the supervisor asks it to halt.

Two small files below `local/`, each with one writer: the kernel writes `progress.json`, the
supervisor writes `flag.json`. Training looks at the flag only at its safe points.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from rlnb.run.layout import RunLayout, read_json, write_json


class Phase(StrEnum):
    """What the kernel is doing, as training itself sees it."""

    SETUP = "setup"
    TRAINING = "training"
    PAUSED = "paused"
    SUSPENDED = "suspended"  # checkpointed; the kernel now waits to be ended
    STOPPED = "stopped"  # likewise, for good
    FINISHED = "finished"  # training.json exists; later cells run
    BROKEN_OFF = "broken_off"  # an error left training; the cell still reports it, or has caught it


class Flag(StrEnum):
    """What the supervisor wants of training at its next safe point."""

    RUN = "run"
    PAUSE = "pause"
    SUSPEND = "suspend"
    STOP = "stop"


@dataclass(frozen=True)
class Progress:
    """Training's last word about itself.

    Attributes:
        phase: see `Phase`.
        attempt: the attempt that wrote it.
        step: environment steps done, over all attempts.
        total: environment steps asked for.
        time: `time.time()` when it was written.
        return_mean: mean return of the last 100 episodes, environment's own reward, or None.
        steps_per_second: of the last seconds, or None.
        checkpoint: step of the newest checkpoint, or None.
    """

    phase: Phase
    attempt: int
    step: int = 0
    total: int = 0
    time: float = 0.0
    return_mean: float | None = None
    steps_per_second: float | None = None
    checkpoint: int | None = None


def write_progress(layout: RunLayout, progress: Progress) -> None:
    """Publishes progress; not flushed to disk, since it matters only while the machine is up."""
    data: dict[str, Any] = {**asdict(progress), "time": progress.time or time.time()}
    write_json(layout.progress, data, durable=False)


def read_progress(layout: RunLayout) -> Progress | None:
    """Returns training's last word, or None before it has spoken."""
    data = read_json(layout.progress)
    if data is None:
        return None
    known = {key: data[key] for key in Progress.__dataclass_fields__ if key in data}
    known["phase"] = Phase(known["phase"])
    return Progress(**known)


def write_flag(layout: RunLayout, flag: Flag) -> None:
    """Asks training to do something at its next safe point."""
    write_json(layout.flag, {"flag": str(flag), "time": time.time()}, durable=False)


class FlagReader:
    """Reads the flag at a safe point for the price of one `stat` (about a microsecond)."""

    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout
        self._path = os.fspath(layout.flag)
        self._seen: tuple[int, int] | None = None
        self._flag = Flag.RUN

    def read(self) -> Flag:
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            return Flag.RUN
        seen = (stat.st_mtime_ns, stat.st_ino)
        if seen != self._seen:
            data = read_json(self._layout.flag)
            if data is not None and data.get("flag") in list(Flag):
                self._seen, self._flag = seen, Flag(data["flag"])
        return self._flag
