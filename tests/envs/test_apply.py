"""A preview of a batch and training give the same bytes; SB3's conventions at an episode's end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cells import Counter
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.reward import RewardSpec, Shaping, Term, TermGroup
from rlnb.design.state import Clip, Delta, Derive, RunningZScore, Scale, Select, StateSpec, ZScore
from rlnb.design.transitions import Transitions
from rlnb.envs.apply import RAW_TERMINAL, DesignApplier
from rlnb.envs.make import resolve_env
from rlnb.envs.record import record
from rlnb.envs.signals import with_signals
from rlnb.errors import DesignError, EnvError


def _python_term(batch: Transitions) -> Any:
    return -np.abs(batch.obs[batch.obs.names[0]]) * ~batch.terminated + 0.1 * batch.t - 0.3 * batch.truncated


def _design(names: Sequence[str], *, action: str) -> Design:
    first, second = names[0], names[1]
    reward = RewardSpec(
        terms=[
            Term("env", "reward", weight=0.7),
            Term("calm", f"-{action}**2 + 0.1 * prev_{action}", clip=(-0.5, 0.5)),
            Term("speed", f"exp(-abs(next_{first} - {first})) / 3", weight="lin_1"),
            Term("mine", _python_term, weight=0.01),
            Term("seen_only", f"sin(t) * {second}", weight=0.0),
            Term("extra", 'info["extra"] + signals["twice"]', weight=0.2),
            Shaping("shaped", f"-{first}**2 - abs({second})", gamma=0.99, weight=0.5),
        ]
    )
    state = StateSpec(
        [
            Derive("product", f"{first} * {second}", low=-1e3, high=1e3),
            Delta([first]),
            ZScore([second], mean=[0.1], std=[0.7]),
            Scale([first], factor=3.0, offset=0.25),
            Clip([second], low=-2.0, high=2.0),
        ]
    )
    return Design(reward=reward, state=state)


class _Extra(gym.Wrapper[Any, Any, Any, Any]):
    """Adds an entry to info that changes at every step."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, {**info, "extra": 0.5 * float(np.ravel(obs)[0])}


SIGNALS = {
    "twice": lambda env: 2.0 * float(np.ravel(env.unwrapped.np_random.bit_generator.state["has_uint32"])[0])
}


def _make(env: str, **kwargs: Any) -> Any:
    return lambda: with_signals(_Extra(gym.make(env, **kwargs)), SIGNALS)


def _train(vec: Any, design: Design, names: Sequence[str], steps: int, *, progress: float) -> list[Any]:
    """Steps a vector environment as the trainer does; returns what the agent got, in order."""
    applier = DesignApplier(design, vec.observation_space, names, vec.num_envs)
    vec.seed(5)
    vec.action_space.seed(5)
    got: list[Any] = [applier.reset(vec.reset())]
    for _ in range(steps):
        actions = np.stack([vec.action_space.sample() for _ in range(vec.num_envs)])
        raw, rewards, dones, infos = vec.step(actions)
        obs, paid, infos = applier.step(raw, actions, rewards, dones, infos, progress=progress)
        assert paid.dtype == np.float32
        assert applier.batch is not None
        got.append((obs, paid, dones, infos, applier.batch))
    return got


CASES = [
    ("CartPole-v1", "action", {}),
    ("Pendulum-v1", "a0", {"max_episode_steps": 60}),
    ("LunarLander-v3", "action", {}),
]


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize(("env", "action", "kwargs"), CASES, ids=[case[0] for case in CASES])
def test_a_preview_equals_training_byte_for_byte(
    env: str, action: str, kwargs: dict[str, Any], n_envs: int
) -> None:
    vec = DummyVecEnv([_make(env, **kwargs) for _ in range(n_envs)])
    names = component_names(vec.observation_space, env)
    design = _design(names, action=action)
    first, *steps = _train(vec, design, names, 300, progress=0.25)
    batches = [batch for *_, batch in steps]
    assert sum(int(dones.sum()) for _, _, dones, _, _ in steps) >= 2 * n_envs

    # one environment after the other, as a recording has them
    order = np.argsort(np.concatenate([batch.episode for batch in batches]), kind="stable")
    whole = Transitions.concat(batches).slice(order)
    columns = {**whole.to_columns(), "episode": np.concatenate([batch.episode for batch in batches])[order]}
    recorded = Transitions.from_columns(columns, whole.meta())
    paid = np.concatenate([rewards for _, rewards, _, _, _ in steps])[order]
    preview = design.reward.evaluate(recorded, progress=0.25)
    assert preview.total.tobytes() == paid.tobytes()

    seen, reached = design.state.plan(vec.observation_space, names).preview(recorded)
    before = [first, *(obs for obs, *_ in steps[:-1])]
    assert seen.tobytes() == np.concatenate(before)[order].tobytes()
    after = np.concatenate([_reached(obs, dones, infos) for obs, _, dones, infos, _ in steps])[order]
    assert reached.tobytes() == after.tobytes()


