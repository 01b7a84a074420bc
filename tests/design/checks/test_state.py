"""Checks of single components: every trap with its number, on small arrays computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from rlnb.design.checks.episode_sampling import sampled_rows
from rlnb.design.checks.finding import Severity
from rlnb.design.checks.state.check import CODES, check_state
from rlnb.design.checks.state.information import information
from rlnb.design.checks.state.sample import take_sample
from rlnb.design.state import Derive, Select, StateSpec, ToUnit
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError


def batch_of(columns, *, length=50, reward=None, terminated=None, labels=None, dtype=np.float32):
    """Whole episodes of `length` steps over named columns; s' is the row after, or s at an end."""
    obs = np.column_stack([np.asarray(column, dtype=dtype) for column in columns.values()])
    n = len(obs)
    t = np.arange(n) % length
    after = np.roll(obs, -1, axis=0)
    last = np.append(t[1:] == 0, True)
    after[last] = obs[last]
    ends = last if terminated is None else terminated
    return Transitions.from_arrays(
        obs, after, np.zeros(n, dtype=np.int64), reward=np.zeros(n) if reward is None else reward,
        terminated=ends, truncated=last & ~ends, t=t, names=tuple(columns), labels=labels,
    )  # fmt: skip


def findings(batch, low=-np.inf, high=np.inf, ops=(), **options):
    names = batch.obs.names
    space = spaces.Box(np.float32(low), np.float32(high), (len(names),), batch.obs.matrix.dtype)
    found = check_state(batch, StateSpec(ops).plan(space, names), **options)
    assert [one.code for one in found] == list(CODES)
    assert all(one.sentence and one.why for one in found)
    return {one.code.removeprefix("state."): one for one in found}


RNG = np.random.default_rng(7)
NOISE = RNG.standard_normal((4, 1000))


def test_bounds_name_component_value_and_rows():
    x = np.clip(NOISE[0], -0.9, 0.9)
    x[[17, 401]] = 1.5, -3
    found = findings(batch_of({"x": x, "y": NOISE[1].clip(-1, 1)}), low=-1, high=1)["bounds"]
    assert (found.severity, found.names, found.value) == (Severity.WARNING, ("x",), 4)
    assert found.rows == (16, 17, 400, 401)  # as s' and as s
    assert "x reaches -3 where -1 to 1 is declared, in 4 of 1,000 steps" in found.sentence
    assert findings(batch_of({"x": x}), low=-3, high=1.5)["bounds"].severity is Severity.FINE


def test_a_bound_forgives_the_rounding_of_float32():
    assert (
        findings(batch_of({"x": np.full(100, 1 + 1e-6)}), low=-1, high=1)["bounds"].severity is Severity.FINE
    )


def test_what_is_not_finite_is_a_problem_of_the_transformed_state_only():
    x = NOISE[0].copy()
    x[601] = 0
    batch = batch_of({"x": x, "y": NOISE[1]})
    assert findings(batch)["bounds"].severity is Severity.FINE
    found = findings(batch, ops=[Derive("inverse", "1 / x")])["bounds"]
    assert (found.severity, found.names, found.rows) == (Severity.PROBLEM, ("inverse",), (600, 601))
    assert "inverse is inf or the like in 2 of 1,000 steps" in found.sentence
    assert (
        findings(batch, ops=[Derive("inverse", "1 / x"), Select(["y"])])["bounds"].severity is Severity.FINE
    )


def test_unbounded_components_until_they_are_standardized():
    columns = {"x": 5 * NOISE[0], "y": (NOISE[1] - NOISE[1].mean()) / NOISE[1].std()}
    found = findings(batch_of(columns))["unbounded"]
    assert (found.severity, found.names, found.value) == (Severity.HINT, ("x",), 1)
    assert findings(batch_of({"y": columns["y"]}))["unbounded"].severity is Severity.FINE
    assert findings(batch_of(columns), low=-50, high=50)["unbounded"].value == 0


def test_more_than_100_dimensions():
    columns = {f"c{i}": column for i, column in enumerate(RNG.standard_normal((101, 60)))}
    found = findings(batch_of(columns))
    assert (found["dimensions"].severity, found["dimensions"].value) == (Severity.WARNING, 101)
    assert findings(batch_of({"x": NOISE[0]}))["dimensions"].sentence == "The state has 1 dimension."


def test_duplicates_are_named_the_nearest_first():
    columns = {"x": NOISE[0], "copy": -3 * NOISE[0] + 1, "near": NOISE[0] + 0.1 * NOISE[1], "y": NOISE[2]}
    found = findings(batch_of(columns))["duplicates"]
    assert (found.severity, found.names) == (Severity.HINT, ("x", "copy", "near"))
    assert found.value == pytest.approx(1)
    assert found.sentence.startswith(
        "3 pairs of components are nearly the same over 1,000 steps: x and copy (|r| 1.000)"
    )
    expected = abs(np.corrcoef(NOISE[0], NOISE[2])[0, 1])
    assert findings(batch_of({"x": NOISE[0], "y": NOISE[2]}))["duplicates"].value == pytest.approx(
        expected, abs=1e-6
    )


