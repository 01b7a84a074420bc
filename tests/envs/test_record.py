"""Recordings: whole episodes from known seeds, in a file that is read when it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cells import Counter, OldStep, run_cell

import rlnb
from rlnb.design.design import Design
from rlnb.design.state import Select, StateSpec
from rlnb.design.transitions import Transitions
from rlnb.envs.record import record
from rlnb.errors import DesignError, EnvError, UsageError


def _same(one: Transitions, other: Transitions) -> None:
    mine, theirs = one.to_columns(), other.to_columns()
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        np.testing.assert_array_equal(values, theirs[name])
        assert values.dtype == theirs[name].dtype


def test_random_episodes_are_the_same_again() -> None:
    first = record("CartPole-v1", episodes=3, seed=7)
    _same(first, record("CartPole-v1", episodes=3, seed=7))
    assert len(first.episodes()) == 3
    assert first.obs.names == ("x", "x_dot", "theta", "theta_dot")
    assert set(first.policy.tolist()) == {"random"}
    assert first.obs.matrix.dtype == np.float32
    assert not np.array_equal(
        first.obs.matrix, record("CartPole-v1", episodes=3, seed=8).obs.matrix[: len(first)]
    )


def test_every_episode_starts_from_its_own_seed() -> None:
    batch = record("CartPole-v1", episodes=2, seed=7)
    env = gym.make("CartPole-v1")
    for number, episode in enumerate(batch.episodes()):
        np.testing.assert_array_equal(episode.obs.matrix[0], env.reset(seed=7 + number)[0])


def test_recording_draws_from_no_global_generator() -> None:
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    record("CartPole-v1", episodes=1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_rows_are_those_of_the_environment() -> None:
    batch = record(Counter, lambda obs: np.array([0.5, -0.5]), episodes=2, label="steady", names=["count"])
    assert batch.t.tolist() == [0, 1, 2, 0, 1, 2]
    assert batch.obs["count"].tolist() == [0, 1, 2, 0, 1, 2]
    assert batch.next_obs["count"].tolist() == [1, 2, 3, 1, 2, 3]
    assert batch.terminated.tolist() == [False, False, True] * 2
    assert not batch.truncated.any()  # the step is terminal too, and then SB3 says terminal
    assert batch.info["count"].tolist() == [1, 2, 3, 1, 2, 3]
    assert batch.reward.tolist() == np.float32([0.1, 0.2, 0.1 * 3] * 2).astype(float).tolist()
    assert batch.episode.tolist() == [0, 0, 0, 1, 1, 1]
    assert set(batch.policy.tolist()) == {"steady"}
    assert batch.action_names == ("a0", "a1")
    assert batch.prev_action["a0"].tolist() == [0, 0.5, 0.5] * 2  # type: ignore[call-overload,index]


def test_signals_are_recorded() -> None:
    batch = record(Counter, episodes=1, signals={"double": lambda env: 2 * env.unwrapped.count})
    assert batch.signals["double"].tolist() == [2.0, 4.0, 6.0]


def test_an_sb3_model_acts() -> None:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, seed=0, device="cpu")
    batch = record("CartPole-v1", model, episodes=2)
    _same(batch, record("CartPole-v1", model, episodes=2))
    assert set(batch.policy.tolist()) == {"PPO"}
    expected = model.predict(batch.obs.matrix[:1], deterministic=True)[0]
    assert np.asarray(batch.action)[0] == expected[0]


def test_a_policy_sees_what_its_design_shows_it() -> None:
    seen = []

    def policy(obs: Any) -> int:
        seen.append(obs)
        return 1

    design = Design(state=StateSpec([Select(["theta"])]))
    batch = record("CartPole-v1", policy, episodes=1, design=design)
    assert [one.shape for one in seen] == [(1,)] * len(batch)
    np.testing.assert_array_equal(np.concatenate(seen), batch.obs.matrix[:, 2])
    assert batch.obs.names == ("x", "x_dot", "theta", "theta_dot")


def test_a_cell_defined_environment_is_recorded() -> None:
    batch = record(run_cell()["Walk"], episodes=2, env_kwargs={"goal": 0.5}, names=["x", "steps"])
    assert batch.obs.matrix.dtype == np.float32  # the space's dtype, though the environment gives float64
    np.testing.assert_array_equal(batch.info["x"].astype(np.float32), batch.next_obs["x"].astype(np.float32))


def test_dict_observations_are_flattened() -> None:
    class Two(Counter):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gym.spaces.Dict(
                {"pos": gym.spaces.Box(-1, 1, (2,), np.float32), "left": gym.spaces.Discrete(4)}
            )

        def reset(self, **kwargs: Any) -> Any:
            super().reset(**kwargs)
            return {"pos": np.zeros(2, np.float32), "left": 3}, {}

        def step(self, action: Any) -> Any:
            _, *rest = super().step(action)
            return ({"pos": np.full(2, self.count, np.float32), "left": 3 - self.count}, *rest)

    batch = record(Two, episodes=1)
    assert set(batch.obs.names) == {"pos_0", "pos_1", "left"}
    assert batch.next_obs["pos_1"].tolist() == [1, 2, 3]
    assert batch.next_obs["left"].tolist() == [2, 1, 0]


def test_an_endless_episode_is_cut_off_as_truncated() -> None:
    batch = record(Counter, episodes=2, env_kwargs={"length": 1000}, max_steps=5)
    assert batch.truncated.tolist() == [False] * 4 + [True] + [False] * 4 + [True]


def test_a_file_that_is_there_is_read(tmp_path: Path) -> None:
    path = tmp_path / "demo.parquet"
    first = record("CartPole-v1", episodes=2, seed=1, to=path)
    stamp = path.stat().st_mtime_ns
    _same(first, record("CartPole-v1", episodes=2, seed=1, to=path))
    assert path.stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, r"demo\.parquet holds a recording with seed=1, not seed=2; delete the file"),
        ({"episodes": 5}, r"with episodes=2, not episodes=5"),
        ({"policy": lambda obs: 0}, r"with policy='random', not policy='<lambda>'"),
        ({"env": "Acrobot-v1"}, r"with env=\{'kind': 'id', 'value': 'CartPole-v1', .* not env=.*Acrobot-v1"),
        ({"signals": {"a": lambda env: 0.0}}, r"with signals=\[\], not signals=\['a'\]"),
    ],
)
def test_a_file_of_another_recording_is_not_overwritten(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "demo.parquet"
    given: dict[str, Any] = {"env": "CartPole-v1", "policy": "random", "episodes": 2, "seed": 1}
    record(**given, to=path)
    before = path.read_bytes()
    with pytest.raises(EnvError, match=message):
        record(**{**given, **change}, to=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("randm", r"policy='randm' is unknown\. Did you mean 'random'\?"),
        (
            3,
            r"policy=3 cannot act; give 'random', 'idle', 'sticky', a function of one observation, or an SB3 model",
        ),
        (lambda obs: 0.7, r"the policy <lambda> gave the action 0\.7, which does not fit Discrete\(2\)"),
        (lambda obs: 2, r"the policy <lambda> gave the action 2, which does not fit Discrete\(2\)"),
        (lambda obs: np.zeros(2), r"the policy <lambda> gave the action array.* does not fit Discrete\(2\)"),
    ],
)
def test_a_bad_policy_is_named(policy: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        record("CartPole-v1", policy, episodes=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"episodes": 0}, r"episodes=0 does not fit; give a whole number >= 1"),
        ({"episodes": "3"}, r"episodes='3' does not fit; give a whole number >= 1"),
        ({"seed": -1}, r"seed=-1 does not fit; give a whole number >= 0"),
        ({"seed": 1.5}, r"seed=1\.5 does not fit"),
        ({"max_steps": 0}, r"max_steps=0 does not fit; give a whole number >= 1"),
        ({"design": 5}, r"design=5 is no Design; read a file with rlnb\.Design\.from_yaml\(path\)"),
        ({"label": 5}, r"label=5 is no text; give a name for the policy"),
        ({"to": 5}, r"to=5 names no file; give the name of one, such as 'demo\.parquet'"),
        ({"to": "."}, r"to='\.' names no file"),
        ({"to": "/proc/demo.parquet"}, r"to='/proc/demo\.parquet' cannot be written \(.*\); give another place"),
        ({"signals": ["a"]}, r"signals=\['a'\] is no mapping; write e\.g\. signals=\{'force'"),
        ({"signals": {"a": 5}}, r"signals\['a'\]=5 is no function; give one that takes the environment"),
        ({"signals": {"a b": len}}, r"'a b' cannot be a name; use letters"),
        ({"names": "abcd"}, r"names='abcd' is no list; write one name for each component"),
        ({"policy": lambda obs: None}, r"the policy <lambda> gave the action None, which does not fit Discrete\(2\)"),
        ({"env": "Pendulum-v1", "policy": lambda obs: [float("nan")]}, r"gave the action \[nan\], which does not fit Box"),
    ],
)  # fmt: skip
def test_what_cannot_be_recorded_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        record(**{"env": "CartPole-v1", "episodes": 1, **given})


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    batch = record("CartPole-v1", episodes=np.int64(1), seed=np.int64(3), to=tmp_path / "a.parquet")  # type: ignore[arg-type]
    _same(batch, record("CartPole-v1", episodes=1, seed=3, to=tmp_path / "a.parquet"))
    _same(batch, rlnb.read_transitions(tmp_path / "a.parquet"))


def test_wrong_names_are_refused() -> None:
    with pytest.raises(DesignError, match=r"names= has 2 names .* but the observation has 4 components"):
        record("CartPole-v1", episodes=1, names=["x", "v"])


def test_an_old_environment_names_its_adapter() -> None:
    with pytest.raises(
        EnvError, match=r"OldStep follows the old reset/step protocol.*shimmy\.GymV21CompatibilityV0"
    ):
        record(OldStep, episodes=1)