def _reached(obs: Any, dones: Any, infos: Any) -> Any:
    reached = obs.copy()
    for index in np.flatnonzero(dones):
        reached[index] = infos[index]["terminal_observation"]
    return reached


@pytest.mark.parametrize(("env", "action", "kwargs"), CASES, ids=[case[0] for case in CASES])
def test_a_recording_holds_what_training_would_see(env: str, action: str, kwargs: dict[str, Any]) -> None:
    make = _make(env, **kwargs)
    names = component_names(make().observation_space, env)
    design = _design(names, action=action)
    recorded = record(
        lambda: _Extra(gym.make(env, **kwargs)), episodes=2, seed=3, signals=SIGNALS, names=names
    )
    vec = DummyVecEnv([make])
    applier = DesignApplier(design, vec.observation_space, names, 1)
    paid, seen = [], []
    for number, episode in enumerate(recorded.episodes()):
        vec.seed(3 + number)
        seen.append(applier.reset(vec.reset()))
        for row in range(len(episode)):
            action_taken = (
                np.asarray(episode.action)[row : row + 1]
                if action == "action"
                else _matrix(episode)[row : row + 1]
            )
            obs, rewards, _ = applier.step(*_stepped(vec, action_taken))
            paid.append(rewards)
            if row + 1 < len(episode):
                seen.append(obs)
    assert design.reward.evaluate(recorded).total.tobytes() == np.concatenate(paid).tobytes()
    preview, _ = design.state.plan(vec.observation_space, names).preview(recorded)
    assert preview.tobytes() == np.concatenate(seen).tobytes()


def _matrix(batch: Transitions) -> Any:
    return batch.action.matrix  # type: ignore[union-attr]


def _stepped(vec: Any, actions: Any) -> tuple[Any, ...]:
    raw, rewards, dones, infos = vec.step(actions)
    return raw, actions, rewards, dones, infos


def test_subprocess_workers_give_the_same_bytes() -> None:
    names = component_names(gym.make("Pendulum-v1").observation_space, "Pendulum-v1")
    design = Design(
        reward=RewardSpec(terms=[Term("env", "reward"), Term("calm", "-a0**2", weight=0.1)]),
        state=StateSpec([Delta(["theta_dot"])]),
    )
    factory = resolve_env("Pendulum-v1", {"max_episode_steps": 15})
    here, there = DummyVecEnv([factory] * 2), SubprocVecEnv([factory] * 2)
    try:
        ours, theirs = (_train(vec, design, names, 40, progress=0.0) for vec in (here, there))
        for mine, other in zip(ours[1:], theirs[1:], strict=True):
            assert mine[0].tobytes() == other[0].tobytes()
            assert mine[1].tobytes() == other[1].tobytes()
    finally:
        there.close()


