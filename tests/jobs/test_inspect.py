from __future__ import annotations

import json

import pytest

from rlnb.errors import RunError, UsageError
from rlnb.jobs.executors.local import LocalExecutor
from rlnb.jobs.inspect import inspect, visible
from rlnb.run.control import Verb, request
from rlnb.run.events import read_events
from rlnb.run.status import State

TRAIN = "from fake_trainer import *\nsteps, shape = [], (3, 4)\nprint('before')\ntrain(100_000, hook=steps.append)"


@pytest.fixture
def training(runs):
    layout = runs.make(TRAIN)
    LocalExecutor().submit(layout)
    runs.until_step(layout, 3)
    return layout


def test_a_running_job_is_looked_into(training, runs):
    assert inspect(training, "shape") == "(3, 4)"
    assert int(inspect(training, "len(steps)")) >= 3
    names = visible(training)
    assert names["steps"] == "builtins.list"
    assert names["shape"] == "builtins.tuple"
    assert "exit" not in names
    runs.until(training, lambda _: len([e for e in read_events(training) if e.kind == "inspected"]) == 3)
    request(training, Verb.STOP)
    runs.until_state(training, State.STOPPED)
    book = json.loads(training.output(1).read_text())
    assert book["cells"][0]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["before\n"]}]


def test_a_paused_job_can_be_looked_into(training, runs):
    request(training, Verb.PAUSE)
    runs.until_state(training, State.PAUSED)
    assert inspect(training, "steps[-1] == len(steps)") == "True"


def test_an_expression_that_raises_is_told(training):
    with pytest.raises(
        RunError, match="'nothing_here' raised NameError in the job: name 'nothing_here' is not defined"
    ):
        inspect(training, "nothing_here")


def test_only_expressions_are_evaluated(training):
    with pytest.raises(UsageError, match=r"'steps = \[\]' is not one Python expression"):
        inspect(training, "steps = []")


def test_without_a_kernel_there_is_nothing_to_look_into(runs):
    layout = runs.make("pass")
    with pytest.raises(RunError, match=f"No kernel of {layout.id} runs on this machine: the run is queued"):
        inspect(layout, "1")
    LocalExecutor().submit(layout)
    runs.ended(layout)
    with pytest.raises(RunError, match=f"No kernel of {layout.id} runs on this machine: the run is failed"):
        visible(layout)
