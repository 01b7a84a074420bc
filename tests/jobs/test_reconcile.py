from __future__ import annotations

import os
import signal
import time

from rlnb.jobs.executors.local import LocalExecutor
from rlnb.jobs.processes import marked
from rlnb.jobs.reconcile import reconcile
from rlnb.run.claims import attempt_owner, claim
from rlnb.run.layout import write_json
from rlnb.run.status import State, observe

TRAIN = "from fake_trainer import *\ntrain(60, every=5)"


def lose(runs, step: int = 10):
    layout = runs.make(TRAIN)
    LocalExecutor().submit(layout)
    runs.until_step(layout, step)
    os.kill(attempt_owner(layout, 1)["pid"], signal.SIGKILL)
    deadline = time.monotonic() + 20
    while observe(layout).state is not State.LOST or marked(layout.root):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return layout


def test_all_well_is_nothing_to_do(runs):
    assert reconcile() == []
    runs.make(TRAIN)
    assert reconcile() == []


def test_a_lost_run_is_found_and_left_to_its_owner(runs):
    layout = lose(runs)
    (found,) = reconcile()
    assert found.layout == layout
    assert found.message.startswith(f"{layout.id} was lost")
    assert found.message.endswith("it can be resumed.")
    assert observe(layout).state is State.LOST


def test_a_run_of_a_newer_format_is_left_alone(runs):
    layout = runs.make(TRAIN)
    claim(layout, 1, rlnb_version="t")
    write_json(layout.status, {"format": 99})
    (found,) = reconcile()
    assert not found.readable
    assert f"{layout.id} is left alone: " in found.message
    assert "upgrade rlnb" in found.message
