"""How the states of environments are captured: exact, or said not to be."""

from __future__ import annotations

import threading

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor

from rlnb.envs.make import resolve_env
from rlnb.train.codec import decode_tree, encode_tree
from rlnb.train.envstate import StateKind
from rlnb.train.probe import probe_env
from rlnb.train.stateful import wrap_stateful

KINDS = {
    "CartPole-v1": StateKind.PICKLE,
    "Pendulum-v1": StateKind.PICKLE,
    "FrozenLake-v1": StateKind.PICKLE,
    "LunarLander-v3": StateKind.JOURNAL,
    "BipedalWalker-v3": StateKind.JOURNAL_NEW_WORLD,
    "HalfCheetah-v5": StateKind.MUJOCO,
    "Humanoid-v5": StateKind.MUJOCO,
}


class Counter(gym.Env):
    """Counts; subclasses make capturing it hard."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.episodes = 0, getattr(self, "episodes", 0) + 1
        return self.observe(), {}

    def step(self, action):
        self.count += int(action)
        return self.observe(), float(action), self.count > 5, False, {}

    def observe(self):
        return np.array([self.count, self.np_random.random() + self.episodes])


class GlobalNoise(Counter):
    """Draws from NumPy's global generator, which belongs to the process."""

    def observe(self):
        return np.array([self.count, np.random.random()])


class Locked(Counter):
    """Holds something that cannot be pickled, so its actions are played again."""

    def __init__(self):
        self.lock = threading.Lock()


class Hidden(Counter):
    """Keeps what matters where nobody can find it."""

    def __init__(self):
        total = 0

        def add(action):
            nonlocal total
            total += int(action)
            return total

        self.add = add
        self.lock = threading.Lock()

    def step(self, action):
        self.count = self.add(action)
        return self.observe(), 0.0, False, False, {}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_environment(name):
    found = probe_env(lambda: Monitor(resolve_env(name)()))
    assert found.kind is KINDS[name], found.reason
    assert found.bytes > 0


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        (Counter, StateKind.PICKLE),
        (GlobalNoise, StateKind.PICKLE),
        (Locked, StateKind.JOURNAL),
        (Hidden, StateKind.NONE),
    ],
)
def test_own_environments(env, kind):
    found = probe_env(lambda: Monitor(env()))
    assert found.kind is kind, found.reason
    if kind is StateKind.NONE:
        assert "journal: a restored copy goes on differently" in found.reason


def test_a_probe_leaves_the_generators_alone():
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    probe_env(GlobalNoise)
    assert np.random.random() == expected


def test_what_layers_share_stays_shared_and_spaces_stay_the_same():
    env = wrap_stateful(gym.make("CartPole-v1"), StateKind.PICKLE)
    env.reset(seed=1)
    env.unwrapped.shared = env.unwrapped.also = [1, 2]
    space = env.unwrapped.action_space
    space.seed(5)
    space.sample()
    state = decode_tree(encode_tree(env.rlnb_capture()))
    expected = [space.sample() for _ in range(5)]
    env.rlnb_restore(state)
    assert env.unwrapped.action_space is space
    assert [space.sample() for _ in range(5)] == expected
    assert env.unwrapped.shared is env.unwrapped.also


PLAYED = {"total": 0}


class Shared(Counter):
    """Counts in places that no copy of the object reaches; decides nothing by it during a probe."""

    played = 0

    def step(self, action):
        Shared.played += 1
        PLAYED["total"] += 1
        return super().step(action)


def enclosed():
    steps = [0]

    class Enclosed(Counter):
        def step(self, action):
            steps[0] += 1
            return super().step(action)

    return Enclosed()


def test_state_outside_the_object_is_named():
    assert probe_env(Shared).outside == ("PLAYED", "Shared.played")
    assert probe_env(enclosed).outside == ("steps (a variable around enclosed.<locals>.Enclosed)",)
    assert probe_env(Counter).outside == ()
    assert probe_env(lambda: gym.make("FrozenLake-v1")).outside == ()


def test_a_run_whose_environment_keeps_state_outside_is_not_exact(trial):
    run = trial(env=Shared, algo="PPO", n_steps=16, batch_size=16, n_epochs=1, total_timesteps=32)
    assert (
        run.attempt()["exact_resume"]
        == "not exact: the environment changes PLAYED, Shared.played outside itself"
    )
