from __future__ import annotations

import time

import pytest

from rlnb.run.layout import RunLayout
from rlnb.testing.synthetic_run import SyntheticRun


@pytest.fixture
def run(tmp_path):
    """A synthetic run that has begun and come 20,000 of 100,000 steps."""
    made = SyntheticRun(RunLayout(tmp_path / "exp-2026-11-30-lander-7f3a"))
    made.begin()
    made.advance(20_000)
    return made


@pytest.fixture
def until():
    """Returns a function that polls a condition until it is true or a deadline has passed."""

    def wait(condition, *, timeout=10.0):
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true in time"
            time.sleep(0.01)

    return wait
