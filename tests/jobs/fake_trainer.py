"""Stands in for the trainer: speaks the same protocol through the run folder, without torch.

The tests put it into the bundle, so it is imported by the cells of a real kernel.
"""

from __future__ import annotations

import signal
import time

from rlnb.run.events import EventLog
from rlnb.run.identity import current
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.progress import Flag, FlagReader, Phase, Progress, write_progress

job = current()
layout = RunLayout(job.root) if job else None
_interrupts: list[int] = []


def newest() -> int:
    """The step of the newest checkpoint, 0 when there is none."""
    steps = [step for step, _, folder in layout.checkpoint_folders() if (folder / "manifest.json").exists()]
    return max(steps, default=0)


def checkpoint(step: int) -> None:
    about = {
        "format": 1,
        "step": step,
        "attempt": job.attempt,
        "files": [],
        "weights_sha256": "0",
        "exact": True,
    }
    write_json(layout.checkpoint(step, job.attempt) / "manifest.json", {**about, "time": time.time()})


def say(phase: Phase, step: int, total: int) -> None:
    write_progress(
        layout, Progress(phase, job.attempt, step, total, return_mean=float(step), checkpoint=newest())
    )


def interrupted() -> bool:
    """Whether an interrupt has come; it is only noted, as the real trainer does."""
    return bool(_interrupts)


def wait_for_end(phase: Phase, step: int, total: int) -> None:
    checkpoint(step)
    say(phase, step, total)
    while True:
        time.sleep(0.05)


def train(total: int = 20, *, pause: float = 0.01, every: int = 5, hook=None, deaf: bool = False) -> None:
    """Counts steps; checkpoints every few; obeys the flag unless it is deaf."""
    signal.signal(signal.SIGINT, lambda number, frame: _interrupts.append(number))
    say(Phase.SETUP, newest(), total)
    step, flags = newest(), FlagReader(layout)
    EventLog(layout, attempt=job.attempt).append("trained_from", f"from {step}", step=step)
    say(Phase.TRAINING, step, total)
    while step < total:
        flag = Flag.RUN if deaf else flags.read()
        if flag is Flag.PAUSE:
            checkpoint(step)
            say(Phase.PAUSED, step, total)
            while (flag := flags.read()) is Flag.PAUSE:
                time.sleep(0.02)
            say(Phase.TRAINING, step, total)
        if flag is Flag.SUSPEND or interrupted():
            wait_for_end(Phase.SUSPENDED, step, total)
        if flag is Flag.STOP:
            wait_for_end(Phase.STOPPED, step, total)
        time.sleep(pause)
        step += 1
        if hook is not None:
            try:
                hook(step)
            except BaseException:
                say(Phase.BROKEN_OFF, step, total)
                raise
        say(Phase.TRAINING, step, total)
        if step % every == 0:
            checkpoint(step)
    write_json(layout.training_json, {"step": step, "attempt": job.attempt})
    say(Phase.FINISHED, step, total)
