"""What a person can ask of a run, and when it makes sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rlnb.run.control import Verb, await_acknowledgement, request
from rlnb.run.layout import RunLayout
from rlnb.run.status import State

ANSWER_WITHIN = 15.0
"""Seconds to wait for the supervisor's answer; it looks for requests about twice a second."""


@dataclass(frozen=True)
class Choice:
    """One button.

    Attributes:
        verb: what it asks.
        label: what stands on it.
        describe: one clause on what it does, for its tooltip and screen readers.
        states: where it can be asked.
    """

    verb: Verb
    label: str
    describe: str
    states: frozenset[State]


CHOICES = (
    Choice(
        Verb.PAUSE,
        "Pause (keeps the machine)",
        "halt at the next safe point; the kernel stays alive and can be inspected",
        frozenset({State.STARTING, State.RUNNING}),
    ),
    Choice(
        Verb.SUSPEND,
        "Suspend (frees it)",
        "write a checkpoint and end the processes; Resume starts them again",
        frozenset({State.STARTING, State.RUNNING, State.PAUSED}),
    ),
    Choice(
        Verb.RESUME,
        "Resume",
        "train on from where it halted",
        frozenset({State.PAUSED, State.SUSPENDED, State.FAILED, State.LOST}),
    ),
    Choice(
        Verb.STOP,
        "Stop",
        "write a checkpoint and end the run for good",
        frozenset({State.QUEUED, State.STARTING, State.RUNNING, State.PAUSED}),
    ),
)


@dataclass(frozen=True)
class Answer:
    """What came of an action."""

    ok: bool
    message: str


class Actions(Protocol):
    """Carries out what a button asks; `rlnb.Job` may bring its own for runs that live elsewhere."""

    def perform(self, verb: Verb, state: State) -> Answer:
        """Asks, waits for the answer, and returns it; raises an `RlnbError` when it cannot be asked."""


class RunActions:
    """Actions on a run of this machine: requests in its folder; a new attempt when no supervisor lives."""

    def __init__(self, layout: RunLayout, *, timeout: float = ANSWER_WITHIN) -> None:
        self.layout, self.timeout = layout, timeout

    def perform(self, verb: Verb, state: State) -> Answer:
        if verb is Verb.RESUME and not state.living:
            from rlnb.jobs.executors.local import LocalExecutor

            attempt = LocalExecutor().submit(self.layout)
            return Answer(True, f"Attempt {attempt} takes up the run from its newest checkpoint.")
        asked = request(self.layout, verb)
        answer = await_acknowledgement(self.layout, asked, timeout=self.timeout)
        if answer is None:
            return Answer(
                False,
                f"No answer to {verb} within {self.timeout:.0f} s; the request stays in {self.layout.control} "
                "and is carried out as soon as the supervisor reads it.",
            )
        return Answer(answer.ok, answer.message)
