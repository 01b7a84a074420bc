"""Spaces other than a Box of floats: recorded, previewed and trained alike, or refused in one sentence."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, Sequence, Text, Tuple
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.reward import RewardSpec, Term
from rlnb.design.state import Delta, Grayscale, Resize, Scale, Stack, StateSpec, ToUnit
from rlnb.envs.apply import DesignApplier
from rlnb.envs.record import record
from rlnb.errors import DesignError, ExperimentError, RlnbError, UsageError
from rlnb.experiment import Experiment
from rlnb.run.trajectories import read_transitions, write_transitions
from rlnb.train.designvec import DesignVecEnv

RGB = Box(0, 255, (48, 40, 3), np.uint8)


class Odd(gym.Env[Any, Any]):
    """Observations drawn from any space; four steps an episode; pays by the action."""

    def __init__(self, observation: gym.Space[Any], action: gym.Space[Any]) -> None:
        self.observation_space, self.action_space = observation, action

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action) or isinstance(self.action_space, MultiBinary)
        self.steps += 1
        paid = 0.0 if isinstance(self.action_space, Tuple | Dict | Text) else float(np.sum(action)) / 3
        return self.observation_space.sample(), paid, self.steps == 4, False, {"steps": self.steps}


SMALL = Box(-1, 1, (2,), np.float32)
OBSERVATIONS = {
    "discrete": Discrete(5),
    "discrete-start": Discrete(5, start=-2),
    "multi-discrete": MultiDiscrete([3, 4]),
    "multi-binary": MultiBinary(3),
    "integers": Box(-7, 7, (3,), np.int64),
    "bytes": Box(0, 255, (4,), np.uint8),
    "doubles": Box(-1, 1, (2,), np.float64),
    "table": Box(-1, 1, (2, 3), np.float32),
    "dict": Dict({"b": MultiBinary(2), "a": Box(-1, 1, (2,), np.float32), "n": Discrete(3)}),
}
ACTIONS = {
    "discrete": (Discrete(3), "action"),
    "multi-discrete": (MultiDiscrete([3, 2]), "a0 + a1"),
    "multi-binary": (MultiBinary(2), "a0 - prev_a1"),
    "box": (SMALL, "a0 * prev_a1"),
}


def _replay(make: Any, recorded: Any, design: Design, names: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """Plays a recording's actions in a vector environment under the design; what was seen, reached and paid."""
    vec = DummyVecEnv([make])
    applier = DesignApplier(design, vec.observation_space, names, 1)
    seen, reached, paid = [], [], []
    for number, episode in enumerate(recorded.episodes()):
        vec.seed(3 + number)
        seen.append(applier.reset(vec.reset()))
        action = episode.action if isinstance(episode.action, np.ndarray) else episode.action.matrix
        for row in range(len(episode)):
            obs, rewards, dones, infos = vec.step(action[row : row + 1])
            obs, rewards, infos = applier.step(obs, action[row : row + 1], rewards, dones, infos)
            paid.append(rewards)
            reached.append(infos[0]["terminal_observation"][None] if dones[0] else obs)
            if not dones[0]:
                seen.append(obs)
    return np.concatenate(seen), np.concatenate(reached), np.concatenate(paid)


def _same_as_training(make: Any, recorded: Any, design: Design, space: Any, names: tuple[str, ...]) -> None:
    seen, reached, paid = _replay(make, recorded, design, names)
    obs, next_obs = design.state.plan(space, names).preview(recorded)
    assert design.reward.evaluate(recorded).total.tobytes() == paid.tobytes()
    assert obs.tobytes() == seen.tobytes()
    assert next_obs.tobytes() == reached.tobytes()


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_odd_spaces_preview_as_they_train(observation: str, action: str) -> None:
    space, (acts, expression) = OBSERVATIONS[observation], ACTIONS[action]
    recorded = record(lambda: Odd(space, acts), episodes=2, seed=3)
    assert len(recorded) == 8
    names = component_names(space)
    assert recorded.obs.names == names
    reward = RewardSpec(
        [Term("env", "reward"), Term("own", f"{expression} + {names[0]} - 0.1 * next_{names[-1]}")]
    )
    design = Design(reward, StateSpec([Scale(None, 0.7, 0.2), Delta([names[-1]]), Stack(2, [names[0]])]))
    _same_as_training(lambda: Odd(space, acts), recorded, design, space, names)