def test_the_identity_changes_nothing_but_adds_the_episode() -> None:
    vec = DummyVecEnv([lambda: gym.make("CartPole-v1")])
    applier = DesignApplier(Design(), vec.observation_space, ("x", "x_dot", "theta", "theta_dot"), 1)
    vec.seed(0)
    assert applier.observation_space is vec.observation_space
    raw = vec.reset()
    assert applier.reset(raw) is raw
    steps = 0
    while True:
        raw, rewards, dones, infos = vec.step(np.array([1]))
        steps += 1
        obs, paid, infos = applier.step(raw, np.array([1]), rewards, dones, infos)
        assert obs is raw
        assert paid is rewards
        if dones[0]:
            break
    assert infos[0]["rlnb.episode"] == {
        "return": float(steps), "return_env": float(steps), "length": steps, "terms": {}, "values": {},
    }  # fmt: skip
    assert RAW_TERMINAL not in infos[0]
    assert applier.batch is None


def test_an_episode_reports_the_sums_of_its_terms() -> None:
    design = Design(
        reward=RewardSpec(terms=[Term("count", "next_obs0", weight=2.0), Term("quiet", "t", weight=0.0)])
    )
    vec = DummyVecEnv([Counter])
    applier = DesignApplier(design, vec.observation_space, ("obs0",), 1)
    applier.reset(vec.reset())
    for _ in range(2):  # the second episode begins from zero
        for step in range(3):
            action = np.zeros((1, 2), np.float32)
            _, paid, infos = applier.step(*_stepped(vec, action))
            assert paid.tolist() == [2.0 * (step + 1)]
        episode = infos[0]["rlnb.episode"]
        assert episode["terms"] == {"count": 12.0, "quiet": 0.0}
        assert episode["values"] == {"count": 6.0, "quiet": 3.0}
        assert (episode["return"], episode["length"]) == (12.0, 3)
        assert episode["return_env"] == pytest.approx(0.6)


def test_ends_are_told_apart_as_sb3_does() -> None:
    design = Design(reward=RewardSpec(terms=[Term("ends", "terminated + 10 * truncated")]))
    both = DummyVecEnv([Counter])  # terminated and truncated at once counts as terminated
    cut = DummyVecEnv([lambda: gym.wrappers.TimeLimit(Counter(10), 3)])
    for vec, last in ((both, 1.0), (cut, 10.0)):
        applier = DesignApplier(design, vec.observation_space, ("obs0",), 1)
        applier.reset(vec.reset())
        paid = [applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))[1].item() for _ in range(3)]
        assert paid == [0.0, 0.0, last]


def test_the_last_observation_is_shown_as_the_agent_sees_it() -> None:
    design = Design(state=StateSpec([Scale(["obs0"], factor=0.5), Delta(["obs0"])]))
    vec = DummyVecEnv([Counter])
    applier = DesignApplier(design, vec.observation_space, ("obs0",), 1)
    assert applier.reset(vec.reset()).tolist()[0][0] == 0.0
    for _ in range(3):
        obs, _, infos = applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))
    last = infos[0]["terminal_observation"]
    assert last.dtype == np.float32
    assert last.tolist() == [1.5, 0.5]  # halved, and the change since the step before
    assert infos[0][RAW_TERMINAL].tolist() == [3.0]
    assert not obs.any()  # the next episode begins at 0 with no difference to the last one


def test_a_saved_applier_goes_on_with_the_same_bytes() -> None:
    names = component_names(gym.make("CartPole-v1").observation_space, "CartPole-v1")
    full = _design(names, action="action")
    design = Design(reward=full.reward, state=StateSpec([*full.state.ops, RunningZScore(["x_dot", "theta"])]))
    vec = DummyVecEnv([_make("CartPole-v1") for _ in range(2)])
    vec.seed(1)
    rng = np.random.default_rng(0)
    applier = DesignApplier(design, vec.observation_space, names, 2)
    applier.reset(vec.reset())
    for _ in range(37):
        applier.step(*_stepped(vec, rng.integers(0, 2, 2)))
    resumed = DesignApplier(design, vec.observation_space, names, 2)
    resumed.load_state_dict(applier.state_dict())
    for _ in range(60):
        raw, actions, rewards, dones, infos = _stepped(vec, rng.integers(0, 2, 2))
        mine = applier.step(raw, actions, rewards, dones, [dict(info) for info in infos])
        other = resumed.step(raw, actions, rewards, dones, [dict(info) for info in infos])
        assert mine[0].tobytes() == other[0].tobytes()
        assert mine[1].tobytes() == other[1].tobytes()
        for one, two in zip(mine[2], other[2], strict=True):
            assert one.get("rlnb.episode") == two.get("rlnb.episode")


