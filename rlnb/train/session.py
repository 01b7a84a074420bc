"""One attempt's training in its run folder: flags, checkpoints, metrics, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from rlnb.run.checkpoints import Checkpoint
from rlnb.run.events import EventLog
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.layout import RunLayout
from rlnb.run.progress import Flag, FlagReader, Phase
from rlnb.run.stop import StopWatch
from rlnb.run.writing import is_full, try_to_write
from rlnb.train.interrupts import Interrupts
from rlnb.train.recorder import Recorder
from rlnb.train.sb3 import SB3Trainer
from rlnb.train.seam import EpisodeEnd
from rlnb.train.writer import CheckpointWriter

LOOK_EVERY = 0.02  # seconds between two looks at flag and clocks
PROGRESS_EVERY = 1.0  # a file renamed over another: milliseconds on a busy disk
POLL_EVERY = 0.1  # while paused
RETRY_EVERY = 2.0  # while the disk is full


class EndedBy(StrEnum):
    """Why training ended."""

    STEPS = "total_timesteps"
    RULE = "stop_when"
    TIME = "max_hours"
    CALLBACK = "callback"  # a callback of the user returned False


class Session:
    """Watches one attempt from safe point to safe point.

    Args:
        trainer: set up already.
        layout: the run folder.
        attempt: this attempt.
        exact: True, or "not exact: …", as it will stand in every manifest.
        conditions: what it runs under, for the manifests.
        block: what to do when the supervisor is to end this process; blocks for ever.
    """

    def __init__(
        self,
        trainer: SB3Trainer,
        *,
        layout: RunLayout,
        attempt: int,
        exact: bool | str,
        conditions: Mapping[str, Any],
        block: Callable[[Phase], None],
    ) -> None:
        spec: ExperimentSpec = trainer.spec
        self.trainer, self.layout, self.attempt, self.spec = trainer, layout, attempt, spec
        self.exact, self.conditions, self.block = exact, dict(conditions), block
        self.events = EventLog(layout, attempt=attempt)
        window = int(spec.hyperparameters.get("stats_window_size", 100))
        self.recorder = Recorder(layout, attempt, total=spec.total_timesteps, window=window)
        self.watch = None if spec.stop_rule is None else StopWatch(spec.stop_rule)
        self.writer = CheckpointWriter(
            layout, attempt, spec.checkpoint, replay=trainer.replay, written=self._checkpoint_written
        )
        self.ended_by: EndedBy | None = None
        self.halted = False  # checkpointed on somebody's word; whatever follows is this process's end
        self._flags = FlagReader(layout)
        self.interrupts = Interrupts()
        self._trained_before = 0.0  # seconds of training in earlier attempts
        self._started = time.monotonic()
        self._next_look = self._next_progress = 0.0
        self._every_steps = spec.checkpoint.every_steps
        minutes = spec.checkpoint.every_minutes
        self._every_seconds = None if minutes is None else minutes * 60
        self._next_step: float = float("inf")
        self._next_time: float = float("inf")
        self._arrived = False
        self.resumed_from: int | None = None
        self._initial_before: Mapping[str, Any] | None = None

    def expect(self, checkpoint: Checkpoint) -> None:
        """Says which checkpoint the first safe point will find restored."""
        self.resumed_from = checkpoint.step
        self._initial_before = checkpoint.meta.get("initial")

    def at_safe_point(self) -> bool:
        """Looks whether anything is due; returns whether training goes on."""
        now = time.monotonic()
        step = self.trainer.step
        if not self._arrived:
            self._arrive(now, step)
        if self.watch is not None and self.watch.fired:
            self.ended_by = EndedBy.RULE
            return False
        if step >= self._next_step:
            self._checkpoint_when_free(now)
        if now < self._next_look and not self.interrupts.noted:
            return True
        self._next_look = now + LOOK_EVERY
        return self._look(now, step)

    def at_episode(self, end: EpisodeEnd) -> None:
        """Takes in one finished episode."""
        self._record(lambda: self.recorder.episode(end))
        if self.watch is not None:
            self.watch.episode(self.recorder.stop_metrics(end))

    def checkpoint(self) -> Checkpoint:
        """Writes a checkpoint and waits until it is on the disk; a full disk is waited out."""
        self.wait_for_writer()
        self._start_checkpoint(time.monotonic())
        self.wait_for_writer()
        assert self.writer.newest is not None
        return self.writer.newest

    def wait_for_writer(self) -> None:
        """Waits until the writer is done; while the disk is full training is paused, which is said."""
        self.writer.wait()
        if self.writer.disk_full:
            self._wait_for_room(lambda: not self.writer.retry())

    def _record(self, write: Callable[[], None]) -> None:
        """Writes rows; nothing is left out of a run's history, so a full disk makes training wait."""
        try:
            write()
        except OSError as error:
            if not is_full(error):
                raise
            self._wait_for_room(lambda: try_to_write(self.recorder.log.flush))

    def _wait_for_room(self, retry: Callable[[], bool]) -> None:
        full = (
            f"The disk of {self.layout.root} is full, so training waits; make room and it goes on by itself."
        )
        step, said, there = self.trainer.step, False, False
        while not there:
            said = said or try_to_write(lambda: self.events.append("disk_full", full, step=step))
            self.progress(Phase.PAUSED)
            time.sleep(RETRY_EVERY)
            there = retry()
        if not said:
            try_to_write(lambda: self.events.append("disk_full", full, step=step))
        try_to_write(
            lambda: self.events.append("disk_ok", "The disk has room again; training goes on.", step=step)
        )
        self.progress(Phase.TRAINING)

    def at_values(self, step: int, values: Mapping[str, Any]) -> None:
        """Writes down what the trainer logs."""
        self._record(lambda: self.recorder.train(step, values))

    def last_values(self) -> None:
        """Has the rest of what was logged written down; nothing where an earlier attempt had done it."""
        if self.recorder.row_step < self.trainer.step:
            self.trainer.tell_rest()

    def progress(self, phase: Phase) -> None:
        """Tells the supervisor where training is."""
        newest = self.writer.newest
        at = newest.step if newest is not None else self.resumed_from
        try_to_write(lambda: self.recorder.progress(phase, self.trainer.step, checkpoint=at))

    @property
    def seconds(self) -> float:
        """Seconds of training, over all attempts."""
        return self._trained_before + time.monotonic() - self._started

    def extra(self) -> dict[str, Any]:
        """What the session itself has to remember."""
        assert self.trainer.probe is not None
        return {
            "recorder": self.recorder.state_dict(),
            "watch": None if self.watch is None else self.watch.state_dict(),
            "seconds": self.seconds,
            "env_state": self.trainer.probe.kind.value,
            "initial": self.trainer.initial,
            # Steps, a rule and the time tell by themselves that training has ended.
            "ended_by": EndedBy.CALLBACK.value if self.ended_by is EndedBy.CALLBACK else None,
        }

    def remember(self, extra: Mapping[str, Any]) -> None:
        """Goes on from what `extra` returned."""
        self.recorder.load_state_dict(extra["recorder"])
        if self.watch is not None and extra["watch"] is not None:
            self.watch.load_state_dict(extra["watch"])
        self._trained_before = float(extra["seconds"])

    def _arrive(self, now: float, step: int) -> None:
        """The first safe point of this attempt: environments are reset, a checkpoint is restored."""
        self._arrived = True
        self._started = now
        self._record(lambda: self.recorder.rewind(step))
        if self.trainer.restored is not None:
            self.remember(self.trainer.restored)
        if self._initial_before is not None and self._initial_before != self.trainer.initial:
            self.events.append(
                "initial_differs",
                "The environments begin with other observations or states than at the first attempt, so their making "
                "depends on something outside the run (time, a file, another version).",
                step=step, before=self._initial_before, now=self.trainer.initial,
            )  # fmt: skip
        elif self._initial_before is None:
            self.events.append(
                "initial",
                "CRC32 of the first observations and states per environment.",
                step=0,
                **self.trainer.initial,
            )
        self._plan(now, step)
        self.progress(Phase.TRAINING)

    def _plan(self, now: float, step: int) -> None:
        if self._every_steps is not None:
            self._next_step = (step // self._every_steps + 1) * self._every_steps
        if self._every_seconds is not None:
            self._next_time = now + self._every_seconds

    def _look(self, now: float, step: int) -> bool:
        if now >= self._next_time:
            self._checkpoint_when_free(now)
        elif self.writer.disk_full and not self.writer.busy:
            self.wait_for_writer()
        if now >= self._next_progress:
            self._next_progress = now + PROGRESS_EVERY
            self.progress(Phase.TRAINING)
        if self.spec.max_hours is not None and self.seconds >= self.spec.max_hours * 3600:
            self.ended_by = EndedBy.TIME
            return False
        flag = self._flags.read()
        if self.interrupts.take():
            # An interrupt says "at the next safe point" as well; without a word of the supervisor it suspends,
            # because that loses nothing.
            flag = Flag.SUSPEND if flag is Flag.RUN else flag
        if flag is not Flag.RUN:
            self._obey(flag)
        return True

    def _obey(self, flag: Flag) -> None:
        started = time.monotonic()
        self.checkpoint()
        if flag is Flag.PAUSE:
            self.recorder.say("paused", step=self.trainer.step)
            flag = self._hold()
        if flag is Flag.SUSPEND or flag is Flag.STOP:
            phase = Phase.SUSPENDED if flag is Flag.SUSPEND else Phase.STOPPED
            self.recorder.say(phase.value, step=self.trainer.step)
            self.progress(phase)
            self.halted = True
            self.block(phase)
        self.progress(Phase.TRAINING)
        self.recorder.say("training goes on", step=self.trainer.step)
        self._trained_before -= time.monotonic() - started  # waiting is not training

    def _hold(self) -> Flag:
        """Waits in place, the kernel alive, until the supervisor says something else."""
        self.progress(Phase.PAUSED)
        while (flag := self._flags.read()) is Flag.PAUSE:
            time.sleep(POLL_EVERY)
            self.interrupts.take()
        return flag

    def _checkpoint_when_free(self, now: float) -> None:
        if self.writer.busy:
            return  # the one before is still being written: the next safe point will do
        self.wait_for_writer()
        self._start_checkpoint(now)

    def _start_checkpoint(self, now: float) -> None:
        snapshot = self.trainer.snapshot(self.extra())
        meta = {
            "return_mean": self.recorder.mean("own"),
            "exact": self.exact,
            "versions": self.conditions,
            "episodes": self.recorder.episodes,
            "initial": self.trainer.initial,
            "fingerprint": self.spec.fingerprint(),
        }
        self.writer.start(snapshot, meta)
        self._plan(now, snapshot.step)

    def _checkpoint_written(self, checkpoint: Checkpoint) -> None:
        # In the writing thread; on a full disk the row is kept and goes out with the next one.
        try_to_write(lambda: self.recorder.checkpoint(checkpoint.step))
