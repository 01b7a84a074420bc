"""The sufficiency probe: the non-Markov trap with its number, and sound designs of real environments."""

from __future__ import annotations

from functools import cache

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import rlnb
from rlnb.design.checks.finding import Severity
from rlnb.design.checks.state.check import check_state
from rlnb.design.checks.state.markov import check_markov
from rlnb.design.checks.state.sample import take_sample
from rlnb.design.checks.state.sufficiency import REWARD, sufficiency
from rlnb.design.state import Delta, RunningZScore, Select, Stack, StateSpec
from rlnb.design.transitions import Transitions


def balance(obs):
    x, x_dot, theta, theta_dot = obs
    return int(theta + 0.3 * theta_dot + 0.02 * x + 0.1 * x_dot > 0)


def swing_up(obs):
    cos, sin, rate = obs
    if cos > 0.8:
        return np.array([np.clip(-10 * np.arctan2(sin, cos) - 2 * rate, -2, 2)], dtype=np.float32)
    return np.array([2.0 if rate >= 0 else -2.0], dtype=np.float32)


def brake(obs):
    _, y, _, vy, angle, angle_rate, *_ = obs
    if abs(angle + angle_rate) > 0.15:
        return 3 if angle + angle_rate > 0 else 1
    return 2 if vy < -0.3 * y - 0.1 else 0


@cache
def recorded(env_id: str) -> Transitions:
    """Random and scripted rollouts, a few thousand steps."""
    policy, episodes = {
        "CartPole-v1": (balance, (30, 6)),
        "Pendulum-v1": (swing_up, (6, 4)),
        "LunarLander-v3": (brake, (15, 6)),
    }[env_id]
    return Transitions.concat(
        [
            rlnb.record(env_id, episodes=episodes[0], seed=1),
            rlnb.record(env_id, policy, episodes=episodes[1], seed=50, label="demo"),
        ]
    )


@cache
def spaces_of(env_id):
    env = gym.make(env_id)
    found = env.observation_space, env.action_space
    env.close()
    return found


def probe(env_id, *ops, batch=None):
    batch = recorded(env_id) if batch is None else batch
    observation, action = spaces_of(env_id)
    return check_markov(take_sample(batch, StateSpec(ops).plan(observation, batch.obs.names)), action)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "LunarLander-v3"])
@pytest.mark.parametrize("ops", [(), (RunningZScore(),)])
def test_a_sound_design_raises_nothing_worse_than_a_hint(env_id, ops):
    batch = recorded(env_id)
    observation, action = spaces_of(env_id)
    plan = StateSpec(ops).plan(observation, batch.obs.names)
    found = check_state(batch, plan, action_space=action)
    assert [str(one) for one in found if one.severity in (Severity.PROBLEM, Severity.WARNING)] == []
    markov = found[-1]
    assert (markov.code, markov.severity) == ("state.markov", Severity.FINE)
    assert markov.value < 0.1 or "LunarLander" in env_id


def test_random_rollouts_alone_are_enough_to_tell():
    for env_id in ("CartPole-v1", "Pendulum-v1", "LunarLander-v3"):
        batch = recorded(env_id)
        assert probe(env_id, batch=batch.slice(batch.policy == "random")).severity is Severity.FINE


def test_the_trap_cartpole_without_velocities():
    found = probe("CartPole-v1", Select(["x", "theta"]))
    assert found.severity is Severity.WARNING
    assert set(found.names) == {"x", "theta"}
    assert found.value > 0.5
    batch = recorded("CartPole-v1")
    plan = StateSpec([Select(["x", "theta"])]).plan(spaces_of("CartPole-v1")[0], batch.obs.names)
    scores = sufficiency(take_sample(batch, plan), spaces_of("CartPole-v1")[1])
    assert scores.targets == ("x", "theta")  # the reward is always 1 and cannot be predicted better
    assert (scores.one_frame < 0.6).all()
    assert (
        scores.two_frames > 0.999
    ).all()  # both next changes follow from two positions and the action between
    assert (scores.with_action < 0.9).all()
    most = int(np.argmax(scores.gains))
    one, two = max(scores.one_frame[most], 0), scores.two_frames[most]
    assert found.value == scores.gains[most] == two - one
    assert f"R2 {one:.2f} from one frame, {two:.2f} from two" in found.sentence
    whole = sufficiency(
        take_sample(batch, StateSpec().plan(spaces_of("CartPole-v1")[0], batch.obs.names)),
        spaces_of("CartPole-v1")[1],
    )
    assert (whole.one_frame > 0.99).all()


