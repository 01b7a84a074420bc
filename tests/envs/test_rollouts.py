"""Rollouts: progress, stopping with whole episodes, and the policies that need no code."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cells import Counter

from rlnb.envs.policies import idle_action, resolve_policy
from rlnb.envs.progress import Progress
from rlnb.envs.rollouts import record_rollouts
from rlnb.errors import EnvError, UsageError


def test_progress_is_told_after_every_episode_and_within_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("rlnb.envs.progress.time.monotonic", lambda: now[0])

    def policy(obs: Any) -> Any:
        now[0] += 0.06
        return np.zeros(2)

    said: list[Progress] = []
    done = record_rollouts(Counter, policy, episodes=2, env_kwargs={"length": 5}, progress=said.append)
    assert [(p.episode, p.episodes, p.step, p.ended, p.steps) for p in said] == [
        (1, 2, 4, False, 4), (1, 2, 5, True, 5), (2, 2, 4, False, 9), (2, 2, 5, True, 10),
    ]  # fmt: skip
    assert said[-1].return_env == pytest.approx(1.5)
    assert not done.stopped
    assert done.about["episodes"] == 2


def test_stopping_keeps_the_whole_episodes() -> None:
    steps = [0]

    def stop() -> bool:
        steps[0] += 1
        return steps[0] > 8

    done = record_rollouts(Counter, episodes=5, seed=3, should_stop=stop)
    assert done.stopped
    assert done.batch is not None
    assert done.batch.t.tolist() == [0, 1, 2, 0, 1, 2]
    assert done.about == {
        "env": {"kind": "import", "value": "cells:Counter", "kwargs": {}}, "policy": "random", "episodes": 2,
        "seed": 3, "signals": [],
    }  # fmt: skip
    assert record_rollouts(Counter, should_stop=lambda: True).batch is None


def test_idle_does_nothing() -> None:
    box = gym.spaces.Box(np.array([0.5, -1], np.float32), np.array([2, 1], np.float32))
    assert idle_action(box).tolist() == [0.5, 0.0]
    assert idle_action(gym.spaces.Discrete(3, start=5)) == 5
    assert idle_action(gym.spaces.Discrete(3), "MountainCar-v0") == 1
    assert idle_action(gym.spaces.Discrete(3), "ALE/Pong-v5") == 0
    assert idle_action(gym.spaces.MultiDiscrete([2, 3])).tolist() == [0, 0]
    assert idle_action(gym.spaces.MultiBinary(2)).tolist() == [0, 0]
    with pytest.raises(UsageError, match="policy='idle' does not know what doing nothing is in Text"):
        idle_action(gym.spaces.Text(3))
    batch = record_rollouts("MountainCar-v0", "idle", episodes=1).batch
    assert batch is not None
    assert set(np.asarray(batch.action).tolist()) == {1}
    assert batch.labels == {0: "idle"}


def test_sticky_goes_further_than_random() -> None:
    def reach(policy: str) -> float:
        batch = record_rollouts("MountainCar-v0", policy, episodes=5).batch
        assert batch is not None
        return float(np.ptp(batch.next_obs["position"]))

    assert reach("sticky") > 2 * reach("random")
    first, again = (record_rollouts("CartPole-v1", "sticky", episodes=2, seed=1).batch for _ in range(2))
    assert first is not None
    assert again is not None
    np.testing.assert_array_equal(first.obs.matrix, again.obs.matrix)


def test_a_recurrent_model_keeps_its_memory_within_an_episode() -> None:
    class Recurrent:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def predict(self, obs: Any, state: Any = None, deterministic: bool = False) -> tuple[Any, int]:
            self.seen.append(state)
            return np.zeros(2), (state or 0) + 1

    model = Recurrent()
    record_rollouts(Counter, model, episodes=2)
    assert model.seen == [None, 1, 2, None, 1, 2]


def test_a_misspelt_policy_names_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"policy='stiky' is unknown. Did you mean 'sticky'\? Give 'random', "
    ):
        resolve_policy("stiky", gym.spaces.Discrete(2), seed=0, deterministic=True, label=None)
    with pytest.raises(UsageError, match="frames=3 is no budget"):
        record_rollouts(Counter, frames=3)  # type: ignore[arg-type]


class Broken(gym.Env[Any, Any]):
    """One step an episode, which returns what it is told to."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    pays: Any = 1.0
    tells: Any = MappingProxyType({})

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), self.pays, True, False, self.tells


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"pays": None}, "returns the reward None; it has to be one number"),
        ({"pays": np.ones(2)}, "it has to be one number"),
        ({"pays": "1"}, "it has to be one number"),
        ({"tells": None}, "returns the info None; it has to be a dict"),
    ],
)
def test_a_step_that_returns_no_number_or_no_dict_is_refused(what: dict[str, Any], sentence: str) -> None:
    broken = type("Env", (Broken,), what)
    with pytest.raises(EnvError, match=sentence):
        record_rollouts(broken, episodes=1)


@pytest.mark.parametrize("pays", [1, np.int64(1), np.array(1.0), True])
def test_every_kind_of_number_is_a_reward(pays: Any) -> None:
    batch = record_rollouts(type("Env", (Broken,), {"pays": pays}), episodes=1).batch
    assert batch is not None
    assert batch.reward.tolist() == [1.0]


def test_a_reward_beyond_float32_is_infinite_as_in_training() -> None:
    batch = record_rollouts(type("Env", (Broken,), {"pays": 1e300}), episodes=1).batch
    assert batch is not None
    assert batch.reward.tolist() == [np.inf]
