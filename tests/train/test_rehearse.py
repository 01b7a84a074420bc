"""What a rehearsal finds, each in one sentence with a remedy."""

from __future__ import annotations

import inspect
import threading

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from rlnb.design.reward import RewardSpec
from rlnb.design.term import Term
from rlnb.experiment import Experiment
from rlnb.run.findings import Level
from rlnb.train.determinism import device_name
from rlnb.train.rehearse import rehearse
from rlnb.train.unrehearsed import check_device, check_workers


def findings(tmp_path, **given):
    exp = Experiment("trial", total_timesteps=10_000, **given)
    return rehearse(
        exp.spec, make_env=exp.make_env, design=exp.design, folder=tmp_path / "rehearsal", signals=exp.signals,
        callbacks=exp.callbacks,
    )  # fmt: skip


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


def _line(function, text):
    """Number of the line of a function's source that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("env", "level", "code", "text"),
    [
        (Wrong, Level.ERROR, "env_checker", "SB3's environment checker refuses the environment: "),
        (
            Breaks,
            Level.ERROR,
            "training",
            f"failed with ValueError: the robot fell over, in step, line {_line(Breaks.step, 'fell')} of test_rehearse.py; run exp",
        ),
        (Opaque, Level.WARNING, "env_state", "cannot be captured exactly"),
    ],
)
def test_a_bad_environment_is_named(tmp_path, env, level, code, text):
    (tmp_path / "rehearsal").mkdir()
    found = findings(tmp_path, env=env, n_steps=256, n_envs=3)
    assert [
        one.message for one in found if one.level is level and one.code == code and text in one.message
    ], found
    assert len([one for one in found if one.code == "env_state"]) == (env is not Breaks)


def test_a_long_error_is_cut_and_has_no_traceback(tmp_path):
    (tmp_path / "rehearsal").mkdir()
    found = findings(tmp_path, env="CartPole-v1", learning_rate=1e30, n_steps=64, batch_size=64)
    [message] = [one.message for one in found if one.level is Level.ERROR]
    assert message.startswith("A short training failed with ValueError: Expected parameter logits")
    assert len(message) < 400
    assert "\n" not in message


@pytest.mark.parametrize("device", ["cuda:7", "xpu"])
def test_a_device_that_is_not_there_is_named(device):
    spec = Experiment("trial", env="CartPole-v1", total_timesteps=100, device=device).spec
    [one] = check_device(spec)
    assert one.level is Level.ERROR
    assert one.message.startswith(f"device='{device}' is not there: torch sees ")
    assert one.message.endswith("write device='auto', or install a torch and a driver that know it.")
    assert (
        check_device(spec.with_changes(device="cpu")) == check_device(spec.with_changes(device="auto")) == []
    )


def test_the_device_that_is_recorded_is_the_one_that_sb3_takes(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [device_name(one) for one in ("auto", "cpu", "cuda", "cuda:1")] == ["cpu"] * 4
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "H200")
    assert [device_name(one) for one in ("auto", "cpu", "cuda:1")] == ["auto (H200)", "cpu", "cuda:1 (H200)"]


def test_an_environment_that_cannot_travel_to_workers_is_named():
    lock = threading.Lock()

    class Locked(Breaks):
        held = lock

    given = {"env": Locked, "total_timesteps": 100, "n_envs": 2}
    exp = Experiment("trial", workers="subprocess", **given)
    [one] = check_workers(exp.spec, exp.make_env, None)
    assert one.level is Level.ERROR
    assert (
        "cannot travel to subprocess workers (TypeError: cannot pickle '_thread.lock' object); make"
        in one.message
    )
    assert one.message.endswith("or say workers='dummy'.")
    here = Experiment("trial", **given)
    assert check_workers(here.spec, here.make_env, None) == []


class Counts(BaseCallback):
    """Remembers something and cannot say what."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def _on_step(self):
        raise AssertionError("a rehearsal does not call the user's callbacks")


class Remembers(Counts):
    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


def test_a_callback_without_state_dict_is_named(tmp_path):
    (tmp_path / "rehearsal").mkdir()
    found = findings(tmp_path, env="CartPole-v1", n_steps=32, callbacks=[Counts(), Remembers()])
    [one] = [one for one in found if one.level is not Level.INFO]
    assert one.level is Level.WARNING
    assert one.message == (
        "Counts has no state_dict, so a resumed run begins it anew and says 'not exact'; "
        "give it state_dict() and load_state_dict(state)."
    )
