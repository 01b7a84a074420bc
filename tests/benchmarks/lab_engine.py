"""What the Lab computes while a slider moves and when it is let go: a million transitions, eight terms."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.design.checks.design import check_design
from rlnb.design.expressions.expression import compile_expression
from rlnb.design.preview.preview import RewardPreview
from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.design.state import StateSpec
from rlnb.design.transitions import Transitions
from tests.benchmarks.harness import figure, timed

STEPS = 1_000_000
LENGTHS = (100, 700)  # of an episode; LunarLander's last 100 to 1,000: about 2,500 episodes
NAMES = ("x", "y", "vx", "vy", "angle", "angle_rate", "left_contact", "right_contact")
POLICIES = ("random", "idle", "demo", "run-7f3a@best")

REWARD = RewardSpec(
    [
        Term("env", "reward"),
        Shaping("approach", "-sqrt(x**2 + y**2)", gamma=0.999),
        Term("speed", "-sqrt(vx**2 + vy**2) * (y < 0.5)", weight=0.3),
        Term("upright", "-abs(angle)", weight=0.5, clip=(-1.0, 0.0)),
        Term("spin", "-abs(angle_rate)", weight=0.1),
        Term("landing", "where(left_contact + right_contact > 0, exp(-abs(next_vy)), 0)", weight=2.0),
        Term("fuel", "-(action == 2) - 0.1 * (action != 0)", weight=0.3),
        Term("smooth", "-(action != prev_action)", weight=0.05),
    ]
)
COMBINED = "env + approach * tanh(upright + spin) + min(speed, landing) + max(fuel, -1) + smooth"


@cache
def recorded() -> Transitions:
    """Returns a million steps of made-up episodes by four policies, as long and as mixed as real ones."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(*LENGTHS, size=STEPS // LENGTHS[0])
    lengths = lengths[: np.searchsorted(np.cumsum(lengths), STEPS) + 1]
    lengths[-1] -= lengths.sum() - STEPS
    starts = np.cumsum(lengths) - lengths
    t = np.arange(STEPS) - np.repeat(starts, lengths)
    obs = rng.standard_normal((STEPS + 1, len(NAMES)), dtype=np.float32)
    obs[:, 6:] = obs[:, 6:] > 0.5
    last = np.zeros(STEPS, dtype=bool)
    last[np.cumsum(lengths) - 1] = True
    return Transitions.from_arrays(
        obs[:-1], obs[1:], rng.integers(0, 4, STEPS), reward=rng.standard_normal(STEPS), terminated=last,
        truncated=np.zeros(STEPS, dtype=bool), t=t, names=NAMES,
        labels={number: POLICIES[number * len(POLICIES) // len(lengths)] for number in range(len(lengths))},
    )  # fmt: skip


def edited(reward: RewardSpec, place: int, **changes: Any) -> RewardSpec:
    terms = list(reward.terms)
    terms[place] = replace(terms[place], **changes)
    return replace(reward, terms=terms)


def show(preview: RewardPreview) -> None:
    """Everything of the Reward tab that moves with a slider."""
    assert len(preview.result.total) == STEPS
    assert preview.step_histogram().counts.sum() == STEPS
    assert len(preview.returns) == len(preview.term_returns["env"]) == len(preview.env_returns)
    preview.contributions(17)


def milliseconds(act: Callable[[int], object], repeats: int = 24) -> list[float]:
    """Returns the milliseconds of act(0), act(1), …; the first three are not counted."""
    taken = []
    gc.collect()
    for index in range(-3, repeats):
        begun = time.perf_counter()
        act(index)
        taken.append(1e3 * (time.perf_counter() - begun))
    return taken[3:]


def drags(reward: RewardSpec) -> list[float]:
    """Milliseconds of a weight's move until everything is computed anew, each of the eight terms in turn."""
    preview = RewardPreview(recorded(), reward)

    def drag(index: int) -> None:
        place = index % len(reward.terms)
        preview.update(edited(reward, place, weight=0.37 + 0.01 * index))
        show(preview)

    return milliseconds(drag)


@figure("slider_python", "ms", "<= 30")
def slider_python() -> list[float]:
    return drags(REWARD)


@figure("combine_python", "ms", "<= 100")
def combine_python() -> list[float]:
    """The same with an expression that combines the terms."""
    return drags(replace(REWARD, combine=COMBINED))


@figure("slider_release", "ms", "<= 250")
def slider_release() -> list[float]:
    """Ranking and checks of the reward a slider was let go at; only these, the drag has shown the rest."""
    batch, kept = recorded(), dict[Any, Any]()
    preview = RewardPreview(batch, REWARD)
    plan = StateSpec().plan(gym.spaces.Box(-10.0, 10.0, (len(NAMES),), np.float32), NAMES)
    actions = gym.spaces.Discrete(4)
    taken = []
    for index in range(10):
        preview.update(edited(REWARD, index % len(REWARD.terms), weight=0.37 + 0.01 * index))
        show(preview)
        gc.collect()
        begun = time.perf_counter()
        preview.ranking()
        check_design(
            batch,
            preview.reward,
            plan,
            result=preview.result,
            action_space=actions,
            good=["demo"],
            cache=kept,
        )
        taken.append(1e3 * (time.perf_counter() - begun))
    return taken[1:]  # the first fills what does not depend on weights


@figure("expression_edit", "ms", "<= 150")
def expression_edit() -> list[float]:
    """An expression that was never measured before, and everything shown."""
    preview = RewardPreview(recorded(), REWARD)

    def edit(index: int) -> None:
        text = f"-sqrt(vx**2 + vy**2) * (y < {0.5 + index / 100}) * exp(-abs(angle))"
        preview.update(edited(REWARD, 2, expression=text))
        show(preview)

    return milliseconds(edit)


def in_python(vx: float, vy: float, y: float, angle: float) -> float:
    """The formula as a person writes it for one step."""
    return -math.sqrt(vx * vx + vy * vy) * (y < 0.5) * math.exp(-abs(angle))


@figure("expression_speedup", "ratio", ">= 20")
def expression_speedup() -> list[float]:
    """One call a step on plain floats, which is the quickest Python has, against the expression."""
    rows = 200_000
    names = recorded().namespace
    columns = {name: names[name][:rows] for name in ("vx", "vy", "y", "angle")}
    expression = compile_expression("-sqrt(vx**2 + vy**2) * (y < 0.5) * exp(-abs(angle))")
    lists = [column.tolist() for column in columns.values()]
    one_by_one = [in_python(*step) for step in zip(*lists, strict=True)]
    np.testing.assert_allclose(expression.evaluate(columns), one_by_one, rtol=1e-12)
    slow = timed(lambda: [in_python(*step) for step in zip(*lists, strict=True)], 9)
    quick = timed(lambda: expression.evaluate(columns), 9)
    return [a / b for a, b in zip(slow, quick, strict=True)]
