"""A run folder that grows like a real one, written by the real writers, without any training.

Readers of run folders (views, listings, panels) are tested against it in milliseconds. The numbers are
made up, but behave: returns rise and level off, losses fall, speed varies.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace

from rlnb.run.claims import claim
from rlnb.run.control import Verb, acknowledge, pending
from rlnb.run.events import EventLog
from rlnb.run.host import ProcessIdentity, utc_now
from rlnb.run.layout import RunLayout
from rlnb.run.metrics import JsonlMetricLog
from rlnb.run.progress import Phase, Progress, write_progress
from rlnb.run.record import RunRecord, write_record
from rlnb.run.status import EndKind, Evidence, State, Status, write_status


class SyntheticRun:
    """Writes a made-up PPO run.

    Args:
        layout: the folder to write.
        total: environment steps asked for.
        name: the experiment's name.
        terms: names of reward terms; with none, the environment's own reward is used.
        seed: of the made-up numbers.
        level: the return that the curve levels off at.
    """

    ROLLOUT = 256

    def __init__(
        self,
        layout: RunLayout,
        *,
        total: int = 100_000,
        name: str = "lander",
        terms: tuple[str, ...] = ("progress", "fuel", "landing"),
        seed: int = 0,
        level: float = 240.0,
    ) -> None:
        self.layout, self.total, self.terms, self.level = layout, total, terms, level
        self.step = 0
        self.attempt = 0
        self._random = random.Random(seed)
        self._log: JsonlMetricLog | None = None
        self._status = Status(State.QUEUED, 0, ProcessIdentity.of(), total=total)
        self._checkpoint: int | None = None
        experiment = {
            "name": name,
            "env": {"kind": "id", "value": "LunarLander-v3", "kwargs": {}},
            "algo": "PPO",
            "total_timesteps": total,
            "seed": seed,
            "tags": [],
        }
        write_record(
            layout,
            RunRecord(
                id=layout.id,
                name=name,
                created=utc_now(),
                rlnb="0",
                owner={"user": "test", "host": self._status.supervisor.host},
                store={"url": f"file://{layout.root.parent}", "exclusive": True},
                notebook={"path": "lander.ipynb", "folder": "."},
                parameters={"seed": seed},
                experiment=experiment,
                fingerprint="0" * 16,
            ),
        )

    def begin(self, *, resume_at: int | None = None) -> None:
        """Starts an attempt; `resume_at` takes up the run from that step."""
        self.attempt += 1
        claim(self.layout, self.attempt, rlnb_version="0")
        self._log = JsonlMetricLog(self.layout, self.attempt)
        if resume_at is not None:
            self.step = resume_at
            self._log.append({"kind": "rewind", "step": resume_at, "attempt": self.attempt})
        self._tell(State.RUNNING, started=utc_now(), evidence=None)
        self._progress(Phase.TRAINING)
        EventLog(self.layout, attempt=self.attempt).append(
            "started", f"Attempt {self.attempt} began.", step=self.step
        )

    def advance(self, steps: int) -> None:
        """Trains for about that many steps."""
        end = min(self.total, self.step + steps)
        while self.step < end:
            self._rollout(min(self.ROLLOUT, end - self.step))
        self._tell(State.RUNNING)
        self._progress(Phase.TRAINING)

    def checkpoint(self) -> None:
        """Marks a checkpoint at the present step (the row only; no payload is written)."""
        assert self._log is not None, "call begin() first"
        self._checkpoint = self.step
        self._log.append({"kind": "checkpoint", "step": self.step})

    def become(self, state: State, reason: str = "") -> None:
        """Enters a state other than an end: paused, suspended, running …"""
        self._tell(state, reason=reason)
        phases = {State.PAUSED: Phase.PAUSED, State.SUSPENDED: Phase.SUSPENDED, State.RUNNING: Phase.TRAINING}
        if state in phases:
            self._progress(phases[state])

    def end(self, state: State = State.COMPLETED, message: str = "", *, upload_pending: int = 0) -> None:
        """Ends the run; `upload_pending` bytes still wait for the store."""
        kinds = {State.COMPLETED: EndKind.OK, State.STOPPED: EndKind.STOPPED}
        if state is State.COMPLETED:
            self._progress(Phase.FINISHED)
        evidence = Evidence(kinds.get(state, EndKind.CELL_ERROR), message)
        self._tell(state, evidence=evidence, upload_pending=upload_pending)

    def answer_requests(self) -> list[Verb]:
        """Acts as the supervisor on requests that wait; returns their verbs."""
        states = {
            Verb.PAUSE: State.PAUSED,
            Verb.SUSPEND: State.SUSPENDED,
            Verb.RESUME: State.RUNNING,
            Verb.STOP: State.STOPPED,
        }
        answered = []
        for asked in pending(self.layout):
            acknowledge(self.layout, asked, ok=True, message=f"{asked.verb} accepted at step {self.step:,}")
            if asked.verb is Verb.STOP:
                self.end(State.STOPPED, "Stopped on request.")
            elif asked.verb in states:
                self.become(states[asked.verb])
            answered.append(asked.verb)
        return answered

    def grow(self, *, seconds: float, every: float = 0.1) -> None:
        """Trains in real time until the total is reached after about `seconds`, obeying requests.

        Returns early when it is suspended or stopped.
        """
        ticks = max(1, round(seconds / every))
        stride = math.ceil((self.total - self.step) / ticks)
        tick = 0
        while self.step < self.total and self._status.state.living:
            time.sleep(every)
            self.answer_requests()
            if self._status.state is State.RUNNING:
                tick += 1
                self.advance(stride)
                if tick % 10 == 0:
                    self.checkpoint()
        if self._status.state.living:
            self.end()

    # -- made-up numbers ---------------------------------------------------------------------
    def _rollout(self, steps: int) -> None:
        assert self._log is not None, "call begin() first"
        start, skill = self.step, 0.0
        while self.step < start + steps:
            skill = 1 / (1 + math.exp(-10 * (self.step / self.total - 0.35)))
            length = max(20, int(self._random.gauss(90 + 160 * skill, 12)))
            self.step = min(self.total, self.step + length)
            self._episode(skill, length)
            if self.step >= self.total:
                break
        self._log.append(
            {
                "kind": "train",
                "step": self.step,
                "train/loss": 40 * math.exp(-3 * skill) * self._random.uniform(0.6, 1.5),
                "train/value_loss": 80 * math.exp(-3 * skill) * self._random.uniform(0.6, 1.5),
                "train/policy_gradient_loss": self._random.gauss(-0.012 * (1 - 0.6 * skill), 0.003),
                "train/entropy_loss": -(1.38 - 0.9 * skill + self._random.gauss(0, 0.02)),
                "train/approx_kl": abs(self._random.gauss(0.012, 0.004)),
                "speed/steps_per_second": self._random.gauss(1900, 90),
                "memory/rss_mb": 412.0,
            }
        )

    def _episode(self, skill: float, length: int) -> None:
        assert self._log is not None
        own = -180 + (self.level + 180) * skill + self._random.gauss(0, 45 - 20 * skill)
        row: dict[str, float | int | str] = {
            "kind": "episode",
            "step": self.step,
            "episode/return_env": own,
            "episode/length": length,
            "episode/env": 0,
        }
        if self.terms:
            parts = {term: own * (0.5 / (place + 1)) - 30 * place for place, term in enumerate(self.terms)}
            row |= {f"reward/{term}": value for term, value in parts.items()}
            row["episode/return"] = sum(parts.values())
        else:
            row["episode/return"] = own
        self._log.append(row)

    def _tell(self, state: State, **changes: object) -> None:
        skill = 1 / (1 + math.exp(-10 * (self.step / self.total - 0.35)))
        self._status = replace(
            self._status,
            state=state,
            attempt=self.attempt,
            heartbeat=self._status.heartbeat + 1,
            step=self.step,
            return_mean=-180 + (self.level + 180) * skill,
            **{"reason": "", **changes},  # type: ignore[arg-type]
        )
        write_status(self.layout, self._status)

    def _progress(self, phase: Phase) -> None:
        write_progress(
            self.layout,
            Progress(
                phase,
                self.attempt,
                self.step,
                self.total,
                return_mean=self._status.return_mean,
                steps_per_second=1900.0,
                checkpoint=self._checkpoint,
            ),
        )
