"""Whatever the design: its preview on a recording is what the training vector environment showed and paid."""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.reward import RewardSpec, Shaping, Term, TermGroup
from rlnb.design.state import (
    Clip,
    Delta,
    Derive,
    RunningZScore,
    Scale,
    Select,
    Stack,
    StateSpec,
    ZScore,
)  # fmt: skip
from rlnb.design.transitions import Transitions
from rlnb.envs.apply import DesignApplier
from rlnb.errors import DesignError
from rlnb.train.designvec import DesignVecEnv

N_ENVS = 3
STEPS = 60


class Tape(VecEnvWrapper):
    """Writes down what raw environments give, for a recording that knows nothing of the design's own batches."""

    def __init__(self, venv: DummyVecEnv) -> None:
        super().__init__(venv)
        self.rows: list[tuple[Any, ...]] = []
        self._obs: Any = None
        self._actions: Any = None

    def reset(self) -> Any:
        self.rows = []
        self._obs = self.venv.reset().copy()
        return self._obs.copy()

    def step_async(self, actions: Any) -> None:
        self._actions = actions.copy()
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self.venv.step_wait()
        reached = obs.copy()
        for index in np.flatnonzero(dones):
            reached[index] = infos[index]["terminal_observation"]
        cut = np.array([info.get("TimeLimit.truncated", False) for info in infos])
        self.rows.append((self._obs, reached, self._actions, rewards.copy(), dones & ~cut, dones & cut))
        self._obs = obs.copy()
        return obs, rewards, dones, infos

    def recording(self, names: tuple[str, ...]) -> Transitions:
        """Returns one environment after the other, as a recording has them."""
        obs, after, action, reward, terminated, truncated = (
            np.concatenate(list(np.stack(column, axis=1))) for column in zip(*self.rows, strict=True)
        )
        t = np.zeros(len(obs), dtype=np.int64)
        for row in range(1, len(obs)):
            begins = terminated[row - 1] or truncated[row - 1] or row % len(self.rows) == 0
            t[row] = 0 if begins else t[row - 1] + 1
        batch = Transitions.from_arrays(
            obs, after, action, reward=reward, terminated=terminated, truncated=truncated, t=t, names=names
        )
        return Transitions.from_columns(batch.to_columns(), batch.meta())  # as a file would give it back


@cache
def _subject(env: str) -> tuple[Tape, tuple[str, ...]]:
    limit = {} if env == "CartPole-v1" else {"max_episode_steps": 25}  # ends of both kinds in few steps
    tape = Tape(DummyVecEnv([lambda: gym.make(env, **limit)] * N_ENVS))
    return tape, component_names(tape.observation_space, env)


def _expressions(names: tuple[str, ...], action: str) -> st.SearchStrategy[str]:
    first, second = names[0], names[1]
    leaves = st.sampled_from(
        [*names[:4], f"next_{first}", f'next_obs["{second}"]', action, f"prev_{action}", "t", "reward",
         "terminated", "truncated", "0.3", "-2", "pi"]
    )  # fmt: skip

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(lambda f, a: f"{f}({a})", st.sampled_from(["abs", "sin", "tanh", "arctan", "-", "exp(-abs", "sqrt(abs"]), inner)
            .map(lambda text: text + ")" * (text.count("(") - text.count(")"))),
            st.builds(lambda f, a, b: f"(({a}){f}({b}))", st.sampled_from(["+", "-", "*", "<", " and "]), inner, inner),
            st.builds(lambda a, b: f"(({a}) / (1 + abs({b})))", inner, inner),
            st.builds(lambda a, b, c: f"where({a} > 0, {b}, {c})", inner, inner, inner),
        )  # fmt: skip

    return st.recursive(leaves, grow, max_leaves=5)