@pytest.mark.parametrize(
    ("env_id", "kept", "lacking"),
    [
        ("Pendulum-v1", ["cos_theta", "sin_theta"], "sin_theta"),
        ("LunarLander-v3", ["x", "y", "angle"], "y"),
    ],
)
def test_velocities_are_missed_elsewhere_too(env_id, kept, lacking):
    found = probe(env_id, Select(kept))
    assert found.severity is Severity.WARNING
    assert lacking in found.names


@pytest.mark.parametrize("remedy", [Delta(["x", "theta"]), Stack(3)])
def test_the_advice_helps_as_far_as_it_can(remedy):
    # CartPole's positions lag its velocities by a step, so that the action before stays unknown: worth a hint.
    found = probe("CartPole-v1", Select(["x", "theta"]), remedy)
    assert found.severity is Severity.HINT
    assert found.sentence.startswith("Only the action before is missing")


@pytest.mark.parametrize("remedy", [Delta(["x", "y"]), Stack(2, ["x", "y"]), Stack(4)])
def test_frames_in_a_state_count_as_one_although_they_are_nearly_the_same(remedy):
    seen = Select(["x", "y", "angle", "angle_rate", "left_contact", "right_contact"])
    assert probe("LunarLander-v3", seen).severity is Severity.WARNING
    assert probe("LunarLander-v3", seen, remedy).severity is Severity.FINE


def line(n, *, length=40, slope=0.5, reward=None, obs=None):
    """Episodes of a walk x' = x + slope * v with a velocity v that changes by chance."""
    rng = np.random.default_rng(3)
    v = np.repeat(rng.standard_normal(n // length), length)
    t = np.arange(n) % length
    x = slope * v * t if obs is None else obs
    last = t == length - 1
    return Transitions.from_arrays(
        x[:, None], (x + slope * v if obs is None else obs)[:, None], np.zeros(n, dtype=np.int64),
        reward=np.zeros(n) if reward is None else reward, terminated=last, truncated=np.zeros(n, dtype=bool), t=t,
        names=("x",),
    )  # fmt: skip


def check_line(batch):
    space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    return check_markov(take_sample(batch, StateSpec().plan(space, ("x",))))


def test_a_perfectly_linear_hidden_velocity():
    found = check_line(line(2000))
    assert (found.severity, found.names) == (Severity.WARNING, ("x",))
    assert "1.00 from two" in found.sentence


def test_a_reward_that_pays_for_the_step_before():
    x = np.random.default_rng(0).standard_normal(2000)
    found = check_line(line(2000, obs=x, reward=np.roll(x, 1)))
    assert found.names == (REWARD,)
    assert found.value == pytest.approx(1, abs=0.01)
    assert "to predict the reward (R2 0.00 from one frame, 1.00 from two" in found.sentence
    assert check_line(line(2000, obs=x, reward=x)).severity is Severity.FINE


def test_pure_noise_is_not_called_a_missing_state():
    rng = np.random.default_rng(1)
    found = check_line(line(2000, obs=rng.standard_normal(2000), reward=rng.standard_normal(2000)))
    assert found.severity is Severity.FINE
    assert abs(found.value) < 0.05


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (line(120), "takes 75 steps in 4 episodes.* there are 11[0-9] steps in 3 episodes"),
        (line(2000, obs=np.full(2000, 3.0)), "neither the observation nor the reward ever changes"),
    ],
)
def test_what_cannot_be_told(batch, reason):
    import re

    found = check_line(batch)
    assert (found.severity, found.value) == (Severity.HINT, None)
    assert re.search(reason, found.sentence)


def test_categories_are_not_taken_for_quantities():
    # A ring of 12 places in an order that no line describes; the action says which way to go.
    rng = np.random.default_rng(0)
    order = rng.permutation(12)
    n, length = 3000, 30
    action = rng.integers(0, 2, n)
    place = np.zeros(n + 1, dtype=np.int64)
    for row in range(n):
        place[row + 1] = (place[row] + 2 * action[row] - 1) % 12
    t = np.arange(n) % length
    batch = Transitions.from_arrays(
        order[place[:-1]], order[place[1:]], action, reward=np.zeros(n), terminated=t == length - 1,
        truncated=np.zeros(n, dtype=bool), t=t, names=("place",),
    )  # fmt: skip
    sample = take_sample(batch, StateSpec().plan(spaces.Discrete(12), ("place",)))
    scores = sufficiency(sample, spaces.Discrete(2))
    assert scores.one_frame[0] > 0.99
    assert check_markov(sample, spaces.Discrete(2)).severity is Severity.FINE