def test_evaluation_does_not_teach_the_statistics() -> None:
    design = Design(state=StateSpec([RunningZScore(["obs0"])]))
    applier = DesignApplier(design, Counter().observation_space, ("obs0",), 1)
    applier.reset(np.ones((1, 1), np.float32))
    before = applier.state_dict()["context"]
    applier.learning = False
    assert not applier.learning
    applier.observe(np.full((1, 1), 50, np.float32))
    after = applier.state_dict()["context"]
    assert before.keys() == after.keys()
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value)


def test_the_state_space_follows_from_the_design() -> None:
    space = gym.make("CartPole-v1").observation_space
    design = Design(state=StateSpec([Select(["theta", "theta_dot"])]))
    applier = DesignApplier(design, space, component_names(space, "CartPole-v1"), 1)
    assert applier.observation_space.shape == (2,)


def test_a_saved_state_of_other_environments_is_refused() -> None:
    space = Counter().observation_space
    two, three = (DesignApplier(Design(), space, ("obs0",), n) for n in (2, 3))
    with pytest.raises(
        EnvError, match="the saved state is of 3 environments, and there are 2; resume with n_envs=3"
    ):
        two.load_state_dict(three.state_dict())


def test_a_step_before_the_reset_is_refused() -> None:
    design = Design(reward=RewardSpec(terms=[Term("count", "obs0")]))
    vec = DummyVecEnv([Counter])
    applier = DesignApplier(design, vec.observation_space, ("obs0",), 1)
    vec.reset()
    with pytest.raises(EnvError, match=r"step\(\) came before reset\(\)"):
        applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))


def test_an_unknown_component_is_named() -> None:
    design = Design(state=StateSpec([Select(["obs1"])]))
    with pytest.raises(DesignError, match="obs1"):
        DesignApplier(design, Counter().observation_space, ("obs0",), 1)


def test_a_reward_that_is_no_number_stops_training_and_names_the_term() -> None:
    terms = [
        Term("fine", "obs0"),
        Term("broken", "1 / (obs0 - 2)"),
        Term("watched", "1 / (obs0 - 1)", weight=0.0),
    ]
    vec = DummyVecEnv([Counter])
    applier = DesignApplier(Design(reward=RewardSpec(terms=terms)), vec.observation_space, ("obs0",), 1)
    applier.reset(vec.reset())
    for _ in range(2):  # a term of weight 0 is only watched and spoils nothing
        applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))
    message = r"the reward is inf at step 2 of episode 0: the term 'broken' gave inf; guard it with where"
    with pytest.raises(DesignError, match=message):
        applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))


def test_a_group_that_is_no_number_is_named_though_its_terms_are_fine() -> None:
    reward = RewardSpec(
        [Term("a", "obs0", group="g"), Term("b", "reward", 2.0, group="h")],
        groups=[TermGroup("g", combine="1 / (a - 1)"), TermGroup("h", 0.5)],
    )
    vec = DummyVecEnv([Counter])
    applier = DesignApplier(Design(reward=reward), vec.observation_space, ("obs0",), 1)
    applier.reset(vec.reset())
    applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))
    with pytest.raises(
        DesignError, match=r"the reward is inf at step 1 of episode 0: the group 'g' gave inf"
    ):
        applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))


def test_an_episode_sums_what_a_term_gave_within_its_group() -> None:
    reward = RewardSpec([Term("a", "next_obs0", 2.0, group="g")], groups=[TermGroup("g", 0.25)])
    vec = DummyVecEnv([Counter])
    applier = DesignApplier(Design(reward=reward), vec.observation_space, ("obs0",), 1)
    applier.reset(vec.reset())
    for _ in range(3):
        _, _, infos = applier.step(*_stepped(vec, np.zeros((1, 2), np.float32)))
    episode = infos[0]["rlnb.episode"]
    assert (episode["return"], episode["terms"], episode["values"]) == (3.0, {"a": 3.0}, {"a": 6.0})
