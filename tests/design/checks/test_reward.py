"""The known traps, each with the right number; and sound designs that raise none."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from rlnb.design.checks.finding import Severity
from rlnb.design.checks.reward.check import check_reward
from rlnb.design.reward import RewardSpec, Shaping, Term, TermGroup
from rlnb.design.transitions import Transitions
from tests.design.checks import rollouts
from tests.design.checks.rollouts import by_code

mountain_car = lru_cache(rollouts.mountain_car)
cart_pole = lru_cache(rollouts.cart_pole)
grid = lru_cache(rollouts.grid)
lunar_lander = lru_cache(rollouts.lunar_lander)

ENV = Term("env", "reward")


def rise(batch):
    return np.sin(batch.next_obs["x"]) - np.sin(batch.obs["x"])


def bad(findings):
    return {finding.code for finding in findings if finding.severity in (Severity.PROBLEM, Severity.WARNING)}


def test_a_survive_bonus_on_mountain_car_pays_for_not_arriving():
    batch = mountain_car()
    findings = by_code(check_reward(batch, RewardSpec([ENV, Term("alive", "1", weight=2.0)])))
    idle = findings["reward.idle"]
    good = [len(episode) for episode in batch.episodes() if "pump" in episode.labels.values()]
    assert idle.severity is Severity.PROBLEM
    assert idle.value == 200.0  # (2 - 1) a step over the time limit of 200 steps
    assert f"the demonstration earns {np.mean(good):g} " in idle.sentence
    assert f"200 ({(1 - 0.99**200) / 0.01:.4g} discounted by 0.99)" in idle.sentence
    assert "'alive'" in idle.advice
    assert batch.labels[int(batch.episode[idle.rows[0]])] == "random"
    assert findings["reward.loop"].severity is Severity.PROBLEM
    assert findings["reward.loop"].value == pytest.approx(1.0)
    separation = findings["reward.separation"]
    assert (separation.severity, separation.value) == (Severity.PROBLEM, 0.0)
    assert "separates them better (AUC 1.000)" in separation.sentence
    # the two terms cancel between episodes: neither drowns the other
    assert findings["reward.dominated"].severity is Severity.FINE
    assert findings["reward.dominated"].value == pytest.approx(2 / 3)


def test_without_a_limit_seen_the_pay_for_going_on_is_extrapolated():
    batch = grid()
    random = batch.slice(batch.policy == "random")
    ended = [one for one in random.episodes() if one.terminated[-1]]
    demo = batch.slice(batch.policy == "demo")
    both = Transitions.concat([*ended, demo])
    found = by_code(check_reward(both, RewardSpec([ENV, Term("alive", "1")])))["reward.idle"]
    assert found.severity is Severity.PROBLEM
    longest = max(len(one) for one in ended)
    assert "without reaching the end" in found.sentence
    assert f"in {longest} steps (the longest episode seen)" in found.sentence


def test_a_loop_in_a_grid_is_found_with_its_pay():
    batch = grid()
    loop = by_code(check_reward(batch, RewardSpec.env()))["reward.loop"]
    assert loop.severity is Severity.PROBLEM
    assert loop.value == 0.5  # 1 -> 2 pays 1, 2 -> 1 pays 0
    assert "over 7 observed states has 2 steps and earns 0.5 a step, 25 (" in loop.sentence
    assert "the demonstration earns 4 (" in loop.sentence
    steps = {(int(batch.obs["cell"][row]), int(batch.next_obs["cell"][row])) for row in loop.rows}
    assert steps == {(1, 2), (2, 1)}
    # paid once instead, as a potential, the loop is worth nothing
    sound = RewardSpec([Term("goal", "3 * (next_cell == 6)"), Shaping("near", "(cell >= 2)")])
    loop = by_code(check_reward(batch, sound))["reward.loop"]
    assert loop.severity is Severity.FINE
    assert loop.value == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("next_x - x", "spread"),
        ("0.9 * next_x - x", "gamma"),
        ("max(next_x - x, 0)", "back"),
        (rise, "python"),
    ],
)
def test_shaping_that_is_no_potential_is_told_with_what_it_pays(expression, number):
    batch = mountain_car()
    spec = RewardSpec([ENV, Term("progress", expression, weight=10.0)])
    found = by_code(check_reward(batch, spec))["reward.shaping"]
    assert found.severity is Severity.WARNING
    assert found.names == ("progress",)
    x = batch.obs["x"]
    if number == "spread":
        assert found.value == pytest.approx(10 * 0.01 * (x.max() - x.min()), rel=0.05)
        assert "rlnb.Shaping('progress', 'x', gamma=0.99)" in found.advice
        assert found.sentence.endswith("more a step to stay where Phi is highest.")
    elif number == "gamma":
        assert found.value == pytest.approx(10 * 0.09 * (x.max() - x.min()), rel=0.05)
        assert "has the discount 0.9;" in found.sentence
        assert found.sentence.endswith("more a step to stay where Phi is lowest.")
    elif number == "back":
        assert found.value == pytest.approx(10 * np.abs(batch.next_obs["x"] - x).mean(), rel=0.1)
    else:
        assert found.value == pytest.approx(10 * 0.01 * (np.sin(x).max() - np.sin(x).min()), rel=0.05)


def test_costs_and_potentials_are_not_called_shaping_that_misleads():
    batch = mountain_car()
    terms = [
        ENV,
        Term("angle", "-abs(x)"),
        Term("jerk", "abs(next_v - v)", weight=-1.0),
        Term("effort", "-abs(action - prev_action)"),
        Shaping("height", "sin(3 * x)", weight=5.0),
    ]
    found = by_code(check_reward(batch, RewardSpec(terms)))["reward.shaping"]
    assert found.severity is Severity.FINE
    assert "('height' is potential-based)" in found.sentence
    by_hand = by_code(check_reward(batch, RewardSpec([ENV, Term("f", "0.99 * next_x - x")])))[
        "reward.shaping"
    ]
    assert by_hand.severity is Severity.HINT
    assert "pays for ending" in by_hand.sentence


@pytest.mark.parametrize(("group", "severity"), [(None, Severity.FINE), ("care", Severity.HINT)])
def test_shaping_is_told_to_stand_in_an_expression_only_where_it_does(group, severity):
    terms = [ENV, Shaping("height", "x", group=group), Term("slow", "-abs(v)", group="care")]
    care = TermGroup("care", combine="min(0, slow)" if group is None else "min(height, slow)")
    found = by_code(check_reward(mountain_car(), RewardSpec(terms, groups=[care])))["reward.shaping"]
    assert found.severity is severity


def test_shaping_with_another_discount_than_the_agents():
    batch = mountain_car()
    spec = RewardSpec([ENV, Shaping("height", "x", gamma=0.9)])
    found = by_code(check_reward(batch, spec))["reward.shaping"]
    assert found.severity is Severity.WARNING
    assert found.value == pytest.approx(0.09 * np.abs(batch.next_obs["x"]).max(), rel=0.05)
    assert by_code(check_reward(batch, spec, gamma=0.9))["reward.shaping"].severity is Severity.FINE


def test_pay_for_being_near_is_a_hint_where_the_aim_is_to_arrive():
    found = by_code(check_reward(mountain_car(), RewardSpec([ENV, Term("near", "x + 1.2")])))[
        "reward.shaping"
    ]
    assert found.severity is Severity.HINT
    assert "a guess" in found.sentence


def test_a_bonus_at_truncation_is_found_by_name_and_by_its_jump():
    batch = mountain_car()
    for expression in ("5 * truncated", "5 * (t >= 199)"):
        spec = RewardSpec([ENV, Term("swing", "1000 * v"), Term("late", expression)])
        found = by_code(check_reward(batch, spec))["reward.truncation"]
        assert found.severity is Severity.WARNING
        assert found.names == ("late",)
        assert found.value == pytest.approx(5.0)
        assert all(batch.truncated[list(found.rows)])
    assert by_code(check_reward(batch, RewardSpec.env()))["reward.truncation"].value == 0.0


def test_demo_missing_is_one_hint_instead_of_three_checks():
    batch = mountain_car()
    random = batch.slice(batch.policy == "random")
    findings = by_code(check_reward(random, RewardSpec.env()))
    assert findings["reward.demo"].severity is Severity.HINT
    assert 'among 4 recorded episodes (by "random")' in findings["reward.demo"].sentence
    assert not {"reward.separation", "reward.idle", "reward.loop"} & set(findings)
    assert "reward.demo" in by_code(check_reward(batch, RewardSpec.env(), good=["nobody"]))
    assert "reward.demo" not in by_code(check_reward(random, RewardSpec.env(), good=["random"]))
    empty = check_reward(batch.slice(slice(0, 0)), RewardSpec.env())
    assert [finding.code for finding in empty] == ["reward.demo"]


def test_what_cannot_repeat_is_not_searched_for_loops():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (40, 12, 12), dtype=np.uint8)
    t = np.arange(40) % 10
    batch = Transitions.from_arrays(
        images, images, np.zeros(40, int), reward=np.ones(40), terminated=t == 9,
        truncated=np.zeros(40, bool), t=t, labels={0: "random", 1: "random", 2: "demo", 3: "demo"},
    )  # fmt: skip
    found = by_code(check_reward(batch, RewardSpec.env()))["reward.loop"]
    assert found.severity is Severity.FINE
    assert "an observation of 144 numbers never repeats" in found.sentence


@pytest.mark.parametrize(
    ("batch", "spec"),
    [
        (cart_pole, RewardSpec.env()),
        (lunar_lander, RewardSpec.env()),
        (cart_pole, RewardSpec([ENV, Term("tilt", "-abs(angle)")])),
        (mountain_car, RewardSpec([ENV, Shaping("height", "sin(3 * x)", weight=5.0)])),
        (mountain_car, RewardSpec([ENV, Shaping("height", "-100 * abs(x - 0.5)")])),
        (grid, RewardSpec([Term("goal", "3 * (next_cell == 6)"), Shaping("near", "cell / 6")])),
    ],
)
def test_a_sound_design_raises_no_problem_and_no_warning(batch, spec):
    findings = check_reward(batch(), spec)
    assert bad(findings) == set()
    assert {finding.code for finding in findings} == {
        f"reward.{name}" for name in (
            "nonfinite", "separation", "idle", "loop", "shaping", "dominated", "never_fires", "correlated",
            "scale", "sparse", "truncation",
        )
    }  # fmt: skip
