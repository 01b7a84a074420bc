"""Workbenches on made-up episodes, for tests of the Lab's tabs."""

from __future__ import annotations

import numpy as np
from gymnasium import Env, spaces

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.reward import RewardSpec
from rlnb.design.state import StateSpec
from rlnb.design.transitions import Transitions
from rlnb.envs.make import resolve_env
from rlnb.run.lab_notes import LabNotes
from rlnb.run.recordings import Recorded
from rlnb.view.lab.bench import Subject, Workbench

POINT = spaces.Box(np.float32([-2, -2, 0]), np.float32([2, 2, 1]), dtype=np.float32)
NAMES = ("x", "v", "flag")


def point_batch(episodes=4, steps=25, names=NAMES):
    """Returns episodes by "random" and "demo" in turn: x walks, v is its velocity, flag is always 0."""
    rng = np.random.default_rng(1)
    n = episodes * steps
    v = np.clip(rng.normal(0, 0.1, n), -0.5, 0.5)
    x = np.cumsum(v.reshape(episodes, steps), axis=1).ravel()
    obs = np.stack([x, v, np.zeros(n)], axis=1).astype(np.float32)
    t = np.tile(np.arange(steps), episodes)
    return _batch(obs, t, steps, episodes, names)


def bench_of(observation_space=POINT, batch=None, names=NAMES, state=(), reward=None):
    """Returns a workbench on an environment of this observation space."""

    class Made(Env):
        action_space = spaces.Discrete(2)

        def __init__(self):
            self.observation_space = observation_space

        def reset(self, *, seed=None, options=None):
            return self.observation_space.sample(), {}

        def step(self, action):
            return self.observation_space.sample(), 0.0, False, False, {}

    env = resolve_env(Made, None)
    batch = point_batch() if batch is None else batch
    names = component_names(observation_space, None, names or None)
    keys = [f"demo:{place}" for place in range(len(batch.starts))]
    design = Design(reward=reward or RewardSpec(), state=StateSpec(state))
    return Workbench(Subject(env, names, {}), Recorded(batch, keys), design, LabNotes())


def picture_bench(state=()):
    """Returns a workbench on pictures of 12 x 8 pixels in which a bar moves to the right."""
    obs = np.full((40, 12, 8, 3), 20, np.uint8)
    for row in range(40):
        obs[row, :, row % 8] = (240, 120, 0)
    batch = _batch(obs, np.tile(np.arange(20), 2), 20, 2, ())
    return bench_of(spaces.Box(0, 255, (12, 8, 3), np.uint8), batch, (), state)


def _batch(obs, t, steps, episodes, names):
    last = t == steps - 1
    following = np.roll(obs, -1, axis=0)
    following[last] = obs[last]
    return Transitions.from_arrays(
        obs, following, t % 2, reward=np.ones(len(t)), terminated=last, truncated=np.zeros(len(t), bool), t=t,
        names=names, labels={i: ("random", "demo")[i % 2] for i in range(episodes)},
    )  # fmt: skip
