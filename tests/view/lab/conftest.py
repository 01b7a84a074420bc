"""A lab on a few real episodes, without a browser."""

from __future__ import annotations

import numpy as np
import pytest

import rlnb
from rlnb.envs.make import resolve_env
from rlnb.run.lab_notes import LabNotes
from rlnb.run.recordings import Recorded
from rlnb.view.lab.bench import Subject, Workbench

NAMES = ("x", "x_dot", "theta", "theta_dot")


def upright(obs):
    """Balances CartPole for the whole 500 steps."""
    return int(obs[2] + 0.3 * obs[3] > 0)


@pytest.fixture(scope="session")
def cartpole_episodes():
    """Three random episodes and two balanced ones."""
    random = rlnb.record("CartPole-v1", episodes=3, seed=1)
    balanced = rlnb.record("CartPole-v1", upright, episodes=2, seed=7, label="balance")
    return rlnb.Transitions.concat([random, balanced])


@pytest.fixture
def bench(cartpole_episodes):
    """A workbench on these episodes with the environment's own design."""
    keys = tuple(f"e:{place}" for place in range(len(cartpole_episodes.starts)))
    subject = Subject(resolve_env("CartPole-v1"), NAMES, {})
    return Workbench(subject, Recorded(cartpole_episodes, keys), rlnb.Design(), LabNotes())


@pytest.fixture
def told(bench):
    """What the bench has told so far."""
    events = []
    bench.listeners.add(lambda event: events.append(event.value))
    return events


def total(bench):
    """What the design pays for each step, by the very function that training uses."""
    return np.asarray(bench.reward.evaluate(bench.batch).total)