@pytest.mark.parametrize(
    ("observation", "action"),
    [("dict", "multi-binary"), ("multi-discrete", "multi-discrete"), ("discrete-start", "discrete")],
)
def test_odd_spaces_train(observation: str, action: str) -> None:
    space, (acts, expression) = OBSERVATIONS[observation], ACTIONS[action]
    names = component_names(space)
    reward = RewardSpec([Term("own", f"{expression} + {names[0]}")])
    for state in (StateSpec([Scale(offset=2.0)]), StateSpec()):
        if observation == "discrete-start" and state.is_identity:
            continue
        policy = "MultiInputPolicy" if observation == "dict" and state.is_identity else "MlpPolicy"
        Experiment(
            "odd",
            env=lambda: Odd(space, acts),
            algo="PPO",
            policy=policy,
            total_timesteps=8,
            reward=reward,
            state=state,
        )
        model = _trained(lambda: Odd(space, acts), Design(reward, state), names, policy)
        assert model.num_timesteps == 8


def _trained(make: Any, design: Design, names: tuple[str, ...], policy: str, **kwargs: Any) -> Any:
    vec = DummyVecEnv([make])
    training = DesignVecEnv(vec, DesignApplier(design, vec.observation_space, names, 1), total=8)
    model = PPO(
        policy, training, n_steps=8, batch_size=8, n_epochs=1, device="cpu", seed=0, policy_kwargs=kwargs
    )
    return model.learn(8)


def test_pictures_are_recorded_and_preview_as_they_train(tmp_path: Any) -> None:
    def make() -> Odd:
        return Odd(RGB, Discrete(2))

    recorded = record(make, episodes=2, seed=3)
    assert (recorded.obs.matrix.dtype, recorded.obs.matrix.shape) == (np.uint8, (8, 48, 40, 3))
    write_transitions(tmp_path / "film.parquet", recorded)
    again = read_transitions(tmp_path / "film.parquet")
    assert (again.obs.matrix.dtype, again.obs.matrix.shape) == (np.uint8, (8, 48, 40, 3))
    assert again.next_obs.matrix.tobytes() == recorded.next_obs.matrix.tobytes()
    reward = RewardSpec([Term("own", "reward * action + t")])
    for ops in ([Stack(3)], [Grayscale(), Resize(36, 37), Stack(4)], [Resize(20, 8), ToUnit(), Stack(2)]):
        _same_as_training(make, again, Design(reward, StateSpec(ops)), RGB, ())


def _experiment(space: Any, ops: list[Any], **given: Any) -> Experiment:
    return Experiment(
        "film", env=lambda: Odd(space, Discrete(2)), **{"algo": "PPO", "policy": "CnnPolicy", "total_timesteps": 8, **given},
        state=StateSpec(ops),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("space", "ops", "kwargs"),
    [
        (RGB, [Grayscale(), Resize(36, 40), Stack(4)], {}),
        (RGB, [Stack(2)], {}),
        (Box(0, 255, (3, 40, 48), np.uint8), [Grayscale(), Stack(2)], {}),
        (Box(0, 255, (40, 48), np.uint8), [Resize(36, 36), Grayscale()], {}),
        (Box(0, 255, (3, 40, 48), np.uint8), [ToUnit()], {"normalize_images": False}),
    ],
)
def test_cnn_policy_takes_designed_pictures(space: Any, ops: list[Any], kwargs: dict[str, Any]) -> None:
    _experiment(space, ops, policy_kwargs=kwargs)
    model = _trained(
        lambda: Odd(space, Discrete(2)), Design(state=StateSpec(ops)), (), "CnnPolicy", features_extractor_kwargs={"features_dim": 8}, **kwargs
    )  # fmt: skip
    assert model.num_timesteps == 8
    assert type(model.policy.features_extractor).__name__ == "NatureCNN"
    assert min(model.observation_space.shape) == model.observation_space.shape[0]  # channels first


