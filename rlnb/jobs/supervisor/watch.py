"""Watching one attempt: what state it is in, and when it must be ended."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from rlnb.jobs.supervisor.attempt import AttemptProcesses
from rlnb.jobs.supervisor.clock import AwakeClock, Timer
from rlnb.jobs.supervisor.helm import Helm
from rlnb.jobs.supervisor.memory import MemoryWatch
from rlnb.jobs.supervisor.verdict import AttemptEnd, Verdict, Wish, judge
from rlnb.jobs.supervisor.voice import Voice
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.progress import Flag, Phase, Progress, read_progress
from rlnb.run.record import RunRecord
from rlnb.run.status import State

#: Seconds a worker has for saving the notebook and ending the kernel.
ENDING = 30.0

_IN_TRAINING = (
    Phase.TRAINING, Phase.PAUSED, Phase.SUSPENDED, Phase.STOPPED, Phase.FINISHED, Phase.BROKEN_OFF,
)  # fmt: skip
_AT_SAFE_POINT = {Flag.SUSPEND: (Phase.SUSPENDED, Phase.STOPPED), Flag.STOP: (Phase.STOPPED, Phase.SUSPENDED)}


class AttemptWatch:
    """Follows training's progress and ends the attempt when it is time."""

    def __init__(
        self, layout: RunLayout, record: RunRecord, processes: AttemptProcesses,
        helm: Helm, voice: Voice, clock: AwakeClock,
    ) -> None:  # fmt: skip
        self.layout, self.record, self.processes = layout, record, processes
        self.helm, self.voice = helm, voice
        self.trained_in = False
        self._memory = MemoryWatch()
        self._progress: Progress | None = None
        self._seen: tuple[int, int] | None = None
        self._halting, self._paused, self._hung = Timer(clock), Timer(clock), Timer(clock)
        self._ending, self._training = Timer(clock), Timer(clock)
        self._over: Wish | None = None
        self._told_ending = self._asked = False

    @property
    def phase(self) -> Phase | None:
        """What training says it does; None before this attempt's `promote()`."""
        return self._progress.phase if self._progress else None

    def look(self, *, beat: bool) -> None:
        """Looks once; says the state and ends what must end."""
        self._read_progress(force=beat)
        self._mind_the_clocks()
        self.helm.tell()
        state, reason = self._state()
        seen = self._progress
        if seen is None:
            self.voice.say(state=state, reason=reason)
        else:
            self.voice.say(
                state=state, reason=reason, step=seen.step, total=seen.total, return_mean=seen.return_mean
            )  # fmt: skip

    def verdict(self, *, step: int | None) -> Verdict:
        """Judges the attempt's end.

        Args:
            step: of the newest checkpoint.
        """
        self._read_progress(force=True)
        assert self.processes.exit_code is not None
        wish = self._over or {Flag.SUSPEND: Wish.SUSPEND, Flag.STOP: Wish.STOP}.get(self.helm.flag, Wish.RUN)
        end = AttemptEnd(
            exit_code=self.processes.exit_code,
            worker=self._worker_report(),
            trained=self.layout.training_json.exists(),
            in_training=self.trained_in,
            wish=wish,
            at_safe_point=self.phase in (Phase.SUSPENDED, Phase.STOPPED, Phase.PAUSED),
            step=step,
            killed_by_us=self.processes.killed,
            memory=self._memory.evidence(),
        )
        verdict = judge(end)
        if self.helm.reason and verdict.state in (State.SUSPENDED, State.STOPPED):
            message = f"{verdict.evidence.message} ({self.helm.reason})"
            return replace(verdict, evidence=replace(verdict.evidence, message=message))
        return verdict

    def _read_progress(self, *, force: bool) -> None:
        try:
            stat = os.stat(self.layout.progress)
        except FileNotFoundError:
            return
        seen = stat.st_mtime_ns, stat.st_ino
        if seen == self._seen and not force:
            return
        progress = read_progress(self.layout)
        if progress is None or progress.attempt != self.processes.attempt:
            return  # torn, or an earlier attempt's
        self._seen, self._progress = seen, progress
        self.trained_in = self.trained_in or progress.phase in _IN_TRAINING

    def _state(self) -> tuple[State, str]:
        if self.helm.halting or self._over:
            return State.STOPPING, self.helm.reason or str(self._over or "")
        match self.phase:
            case None | Phase.SETUP:
                return State.STARTING, self.helm.reason
            case Phase.PAUSED:
                return State.PAUSED, self.helm.reason
            case Phase.FINISHED:
                return State.RUNNING, "training has finished; the later cells run"
            case Phase.BROKEN_OFF:
                return State.RUNNING, "an error has ended training; the notebook comes to its end"
            case _:
                return State.RUNNING, self.helm.reason

    def _mind_the_clocks(self) -> None:
        limits, helm, phase = self.record.limits, self.helm, self.phase
        if self._paused.held(phase is Phase.PAUSED and helm.flag is Flag.PAUSE) > limits.hold:
            helm.want(Flag.SUSPEND, f"it was paused for {limits.hold:g} s and the machine is freed")
        if phase is Phase.SUSPENDED and not helm.halting:
            # Nobody here asked: an interrupt reached the kernel, which has made its checkpoint and waits for its end.
            helm.want(Flag.SUSPEND, "training was interrupted by SIGINT")
        step = self._progress.step if self._progress else 0
        # On a full disk training waits, and cannot write down that it does.
        stepping = phase is Phase.TRAINING and not helm.halting and not helm.disk_full
        if self._hung.held(stepping, key=step) > limits.hang:
            self._end_for(Wish.HANG, f"training has made no step since step {step} for {limits.hang:g} s")
        hours = (self.record.experiment or {}).get("max_hours")
        # Training ends by itself at its time limit; this is for one that does not come to it.
        over = self._training.held(phase is Phase.TRAINING)
        if isinstance(hours, int | float) and over > hours * 3600 + limits.grace:
            self._end_for(Wish.TIMEOUT, f"training went on after its limit of {hours:g} h")
        halting = self._halting.held(helm.halting, key=helm.flag)
        if helm.halting:
            # Before training and after it there is nothing to wait for.
            idle = phase in (None, Phase.SETUP, Phase.FINISHED) or self.layout.training_json.exists()
            if idle or phase in _AT_SAFE_POINT[helm.flag]:
                self._ask_to_end()
            elif halting > limits.grace:
                self._tell_ending(f"no safe point within {limits.grace:g} s; training is ended where it is")
                self._ask_to_end()
        if self._ending.held(self._asked) > ENDING:
            self.processes.kill_worker()

    def _ask_to_end(self) -> None:
        self._asked = True
        self.processes.ask_to_end()

    def _end_for(self, wish: Wish, message: str) -> None:
        if self._over is None:
            self._over = wish
            self._tell_ending(message)
            self._ask_to_end()

    def _tell_ending(self, message: str) -> None:
        if not self._told_ending:
            self._told_ending = True
            self.voice.tell("ending", message)

    def _worker_report(self) -> dict[str, Any] | None:
        report = read_json(self.layout.worker_json)
        return (
            report
            if report and report.get("attempt") == self.processes.attempt and "outcome" in report
            else None
        )
