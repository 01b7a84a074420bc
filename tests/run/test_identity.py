from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlnb.run import identity
from rlnb.run.identity import VARIABLE, JobIdentity


@pytest.fixture(autouse=True)
def _unbound():
    yield
    identity.bind(None)


def test_an_identity_survives_its_variable():
    mine = JobIdentity(Path("/runs/exp-1"), 3, "verify", "cell-a", 2)
    assert JobIdentity.from_json(mine.to_json()) == mine


def test_binding_takes_the_variable_out_of_the_environment(monkeypatch):
    mine = JobIdentity(Path("/runs/exp-1"), 1)
    monkeypatch.setenv(VARIABLE, mine.to_json())
    assert identity.bind_from_environment() == mine
    assert identity.current() == mine
    assert VARIABLE not in os.environ


def test_outside_a_job_there_is_none(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert identity.bind_from_environment() is None
    assert identity.current() is None


def _child_identity(queue):
    queue.put(identity.current())


def test_a_forked_child_has_no_identity():
    identity.bind(JobIdentity(Path("/runs/exp-1"), 1))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_child_identity, args=(queue,))
    child.start()
    assert queue.get() is None
    child.join()
    assert identity.current() is not None


def test_a_started_child_has_no_identity(monkeypatch):
    monkeypatch.setenv(VARIABLE, JobIdentity(Path("/runs/exp-1"), 1).to_json())
    identity.bind_from_environment()
    code = "from rlnb.run import identity; print(identity.bind_from_environment())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"


def test_cells_are_counted_by_execution():
    before = identity.current_cell()
    assert before[1] >= 0
    identity.enter_cell("x1")
    assert identity.current_cell() == ("x1", 1)
    identity.enter_cell("x2")
    identity.enter_cell("x1")
    assert identity.current_cell() == ("x1", 2)
