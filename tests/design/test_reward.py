"""Rewards: arithmetic, bytes, Python terms, schedules, combination."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.reward import RewardSpec, Shaping, Term, reward_term
from rlnb.design.rowwise import differing_row
from rlnb.errors import DesignError, ExpressionError
from tests.design.batches import expressions, make_batch, pieces


def test_the_environments_own_reward_is_the_identity():
    batch = make_batch()
    spec = RewardSpec.env()
    assert spec.is_identity
    assert spec.evaluate(batch).total.tobytes() == batch.reward.astype(np.float32).tobytes()
    assert not RewardSpec([Term("env", "reward", weight=2.0)]).is_identity
    assert not RewardSpec([Term("env", "reward", clip=(-1, 1))]).is_identity
    assert not RewardSpec([Term("env", "reward")], combine="env * env").is_identity


def test_terms_see_the_reward_as_a_vector_environment_passes_it_on():
    batch = make_batch().with_reward(np.full(12, 0.1))
    seen = (
        RewardSpec([Term("env", "reward"), Term("f", lambda b: b.reward, python="f")]).evaluate(batch).terms
    )
    assert seen["env"].tolist() == [float(np.float32(0.1))] * 12
    assert seen["f"].tolist() == seen["env"].tolist()
    assert batch.reward[0] == 0.1


def test_clip_comes_before_weight_and_the_sum_is_cast_once():
    batch = make_batch()
    spec = RewardSpec([Term("a", "10 * x", weight=0.5, clip=(-1, 1)), Term("b", "vy", weight=-2)])
    result = spec.evaluate(batch)
    clipped = np.clip(10 * batch.obs["x"], -1, 1)
    assert result.terms["a"].tolist() == clipped.tolist()
    assert result.contribution("a").tolist() == (0.5 * clipped).tolist()
    assert result.weights == {"a": 0.5, "b": -2.0}
    expected = (clipped * 0.5 + batch.obs["vy"] * -2.0).astype(np.float32)
    assert result.total.dtype == np.float32
    assert result.total.tolist() == expected.tolist()


def test_a_term_of_weight_zero_is_computed_but_not_added():
    spec = RewardSpec(
        [Term("bad", "0 * x / 0", weight=0), Term("env", "reward"), Term("off", "x", enabled=False)]
    )
    result = spec.evaluate(make_batch())
    assert np.isnan(result.terms["bad"]).all()
    assert np.isfinite(result.total).all()
    assert list(result.terms) == ["bad", "env"]
    assert result.nonfinite() == {"bad": 12}
    only = RewardSpec([Term("a", "x", weight=0)])
    assert only.evaluate(make_batch()).total.tolist() == [0.0] * 12
    assert RewardSpec([Term("a", "x", enabled=False)]).evaluate(make_batch()).total.tolist() == [0.0] * 12
    none = RewardSpec([Term("a", "x", enabled=False)], combine="a + 1")
    assert none.evaluate(make_batch()).total.tolist() == [1.0] * 12


def test_weights_follow_their_schedule():
    batch = make_batch()
    spec = RewardSpec([Term("a", "1", weight="lin_2"), Term("b", "100", weight="lin_0_1")])
    assert [spec.evaluate(batch, progress=p).total[0] for p in (0, 0.25, 1, 7)] == [2.0, 26.5, 100.0, 100.0]


def test_combination_by_an_expression_of_weighted_terms():
    batch = make_batch()
    spec = RewardSpec(
        [
            Term("a", "x", weight=2),
            Term("b", "y"),
            Term("zero", "vx / 0", weight=0),
            Term("off", "x", enabled=False),
        ],
        combine="a * max(b, 0) + zero + off",
    )
    expected = (2 * batch.obs["x"]) * np.maximum(batch.obs["y"], 0)
    assert spec.evaluate(batch).total.tolist() == expected.astype(np.float32).tolist()
    with pytest.raises(ExpressionError, match="'c' in .* is not a known name"):
        RewardSpec([Term("a", "x")], combine="a + c")


def test_measured_terms_can_be_scored_again():
    batch = make_batch()
    spec = RewardSpec([Term("a", "x"), Term("b", "y")])
    measured = spec.measure(batch)
    heavier = RewardSpec([Term("a", "x", weight=3), Term("b", "y", clip=(0, 1))])
    assert heavier.score(measured).total.tobytes() == heavier.evaluate(batch).total.tobytes()


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(expressions, st.sampled_from([1.0, -0.3, 0.0, "lin_1"]), st.sampled_from([None, (-1.0, 2.0)])),
        min_size=1, max_size=5,
    ),
    st.booleans(), st.integers(1, 30), st.lists(st.integers(0, 30), max_size=6), st.floats(0, 1),
)  # fmt: skip
def test_any_split_of_the_batch_gives_equal_bytes(parts, combined, n, cuts, progress):
    try:
        terms = [Term(f"t{i}", text, weight, clip) for i, (text, weight, clip) in enumerate(parts)]
    except ExpressionError:
        return
    spec = RewardSpec(
        [*terms, Shaping("s", "hypot(x, y)", 0.97)], combine="tanh(t0) * s + 1" if combined else None
    )
    batch = make_batch(n, seed=n)
    whole = spec.evaluate(batch, progress=progress)
    for cut in (cuts, list(range(n))):
        results = [spec.evaluate(part, progress=progress) for part in pieces(batch, cut)]
        assert np.concatenate([r.total for r in results]).tobytes() == whole.total.tobytes()
        for name, values in whole.terms.items():
            assert np.concatenate([r.terms[name] for r in results]).tobytes() == values.tobytes()


def test_a_long_batch_equals_its_halves():
    batch = make_batch(20_001)
    spec = RewardSpec([Term("a", "exp(x) / y", 0.3), Term("b", "sin(vx) ** 3"), Shaping("s", "-abs(x)")])
    whole = spec.evaluate(batch).total
    halves = [spec.evaluate(part).total for part in pieces(batch, [10_007])]
    assert np.concatenate(halves).tobytes() == whole.tobytes()


def test_python_terms():
    @reward_term
    def low_and_slow(batch):
        return -abs(batch.obs["vy"]) * (batch.obs["y"] < 0.2)

    batch = make_batch()
    spec = RewardSpec([low_and_slow, Term("other", low_and_slow, weight=2)])
    result = spec.evaluate(batch)
    expected = -np.abs(batch.obs["vy"]) * (batch.obs["y"] < 0.2)
    assert result.terms["low_and_slow"].tolist() == expected.tolist()
    assert spec.terms[1].python == "low_and_slow"
    spec.check_rowwise(batch)
    unbound = RewardSpec([Term("a", python="low_and_slow"), Term("b", python="gone")])
    assert unbound.unbound == ("low_and_slow", "gone")
    assert unbound.bind().unbound == ("gone",)
    assert unbound.bind({"gone": low_and_slow}).unbound == ("low_and_slow",)
    with pytest.raises(
        DesignError, match=r"needs the function 'gone', which is not defined here.*@rlnb\.reward_term"
    ):
        unbound.bind().evaluate(batch)
    with pytest.raises(DesignError, match="which is not defined here"):
        unbound.bind().check(batch)


def test_a_marked_term_is_the_latest_of_its_name():
    @reward_term
    def redefined(batch):
        return batch.t * 0 + 1

    @reward_term
    def redefined(batch):  # noqa: F811
        return batch.t * 0 + 2

    assert RewardSpec([Term("a", python="redefined")]).bind().evaluate(make_batch()).total[0] == 2.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda b: b.obs["x"][:3], r"returned float64 of shape \(3,\) for 12 transitions; .*shape \(12,\)"),
        (lambda b: 1.0, r"shape \(\)"),
        (lambda b: b.obs["x"].astype(str), "returned <U"),
        (lambda b: b.obs["xx"], r"failed on a batch of 12 transitions: UnknownName: obs\[\"xx\"\]"),
        (lambda b: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_python_term_is_named(function, message):
    with pytest.raises(DesignError, match=f"The Python term 'bad' .*{message}"):
        RewardSpec([Term("bad", function, python="bad")]).evaluate(make_batch())


@pytest.mark.parametrize(
    "function",
    [
        lambda b: b.obs["x"] - b.obs["x"].mean(),
        lambda b: np.cumsum(b.obs["x"]),
        lambda b: np.r_[0.0, b.obs["x"][:-1]],
        lambda b: b.obs["x"] + len(b),
        lambda b: np.random.default_rng().random(len(b)),
        lambda b: b.obs.matrix.astype(np.float64) @ np.array([0.1, 0.2, 0.3, 0.7]) + (len(b) > 1) * 1e-16,
    ],
)
def test_a_term_that_looks_at_other_rows_is_found(function):
    spec = RewardSpec([Term("odd", function, python="odd")])
    with pytest.raises(DesignError, match=r"'odd' gives row \d+ the value .* look at each row for itself"):
        spec.check_rowwise(make_batch(40))


def test_a_row_is_named_with_both_values():
    found = differing_row(lambda b: np.full(len(b), float(len(b))), make_batch(10))
    assert found == (0, 10.0, 5.0)
    assert differing_row(lambda b: np.zeros(len(b)), make_batch(0)) is None


class Best:
    """A term that remembers the farthest x so far."""

    def __init__(self) -> None:
        self.best = 0.0

    def __call__(self, batch):
        self.best = max(self.best, float(batch.obs["x"].max()))
        return np.full(len(batch), self.best)

    def state_dict(self):
        return {"best": self.best}

    def load_state_dict(self, state):
        self.best = state["best"]


def test_terms_with_state_are_saved_and_put_back():
    spec = RewardSpec([Term("best", Best()), Term("env", "reward")])
    batch = make_batch()
    spec.check_rowwise(batch)  # left out: it remembers on purpose
    spec.evaluate(batch)
    state = spec.state_dict()
    assert state == {"best": {"best": float(batch.obs["x"].max())}}
    other = RewardSpec([Term("best", Best()), Term("env", "reward")])
    other.load_state_dict(state)
    assert other.evaluate(batch.slice(slice(0, 1))).terms["best"][0] == state["best"]["best"]
    with pytest.raises(DesignError, match="'best' is in only one of the two"):
        RewardSpec.env().load_state_dict(state)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Term("no name", "x"), "'no name' cannot be a name"),
        (lambda: Term("if", "x"), "'if' cannot be a name"),
        (lambda: Term("a"), "needs either an expression or a Python function"),
        (lambda: Term("a", "x", python="f"), "needs either"),
        (lambda: Term("a", "x +"), "In 'a': 'x \\+' is not an expression"),
        (lambda: Term("a", "x", weight="lin"), "weight of term 'a' is 'lin'; .*lin_0_1"),
        (lambda: Term("a", "x", weight=float("nan")), "weight of term 'a' is nan"),
        (lambda: Term("a", "x", weight=True), "weight of term 'a' is True"),
        (lambda: Term("a", "x", clip=(1, -1)), r"clip of term 'a' is \(1, -1\); it must be \[low, high\]"),
        (lambda: Term("a", "x", clip=3), "clip of term 'a' is 3"),
        (lambda: Term("a", "x", clip=("a", 1)), "clip of term 'a'"),
        (lambda: Term("a", lambda b: b), "needs a name of its own"),
        (lambda: Term("a", 5), r"The expression of term 'a' is 5; write a text such as '-abs\(x\)'"),
        (lambda: Term("a", "x", enabled="no"), "The enabled of term 'a' is 'no'; it must be true or false"),
        (
            lambda: reward_term(5),
            r"@rlnb\.reward_term marks a function of a batch, not 5; write it above 'def'",
        ),
        (lambda: reward_term(Term), "marks a function of a batch, not <class .*Term'>"),
        (lambda: RewardSpec([]), "at least one term"),
        (
            lambda: RewardSpec(["x"]),
            r"made of terms, not of 'x'; write rlnb\.Term\('name', 'expression'\), or",
        ),
        (lambda: RewardSpec("x"), "made of terms, not of 'x'"),
        (lambda: RewardSpec(5), "made of terms, not of 5"),
        (lambda: RewardSpec([Term]), "made of terms, not of <class .*Term'>"),
        (lambda: RewardSpec([lambda batch: batch]), "needs a name of its own, and '<lambda>' is none"),
        (lambda: RewardSpec([Term("a", "x"), Term("a", "y")]), "Two terms are called 'a'"),
        (lambda: Shaping("s", "x", gamma=1.5), "gamma of shaping 's' is 1.5; .*between 0 and 1"),
        (lambda: Shaping("s", "x", weight="lin_1"), "changes the optimal policy"),
    ],
)
def test_bad_values_are_refused(make, message):
    with pytest.raises(DesignError, match=message):
        make()


def test_the_discount_is_that_of_all_shapings_that_count():
    one, other = Shaping("one", "x", gamma=0.9), Shaping("other", "y", gamma=0.99)
    assert RewardSpec([one]).discount == RewardSpec([one, replace(other, enabled=False)]).discount == 0.9
    assert RewardSpec([one, other]).discount is RewardSpec.env().discount is None


def test_unknown_names_are_found_before_training():
    with pytest.raises(ExpressionError, match="'nex_x' in .* Did you mean 'next_x'"):
        RewardSpec([Term("a", "nex_x - x")]).check(make_batch())
    with pytest.raises(ExpressionError, match="'next_x' in 'next_x' is not a known name"):
        RewardSpec([Shaping("s", "next_x")]).check(make_batch())
    RewardSpec([Term("a", "x - next_x"), Shaping("s", 'obs["x"] * y')]).check(make_batch())


@pytest.mark.parametrize("column", ["reward", "action", "prev_action", "t", "episode", "terminated"])
def test_a_python_term_cannot_change_the_transitions(column):
    batch = make_batch()

    def spoils(batch):
        getattr(batch, column)[:] = 0
        return np.ones(len(batch))

    def spoils_the_matrix(batch):
        batch.next_obs.matrix[:] = 0
        return np.ones(len(batch))

    before = {name: values.tobytes() for name, values in batch.to_columns().items()}
    for term in (spoils, spoils_the_matrix):
        with pytest.raises(DesignError, match="read-only; copy the array before you change it"):
            RewardSpec([term]).evaluate(batch)
    assert {name: values.tobytes() for name, values in batch.to_columns().items()} == before
    batch.reward[0] = 3.0  # whoever has the batch may still write


def test_what_a_python_term_is_handed_follows_the_reward():
    batch = make_batch()
    assert batch.read_only.reward.tobytes() == batch.reward.tobytes()
    other = batch.with_reward(np.arange(12.0))
    assert other.read_only.reward.tolist() == np.arange(12.0).tolist()
    assert other.read_only.namespace["reward"].tolist() == np.arange(12.0).tolist()


def test_a_weight_may_be_a_number_of_numpys():
    weight = Term("a", "reward", weight=np.float32(2.0)).weight
    assert weight == 2.0
    assert type(weight) is float


def test_a_python_term_that_leaves_is_a_sentence():
    def leaves(batch):
        raise SystemExit(3)

    with pytest.raises(DesignError, match="'leaves' failed on a batch of 12 transitions: SystemExit: 3"):
        RewardSpec([leaves]).evaluate(make_batch())
