from __future__ import annotations

import threading

import pytest

from rlnb.run.control import Verb, pending
from rlnb.run.status import State
from rlnb.view.actions import CHOICES, RunActions


def enabled(state: State) -> list[str]:
    return [choice.label for choice in CHOICES if state in choice.states]


def test_the_buttons():
    assert [choice.label for choice in CHOICES] == [
        "Pause (keeps the machine)", "Suspend (frees it)", "Resume", "Stop",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "labels"),
    [
        (State.RUNNING, ["Pause (keeps the machine)", "Suspend (frees it)", "Stop"]),
        (State.PAUSED, ["Suspend (frees it)", "Resume", "Stop"]),
        (State.SUSPENDED, ["Resume"]),
        (State.STOPPING, []),
        (State.COMPLETED, []),
        (State.STOPPED, []),
        (State.FAILED, ["Resume"]),
        (State.LOST, ["Resume"]),
        (State.QUEUED, ["Stop"]),
    ],
)
def test_only_what_applies_can_be_asked(state, labels):
    assert enabled(state) == labels


def test_the_supervisors_answer_comes_back(run, until):
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(RunActions(run.layout).perform(Verb.PAUSE, State.RUNNING))
    )
    asking.start()
    until(lambda: pending(run.layout))
    assert run.answer_requests() == [Verb.PAUSE]
    asking.join(10)
    assert answers[0].ok
    assert answers[0].message == f"pause accepted at step {run.step:,}"


def test_without_an_answer_it_says_what_happens_next(run):
    answer = RunActions(run.layout, timeout=0.0).perform(Verb.STOP, State.RUNNING)
    assert not answer.ok
    assert answer.message.startswith("No answer to stop within 0 s; the request stays in ")
    assert [request.verb for request in pending(run.layout)] == [Verb.STOP]