@st.composite
def _rewards(draw: st.DrawFn, names: tuple[str, ...], action: str) -> RewardSpec:
    expressions = _expressions(names, action)
    group = st.sampled_from([None, None, "g", "h"])
    terms: list[Term | Shaping] = [
        Term(
            f"t{place}", draw(expressions), draw(st.sampled_from([1.0, -0.37, 0.0, "lin_1", "lin_0_2"])),
            draw(st.sampled_from([None, (-0.5, 2.0)])), enabled=draw(st.sampled_from([True, True, True, False])),
            group=draw(group),
        )
        for place in range(draw(st.integers(1, 4)))
    ]  # fmt: skip
    if draw(st.booleans()):
        potential = draw(st.sampled_from([f"-abs({names[0]})", f"sin({names[1]}) * 0.7"]))
        terms.insert(0, Shaping("s", potential, 0.99, draw(st.sampled_from([1.0, 0.3])), group=draw(group)))
    members = [part.name for part in terms if part.group == "h"]
    inside = draw(st.sampled_from([None, " - ".join(members)])) if members else None
    loose = [part.name for part in terms if part.group is None]
    return RewardSpec(
        terms,
        combine=draw(st.sampled_from([None, " + ".join(["tanh(g)", "where(h > 0, h, 0.1)", *loose])])),
        groups=[TermGroup("g", draw(st.sampled_from([1.0, -2.5]))), TermGroup("h", 0.7, inside)],
    )


@st.composite
def _states(draw: st.DrawFn, space: Any, names: tuple[str, ...]) -> StateSpec:
    first, second = names[0], names[1]
    pool = [
        Select([second, first]), Derive("product", f"{first} * {second}"), Derive("lag", f"tanh({second})", low=-0.5),
        Clip([first], -0.4, 0.6), Scale(None, 1.7, 0.1), ZScore([second], [0.1], [0.7]), Delta([first]), Delta([second]),
        Stack(3, [first]), Stack(2), RunningZScore([second]), RunningZScore(None, 3.0),
    ]  # fmt: skip
    ops: list[Any] = []
    for op in draw(st.lists(st.sampled_from(pool), min_size=1, max_size=5)):
        try:
            StateSpec([*ops, op]).plan(space, names)
        except DesignError:
            continue  # it names what is not there any more, or makes a name twice
        ops.append(op)
    return StateSpec(ops)


@pytest.mark.parametrize(
    ("env", "action"),
    [
        ("CartPole-v1", "action"),
        ("Pendulum-v1", "a0"),
        ("LunarLander-v3", "action"),
        ("HalfCheetah-v5", "a1"),
    ],
)
@settings(max_examples=8, deadline=None)
@given(st.data(), st.integers(0, 99))
def test_a_preview_of_any_design_equals_training(env: str, action: str, data: Any, seed: int) -> None:
    tape, names = _subject(env)
    space = tape.observation_space
    design = Design(data.draw(_rewards(names, action)), data.draw(_states(space, names)))
    applier = DesignApplier(design, space, names, N_ENVS)
    training = DesignVecEnv(tape, applier, total=2 * STEPS * N_ENVS)
    tape.seed(seed)
    tape.action_space.seed(seed)
    applier.reset(tape.reset())
    for _ in range(3):  # what is learnt here stays, as in an evaluation
        applier.observe(tape.reset())
    applier.learning = False
    before, after, paid = [training.reset()], [], []
    training.total, training.steps = 4, 1  # a progress of a quarter
    try:
        for _ in range(STEPS):
            obs, rewards, dones, infos = training.step(
                np.stack([tape.action_space.sample() for _ in range(N_ENVS)])
            )
            training.steps = 1
            reached = obs.copy()
            for index in np.flatnonzero(dones):
                reached[index] = infos[index]["terminal_observation"]
            before.append(obs)
            after.append(reached)
            paid.append(rewards)
    except DesignError:
        assume(False)  # a reward that is no number ends training
    recorded = tape.recording(names)
    assert len(recorded) == N_ENVS * STEPS
    assert (recorded.t == 0).sum() > N_ENVS
    by_env = [np.stack(rows, axis=1).reshape(len(recorded), -1) for rows in (before[:-1], after, paid)]
    assert design.reward.evaluate(recorded, progress=0.25).total.tobytes() == by_env[2].tobytes()
    obs, next_obs = design.state.plan(space, names).preview(recorded, applier._context)
    assert obs.tobytes() == by_env[0].tobytes()
    assert next_obs.tobytes() == by_env[1].tobytes()
