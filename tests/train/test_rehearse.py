"""What a rehearsal finds, each in one sentence with a remedy."""

from __future__ import annotations

import threading

import gymnasium as gym
import numpy as np
import pytest

from rlnb.design.reward import RewardSpec
from rlnb.design.term import Term
from rlnb.experiment import Experiment
from rlnb.run.findings import Level
from rlnb.train.rehearse import rehearse


def findings(tmp_path, **given):
    exp = Experiment("trial", total_timesteps=10_000, **given)
    return rehearse(
        exp.spec, make_env=exp.make_env, design=exp.design, folder=tmp_path / "rehearsal", signals=exp.signals
    )


@pytest.mark.parametrize(
    "given",
    [
        {"env": "CartPole-v1", "algo": "PPO", "n_envs": 4},
        {"env": "Pendulum-v1", "algo": "SAC", "normalize": True},
        {"env": "CartPole-v1", "algo": "DQN", "train_freq": 256, "gradient_steps": 128},
        {"env": "Pendulum-v1", "algo": "TD3", "train_freq": (1, "episode"), "gradient_steps": -1},
        {"env": "CartPole-v1", "algo": "A2C", "workers": "subprocess", "n_envs": 2},
    ],
)
def test_a_good_experiment_passes_with_estimates(tmp_path, given):
    np.random.seed(1)
    expected = np.random.random()
    np.random.seed(1)
    (tmp_path / "rehearsal").mkdir()
    found = findings(tmp_path, **given)
    assert np.random.random() == expected
    assert [one for one in found if one.level is Level.ERROR] == []
    texts = {one.code: one.message for one in found}
    assert "captured by pickle, tried and exact" in texts["env_state"]
    assert texts["time"].startswith("10,000 steps at about ")
    assert texts["disk"].startswith("Checkpoints will take about ")
    if given["algo"] in ("SAC", "DQN", "TD3"):
        assert "the replay buffer will take" in texts["memory"]


def test_signals_are_there_for_the_reward(tmp_path):
    (tmp_path / "rehearsal").mkdir()
    found = findings(
        tmp_path, env="CartPole-v1", signals={"tilt": lambda env: env.unwrapped.state[2]},
        reward=RewardSpec([Term("upright", "-abs(signals['tilt'])")]),
    )  # fmt: skip
    assert [one.message for one in found if one.level is Level.ERROR] == []


class Wrong(gym.Env):
    """Says float32 and gives what is outside its space."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full(2, 9, dtype=np.float32), {}

    def step(self, action):
        return np.full(2, 9, dtype=np.float32), 0.0, False, False, {}


class Breaks(Wrong):
    """Fails after a few steps."""

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps > 120:
            raise ValueError("the robot fell over")
        return np.zeros(2, dtype=np.float32), 0.0, False, False, {}


class Opaque(Breaks):
    """Cannot be captured."""

    def __init__(self):
        self.lock = threading.Lock()
        total = [0]
        self.tick = lambda: total.__setitem__(0, total[0] + 1) or total[0]

    def step(self, action):
        return np.array([0, min(1, self.tick() / 1e4)], dtype=np.float32), 0.0, False, False, {}


@pytest.mark.parametrize(
    ("env", "level", "code", "text"),
    [
        (Wrong, Level.ERROR, "env_checker", "SB3's environment checker refuses the environment: "),
        (Breaks, Level.ERROR, "training", "failed with ValueError: the robot fell over; run exp.check() again"),
        (Opaque, Level.WARNING, "env_state", "cannot be captured exactly"),
    ],
)
def test_a_bad_environment_is_named(tmp_path, env, level, code, text):
    (tmp_path / "rehearsal").mkdir()
    found = findings(tmp_path, env=env, n_steps=256, n_envs=3)
    assert [one.message for one in found if one.level is level and one.code == code and text in one.message], found
