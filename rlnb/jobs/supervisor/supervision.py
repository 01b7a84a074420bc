"""The life of one run under its supervisor: queue, attempts, retries, and the last upload."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rlnb import __version__, settings
from rlnb.errors import Superseded
from rlnb.jobs.supervisor.attempt import AttemptProcesses, reap
from rlnb.jobs.supervisor.clock import AwakeClock, Signals, Timer
from rlnb.jobs.supervisor.helm import Helm
from rlnb.jobs.supervisor.mirror import MirrorKeeper
from rlnb.jobs.supervisor.queue import Queue
from rlnb.jobs.supervisor.verdict import Verdict
from rlnb.jobs.supervisor.voice import Voice
from rlnb.jobs.supervisor.watch import AttemptWatch
from rlnb.jobs.worker.env import job_environment
from rlnb.run.claims import Claim, claim
from rlnb.run.layout import RunLayout
from rlnb.run.progress import Flag
from rlnb.run.record import RunRecord, read_record
from rlnb.run.status import EndKind, Evidence, State
from rlnb.run.writing import try_to_write

TICK = 0.1  # seconds between two looks; a child's end or a signal wakes at once
LONGEST_BACKOFF = 60.0


class Supervision:
    """Carries one run from its claim to its end.

    Args:
        layout: the run.
        record: what was asked.
        held: the claim on the attempt to begin with.
        signals: where preemption arrives.
        environ: what the mirror gets whole and the job through the allow-list.
    """

    def __init__(
        self,
        layout: RunLayout,
        record: RunRecord,
        held: Claim,
        signals: Signals,
        *,
        environ: Mapping[str, str],
    ) -> None:
        self.layout, self.record, self.signals, self.environ = layout, record, signals, environ
        self.claim = held
        self.voice = Voice(layout, held)
        self.helm = Helm(layout, least_free=settings.least_free())
        self.mirror = MirrorKeeper(layout)
        self.clock = AwakeClock()
        self.queue = Queue(layout.id, limit=settings.max_running())
        self.processes: AttemptProcesses | None = None

    def run(self, *, started_ns: int) -> None:
        """Supervises until the run has ended and is uploaded.

        Args:
            started_ns: when this supervisor was started; older requests no longer count.

        Raises:
            Superseded: a newer attempt owns the run; call `abandon`.
        """
        if self.claim.number > 1:
            self.helm.drop_stale(before_ns=started_ns)
        self.helm.tell(anew=True)
        self.mirror.serve(self.claim.number)
        self._record()
        verdict = self._attempts()
        self.voice.tell(
            str(verdict.state),
            verdict.evidence.message or str(verdict.state),
            evidence=str(verdict.evidence.kind),
        )
        self.voice.say(state=verdict.state, reason=verdict.evidence.message, evidence=verdict.evidence)
        self.queue.leave()
        self._upload_the_rest()

    def abandon(self, why: str) -> None:
        """Ends everything below this process and publishes nothing: the run is another's now.

        When it is another machine's, whoever looks at this working copy is told so; the mirror,
        which alone could publish that, is gone.
        """
        (self.processes or AttemptProcesses(self.layout, self.claim.number)).kill(spare=())
        if self.mirror.superseded and self.claim.holds():
            evidence = Evidence(EndKind.SUPERSEDED, why)
            self.voice.tell("superseded", why)
            self.voice.say(state=State.LOST, reason=why, evidence=evidence)

    # -- attempts -----------------------------------------------------------------------------
    def _attempts(self) -> Verdict:
        if self.layout.training_json.exists():
            message = "training had finished before; the later cells are not run again"
            return Verdict(State.COMPLETED, Evidence(EndKind.OK, message))
        retries, last, last_step = 0, None, newest_step(self.layout)
        while True:
            early = self._wait_in_queue()
            if early is not None:
                return early
            verdict = self._attempt()
            step = newest_step(self.layout)
            if not verdict.retry:
                return verdict
            if verdict.signature == last and step == last_step and verdict.repeats_by_itself:
                return verdict.failed_because("the same happened twice without a new checkpoint in between")
            if retries >= self.record.limits.retries:
                return verdict.failed_because(f"all {retries} retries are used") if retries else verdict
            retries, last, last_step = retries + 1, verdict.signature, step
            delay = min(LONGEST_BACKOFF, self.record.limits.backoff * 2.0 ** (retries - 1))
            where = "from the start" if step is None else f"from the checkpoint at step {step}"
            reason = f"retry {retries} of {self.record.limits.retries} in {delay:g} s, {where}: {verdict.evidence.message}"
            self.voice.tell("retry", reason, evidence=str(verdict.evidence.kind))
            self.voice.say(state=State.QUEUED, reason=reason, evidence=verdict.evidence, retries_used=retries)
            early = self._idle(delay)
            if early is not None:
                return early
            early = self._claim_next()
            if early is not None:
                return early
            self.mirror.serve(self.claim.number)

    def _attempt(self) -> Verdict:
        """Runs one attempt to its end; returns what follows from it."""
        number = self.claim.number
        self.record = read_record(self.layout)  # the attempt before may have completed it
        self.processes = AttemptProcesses(self.layout, number)
        self.helm.tell(anew=True)
        self.processes.start(
            job_environment(self.record, self.environ, root=self.layout.root, attempt=number)
        )  # fmt: skip
        self.voice.say(state=State.STARTING, reason="")
        self.voice.tell("attempt_started", f"Attempt {number} started.", worker=self.processes.pid)
        watch = AttemptWatch(self.layout, self.record, self.processes, self.helm, self.voice, self.clock)
        while self.processes.exit_code is None:
            beat = self._look()
            watch.look(beat=beat)
            if self.processes.exit_code is None:
                self.signals.wait(TICK)
        self.processes.kill(spare=self._mirror_pids())
        reap_into(self.processes, self.mirror)
        self.processes.close()
        self.claim.check()
        return watch.verdict(step=newest_step(self.layout))

    def _claim_next(self) -> Verdict | None:
        """Claims the next attempt once the disk has room for it; a verdict when somebody ends the run first."""
        while not try_to_write(self._claim):
            early = self._idle(TICK * 10)
            if early is not None:
                return early
        self.voice.take_over(self.claim)
        return None

    def _claim(self) -> None:
        self.claim = claim(self.layout, self.claim.number + 1, rlnb_version=__version__)

    # -- waiting --------------------------------------------------------------------------------
    def _wait_in_queue(self) -> Verdict | None:
        while (reason := self.queue.enter()) is not None:
            self.voice.say(state=State.QUEUED, reason=reason)
            early = self._idle(TICK * 5)
            if early is not None:
                return early
        return self._ended_before_start()

    def _idle(self, seconds: float) -> Verdict | None:
        """Waits without an attempt; a verdict when somebody ends the run meanwhile."""
        timer = Timer(self.clock)
        while timer.held(True) < seconds:
            early = self._ended_before_start()
            if early is not None:
                return early
            self._look()
            self.voice.say()
            self.signals.wait(min(TICK, seconds))
        return None

    def _ended_before_start(self) -> Verdict | None:
        if not self.helm.halting:
            return None
        step = newest_step(self.layout)
        newest = "" if step is None else f"; the checkpoint at step {step} is the newest"
        if self.helm.flag is Flag.STOP:
            return Verdict(State.STOPPED, Evidence(EndKind.STOPPED, f"stopped while no attempt ran{newest}"))
        return Verdict(
            State.SUSPENDED, Evidence(EndKind.SUSPENDED, f"suspended while no attempt ran{newest}")
        )

    def _look(self) -> bool:
        """One round of what is due in every state; returns whether it was time for a heartbeat."""
        self.clock.tick()
        self.claim.check()
        reap_into(self.processes, self.mirror)
        if self.mirror.superseded:
            raise Superseded(self._fenced_off())
        if (number := self.signals.preemption()) is not None:
            self.helm.preempt(number)
        beat = self.voice.say(upload_pending=self.mirror.pending_bytes, store=self.mirror.store)
        self.helm.hear(self.voice.events, trained=self.layout.training_json.exists(), thoroughly=beat)
        if beat:
            self.helm.look_at_disk()
            self._record()
        return beat

    def _record(self) -> None:
        """Records the run's processes, for whoever has to end them when this one is gone."""
        pids = {os.getpid(): "supervisor", **dict.fromkeys(self._mirror_pids(), "mirror")}
        if self.processes is not None and self.processes.exit_code is None:
            pids |= self.processes.roles(spare=self._mirror_pids())
        self.voice.record(pids)

    # -- the end ----------------------------------------------------------------------------
    def _upload_the_rest(self) -> None:
        """Stays until the mirror has sent everything, gives up, or the machine is wanted back."""
        while not ((self.mirror.done or self.mirror.gave_up) and self.voice.heard):
            self.clock.tick()
            self.claim.check()
            self.mirror.attend(reap(), ended=True)
            if self.mirror.superseded:
                raise Superseded(self._fenced_off())
            if self.voice.say(upload_pending=self.mirror.pending_bytes, store=self.mirror.store):
                self._record()
            if self.signals.preemption() is not None:
                self.mirror.end()
                break
            if not (self.mirror.done or self.mirror.gave_up) or not self.voice.heard:
                self.signals.wait(TICK * 5)
        # Or what was pending at the last heartbeat would be shown for ever.
        self.voice.say_at_once(upload_pending=self.mirror.pending_bytes, store=self.mirror.store)

    def _fenced_off(self) -> str:
        said = self.mirror.report.get("last_error") or ""
        return f"the store holds a newer attempt of {self.layout.id} than {self.claim.number}; it goes on there. {said}".strip()

    def _mirror_pids(self) -> list[int]:
        return [] if self.mirror.pid is None else [self.mirror.pid]


def reap_into(processes: AttemptProcesses | None, mirror: MirrorKeeper) -> None:
    """Collects ended children and tells those who wait for them."""
    exits = reap()
    if processes is not None:
        processes.note_exit(exits)
    mirror.attend(exits)


def newest_step(layout: RunLayout) -> int | None:
    """Returns the step of the newest checkpoint that has its manifest, without reading it."""
    steps = [step for step, _, folder in layout.checkpoint_folders() if (folder / "manifest.json").exists()]
    return max(steps, default=None)