@pytest.mark.parametrize(
    ("space", "ops", "given", "message"),
    [
        (RGB, [ToUnit()], {}, "needs images of bytes .* which SB3 scales .* by itself, .* leave to_unit out of the state"),
        (RGB, [ToUnit()], {"policy_kwargs": {"normalize_images": False}}, "normalize_images=False needs the channels first"),
        (RGB, [Resize(20, 40)], {}, r"NatureCNN\) need pictures of at least 36x36, and the agent sees 20x40"),
        (Box(0, 255, (48, 40), np.uint8), [Resize(36, 36)], {}, r"needs pictures with channels, .* rlnb\.Grayscale\(\)"),
        (RGB, [Resize(36, 36), Stack(20)], {}, "smallest dimension for the channels, .* 36x36 uint8 picture of 60 channels"),
        (Box(0, 100, (48, 40, 3), np.uint8), [Stack(2)], {}, "needs images of bytes"),
    ],
)  # fmt: skip
def test_pictures_that_cnn_policy_does_not_take(space: Any, ops: list[Any], given: Any, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        _experiment(space, ops, **given)


@pytest.mark.parametrize(
    ("observation", "action", "message"),
    [
        (SMALL, Tuple((Discrete(2), SMALL)), r"actions of Tuple\(Discrete\(2\), .* are unsupported, .*TransformAction"),
        (SMALL, Dict(a=Discrete(2)), r"actions of Dict\('a': Discrete\(2\)\) are unsupported, only Box, Discrete"),
        (SMALL, Text(3), r"actions of Text\(.* are unsupported"),
        (Tuple((SMALL, SMALL)), Discrete(2), "space Tuple has no components .*FlattenObservation makes one Box of it"),
        (Dict(a=Dict(b=SMALL)), Discrete(2), r"space Dict \(its entry 'a'\) .*FlattenObservation makes one Box of it"),
        (Text(3), Discrete(2), "space Text has no components .*It has no fixed size: .*TransformObservation"),
        (Sequence(SMALL), Discrete(2), "space Sequence .*no fixed size"),
        (Graph(SMALL, None), Discrete(2), "space Graph .*no fixed size"),
    ],
)  # fmt: skip
def test_what_is_unsupported_is_said_with_the_remedy(observation: Any, action: Any, message: str) -> None:
    def make() -> Odd:
        return Odd(observation, action)

    with pytest.raises((UsageError, DesignError), match=message):
        record(make, episodes=1)
    with pytest.raises(RlnbError, match=message):
        Experiment("odd", env=make, algo="PPO", total_timesteps=8)


@pytest.mark.parametrize(
    ("observation", "action", "message"),
    [
        (SMALL, Discrete(3, start=-1), r"SB3 counts actions from 0, and Discrete\(3, start=-1\) counts from -1; shift them with "
         r"gymnasium\.wrappers\.TransformAction\(env, lambda action: action - 1, gymnasium\.spaces\.Discrete\(3\)\)"),
        (SMALL, MultiDiscrete([2, 3], start=[0, 1]), r"counts from \[0, 1\]; .*gymnasium\.spaces\.MultiDiscrete\(\[2, 3\]\)"),
        (SMALL, MultiDiscrete([[2], [3]]), r"SB3 takes MultiDiscrete actions in one dimension, .* shape \(2, 1\)"),
        (Discrete(4, start=2), Discrete(2), r"observation Discrete\(4, start=2\) counts from 2; give state=rlnb\.Scale\(offset=-2\)"),
        (Dict(n=Discrete(4, start=2)), Discrete(2), "part 'n' of the observation .* counts from 2; give a Box"),
    ],
)  # fmt: skip
def test_what_can_be_recorded_but_not_trained(observation: Any, action: Any, message: str) -> None:
    def make() -> Odd:
        return Odd(observation, action)

    policy = "MultiInputPolicy" if isinstance(observation, Dict) else "MlpPolicy"
    assert len(record(make, episodes=1)) == 4
    with pytest.raises(ExperimentError, match=message):
        Experiment("odd", env=make, algo="PPO", policy=policy, total_timesteps=8)


def test_dqn_takes_bytes_of_pictures() -> None:
    vec = DummyVecEnv([lambda: Odd(RGB, Discrete(2))])
    design = Design(state=StateSpec([Grayscale(), Resize(36, 36), Stack(2)]))
    training = DesignVecEnv(vec, DesignApplier(design, RGB, (), 1), total=8)
    model = DQN(
        "CnnPolicy", training, buffer_size=20, learning_starts=4, batch_size=4, device="cpu", seed=0
    ).learn(8)
    assert model.replay_buffer is not None
    assert model.replay_buffer.observations.dtype == np.uint8


def test_a_space_without_components_is_refused() -> None:
    with pytest.raises(DesignError, match="has no components, so there is nothing to learn from"):
        component_names(Box(-1, 1, (0,), np.float32))