def test_constants_and_scale():
    found = findings(
        batch_of({"x": NOISE[0], "tiny": 1e-3 * NOISE[1], "still": np.full(1000, 0.1), "flag": NOISE[2] > 3})
    )
    assert (found["constant"].severity, found["constant"].names) == (Severity.HINT, ("still",))
    assert found["constant"].sentence == "1 component never changed in 1,000 steps: still = 0.1."
    assert (found["scale"].severity, found["scale"].names) == (Severity.WARNING, ("x", "tiny"))
    assert found["scale"].value == pytest.approx(1000 * NOISE[0].std() / NOISE[1].std(), rel=1e-3)
    assert findings(batch_of({"x": NOISE[0], "y": 50 * NOISE[1]}))["scale"].severity is Severity.FINE


def test_saturation_counts_numbers_at_a_bound_but_no_flags():
    x = np.r_[np.ones(100), np.linspace(-0.9, 0.9, 900)]
    found = findings(batch_of({"x": x, "flag": NOISE[0] > 0}), low=-1, high=1)["saturated"]
    assert (found.severity, found.names, found.value) == (Severity.HINT, ("x",), 0.1)
    assert found.rows == (0, 1, 2, 3, 4)


def test_information_of_a_bit_and_of_noise():
    coin = RNG.integers(0, 2, 4000)
    batch = batch_of({"coin": coin, "noise": RNG.standard_normal(4000)}, reward=10.0 * coin)
    plan = StateSpec().plan(spaces.Box(-9, 9, (2,), np.float32), ("coin", "noise"))
    told = information(take_sample(batch, plan), batch.reward)
    assert told.bits[0] == pytest.approx(1, abs=0.01)  # one fair coin
    assert told.bits[1] == pytest.approx(
        0, abs=0.005
    )  # the plug-in estimate would say 9 / 2n / ln 2 = 0.0016 more
    assert told.informative.tolist() == [True, False]
    found = findings(batch)["uninformative"]
    assert (found.severity, found.names) == (Severity.HINT, ("noise",))
    assert "alone tells nothing about reward or termination of the same step: noise" in found.sentence


def test_information_about_the_end_of_an_episode():
    x = NOISE[0]
    found = findings(batch_of({"x": x, "y": NOISE[1]}, length=1000, terminated=x > 1.5))["uninformative"]
    assert found.names == ("y",)
    assert "about termination of" in found.sentence


def test_nothing_to_be_informed_about():
    found = findings(batch_of({"x": NOISE[0]}, terminated=np.zeros(1000, dtype=bool)))["uninformative"]
    assert (found.severity, found.value) == (Severity.HINT, None)


def test_the_designed_reward_is_the_one_that_matters():
    batch = batch_of({"x": NOISE[0], "y": NOISE[1]}, terminated=np.zeros(1000, dtype=bool))
    assert findings(batch, reward=np.array(batch.obs["y"]))["uninformative"].names == ("x",)
    with pytest.raises(DesignError, match=r"reward has the shape \(3,\), but there are 1000 steps"):
        findings(batch, reward=np.zeros(3))


def test_a_sample_takes_whole_episodes_of_every_policy():
    labels = {number: "demo" if number == 90 else "random" for number in range(100)}
    batch = batch_of({"x": np.arange(5000)}, labels=labels)
    rows = sampled_rows(batch, 1000)
    assert len(rows) == 1000
    assert (np.diff(rows) > 0).all()
    episodes, counts = np.unique(batch.episode[rows], return_counts=True)
    assert 90 in episodes
    assert counts.tolist() == [50] * 20
    assert (sampled_rows(batch, 1000) == rows).all()
    assert sampled_rows(batch, 5000).tolist() == list(range(5000))


def test_a_number_that_is_not_finite_is_in_every_sample():
    x = RNG.standard_normal(60_000)
    x[41_234] = np.nan
    cache = {}
    for ops in ([], [Derive("twice", "2 * x")]):
        found = findings(batch_of({"x": x}), ops=ops, cache=cache)["bounds"]
        assert found.severity is Severity.PROBLEM
        assert 41_234 in found.rows


def test_images_have_bounds_and_a_size():
    images = np.random.default_rng(0).integers(0, 256, (20, 12, 8, 3), dtype=np.uint8)
    images[:, :6] = 7
    t = np.arange(20)
    batch = Transitions.from_arrays(
        images, images, t, reward=t, terminated=t == 19, truncated=t > 99, t=t,
    )  # fmt: skip
    for ops in ((), [ToUnit()]):
        found = check_state(batch, StateSpec(ops).plan(spaces.Box(0, 255, (12, 8, 3), np.uint8), ()))
        assert [one.code for one in found] == list(CODES)
        assert {one.severity for one in found} == {Severity.FINE}
        by_code = {one.code: one for one in found}
        assert by_code["state.constant"].value == 0.5
        assert by_code["state.dimensions"].sentence == "The state is an image of 12 x 8 x 3 numbers."
    still = batch.slice(np.zeros(5, dtype=np.int64))
    found = check_state(still, StateSpec().plan(spaces.Box(0, 255, (12, 8, 3), np.uint8), ()))
    assert found[CODES.index("state.constant")].severity is Severity.WARNING


def test_an_empty_batch_is_refused():
    with pytest.raises(DesignError, match="record some episodes"):
        findings(batch_of({"x": NOISE[0]}).slice(slice(0, 0)))


def test_a_preview_at_hand_gives_the_same_findings():
    batch = batch_of({"x": NOISE[0], "y": NOISE[1]}, reward=NOISE[0])
    plan = StateSpec([Derive("z", "x * y")]).plan(spaces.Box(-9, 9, (2,), np.float32), ("x", "y"))
    cache = {}
    plain = check_state(batch, plan, cache=cache)
    assert check_state(batch, plan, values=plan.preview(batch), cache=cache) == plain
    assert check_state(batch, plan) == plain
