"""RewardPreview: exact bytes after any edits, what is measured again and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.preview import term_columns
from rlnb.design.preview.preview import RewardPreview
from rlnb.design.reward import RewardSpec, Shaping, Term, TermGroup
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError, ExpressionError
from tests.design.batches import make_batch

BATCH = make_batch(40, seed=3, length=7)
#: above a block's length, so that blocks are joined
LONG = make_batch(9000, seed=4, length=250)


class Counting:
    """A Python term that knows how often it was asked."""

    def __init__(self, factor: float = 1.0) -> None:
        self.calls = 0
        self.factor = factor

    def __call__(self, batch: Transitions) -> Any:
        self.calls += 1
        return self.factor * batch.obs["x"]


def sums(values: Any, batch: Transitions) -> list[float]:
    ends = [*batch.starts.tolist()[1:], len(batch)]
    return [float(np.float64(values[a:b]).sum()) for a, b in zip(batch.starts.tolist(), ends, strict=True)]


_weights = st.sampled_from([0.0, 1.0, -0.3, 2.5, "lin_1", "lin_0.2_3"])
_clips = st.sampled_from([None, (-0.5, 0.5), (0.0, float("inf"))])
_texts = st.sampled_from(["reward", "x", "-abs(vy)", "x * vy", "log(x)", "force / (y - y)", "1"])


@st.composite
def rewards(draw: Any) -> RewardSpec:
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    groups = draw(st.sampled_from([(), (TermGroup("g", weight=0.5),), (TermGroup("g", 2.0, enabled=False),)]))
    parts: list[Term | Shaping] = []
    for name in names:
        on, group = draw(st.booleans()), draw(st.sampled_from([None, *(one.name for one in groups)]))
        if draw(st.integers(0, 4)) == 0:
            parts.append(Shaping(name, "x * y", gamma=draw(st.sampled_from([0.9, 1.0])), group=group))
        else:
            clip, weight = draw(_clips), draw(_weights)
            parts.append(Term(name, draw(_texts), weight=weight, clip=clip, enabled=on, group=group))
    free = [part.name for part in parts if part.group is None]
    combine = f"max({free[0]}, 0.1) + {free[-1]}" if free and draw(st.booleans()) else None
    return RewardSpec(parts, combine=combine, groups=groups)


@settings(max_examples=40, deadline=None)
@given(edits=st.lists(rewards(), min_size=1, max_size=5), progress=st.sampled_from([0.0, 0.25]))
def test_the_total_has_the_bytes_of_training_after_any_edits(edits, progress):
    preview = RewardPreview(BATCH, RewardSpec.env())
    for reward in edits:
        preview.update(reward, progress=progress)
        expected = reward.evaluate(BATCH, progress=progress)
        assert preview.result.total.tobytes() == expected.total.tobytes()
        assert list(preview.result.terms) == list(expected.terms)
        for name, values in expected.terms.items():
            assert preview.result.terms[name].tobytes() == values.tobytes()
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(
                    preview.term_returns[name], sums(expected.contribution(name), BATCH), rtol=1e-9, atol=1e-9
                )
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(preview.returns, sums(expected.total, BATCH), rtol=1e-9, atol=1e-9)
        number = len(preview.lengths) - 1
        shown = preview.contributions(number)
        rows = slice(int(BATCH.starts[number]), len(BATCH))
        assert shown.total.tobytes() == expected.total[rows].tobytes()
        for name, values in shown.terms.items():
            np.testing.assert_array_equal(values, expected.contribution(name)[rows])


def test_blocks_and_episodes_of_a_long_batch():
    reward = RewardSpec([Term("a", "x", weight=0.7, clip=(-1, 1)), Term("env", "reward")])
    preview = RewardPreview(LONG, reward)
    assert preview.result.total.tobytes() == reward.evaluate(LONG).total.tobytes()
    np.testing.assert_allclose(preview.returns, sums(preview.result.total, LONG), rtol=1e-9)
    np.testing.assert_allclose(preview.env_returns, sums(np.float32(LONG.reward), LONG), rtol=1e-9)
    assert preview.lengths.tolist() == [250] * 36


def test_a_small_episode_by_hand():
    t = np.array([0, 1, 2, 0, 1])
    batch = Transitions.from_arrays(
        np.arange(5.0)[:, None], np.arange(5.0)[:, None] + 1, np.zeros(5), reward=np.full(5, 0.5),
        terminated=t == 2, truncated=np.zeros(5, dtype=bool), t=t, names=["x"], labels={1: "demo"},
    )  # fmt: skip
    preview = RewardPreview(batch, RewardSpec([Term("env", "reward"), Term("far", "x", weight=-2.0)]))
    assert preview.result.total.tolist() == [0.5, -1.5, -3.5, -5.5, -7.5]
    assert preview.returns.tolist() == [-4.5, -13.0]
    assert preview.env_returns.tolist() == [1.5, 1.0]
    assert preview.term_returns["far"].tolist() == [-6.0, -14.0]
    assert preview.labels == ("", "demo")
    assert preview.lengths.tolist() == [3, 2]
    assert preview.features().tolist() == [[1.5, 3.0], [1.0, 7.0]]
    shown = preview.contributions(1)
    assert shown.t.tolist() == [0, 1]
    assert {name: values.tolist() for name, values in shown.terms.items()} == {
        "env": [0.5, 0.5],
        "far": [-6.0, -8.0],
    }
    assert shown.total.tolist() == [-5.5, -7.5]
    assert shown.env.tolist() == [0.5, 0.5]
    assert shown.additive
    for number in (2, -1):
        with pytest.raises(DesignError, match="the batch has 2, counted from 0"):
            preview.contributions(number)


def test_only_what_is_new_is_measured():
    function = Counting()
    first = Term("a", function, python="f")
    preview = RewardPreview(BATCH, RewardSpec([first, Term("env", "reward")]))
    edits = [
        [replace(first, weight=3.0), Term("env", "reward")],
        [Term("env", "reward"), replace(first, name="b", clip=(-1, 1))],
        [first, replace(first, name="copy"), Term("env", "x")],
        [replace(first, enabled=False), Term("env", "reward")],
        [first],
    ]
    for terms in edits:
        reward = RewardSpec(terms)
        preview.update(reward)
        assert function.calls == 1
        assert preview.result.total.tobytes() == reward.evaluate(BATCH).total.tobytes()
        function.calls = 1  # `evaluate` asked, too
    other = Counting(2.0)
    preview.update(RewardSpec([Term("a", other, python="f")]))
    assert (function.calls, other.calls) == (1, 1)
    assert preview.returns.tolist() == pytest.approx(sums(2 * BATCH.obs["x"], BATCH), rel=1e-6)


def test_a_new_discount_or_potential_is_measured():
    preview = RewardPreview(BATCH, RewardSpec([Shaping("s", "x", gamma=0.9)]))
    for shaping in (Shaping("s", "x", gamma=0.8), Shaping("s", "y", gamma=0.8)):
        preview.update(RewardSpec([shaping]))
        assert preview.result.total.tobytes() == RewardSpec([shaping]).evaluate(BATCH).total.tobytes()


def test_the_last_good_state_stays():
    def fails(batch):
        raise ValueError("no")

    preview = RewardPreview(BATCH, RewardSpec([Term("a", "x")]))
    before, returns = preview.result, preview.returns
    wrong: list[tuple[Any, type[DesignError]]] = [
        (Term("a", "x + zz"), ExpressionError),
        (Term("a", fails), DesignError),
        (Term("a", python="nowhere"), DesignError),
        (Shaping("s", "vx + t"), ExpressionError),
    ]
    for term, kind in wrong:
        with pytest.raises(kind):
            preview.update(RewardSpec([Term("b", "y"), term]))
        assert preview.reward == RewardSpec([Term("a", "x")])
        assert preview.result is before
        assert preview.returns is returns
    with pytest.raises(ExpressionError) as raised:
        preview.update(RewardSpec([Term("a", "x + zz")]))
    assert raised.value.position == 4


def test_columns_out_of_use_are_forgotten(monkeypatch):
    monkeypatch.setattr(term_columns, "SPARE", 3 * 2**16)
    columns = term_columns.TermColumns(BATCH)
    for number in range(10):
        columns.of([Term("a", f"x + {number}"), Term("b", "y")])
    assert len(columns) == 2 + 3
    last = columns.of([Term("b", "y"), Term("a", "x + 7")])
    assert len(columns) == 2 + 3
    assert columns.of([Term("renamed", "y")])["renamed"] is last["b"]
    for number in range(10):
        with pytest.raises(ExpressionError):
            columns.of([Term("a", f"x - {number}"), Term("b", "zz")])
    assert len(columns) == 1 + 3


def test_what_is_shown_is_kept_until_the_next_update():
    preview = RewardPreview(BATCH, RewardSpec.env())
    assert preview.step_histogram() is preview.step_histogram()
    assert preview.ranking() is preview.ranking()
    old = preview.ranking(), preview.step_histogram()
    preview.update(RewardSpec([Term("env", "reward", weight=2.0)]))
    assert preview.ranking() is not old[0]
    assert preview.step_histogram() is not old[1]


def test_features_follow_groups_and_refuse_expressions():
    groups = [TermGroup("g", weight=0.5)]
    terms = [Term("a", "x", weight=3.0, group="g"), Term("b", "y")]
    preview = RewardPreview(BATCH, RewardSpec(terms, groups=groups))
    expected = [sums(0.5 * BATCH.obs["x"], BATCH), sums(BATCH.obs["y"], BATCH)]
    np.testing.assert_allclose(preview.features().T, expected, rtol=1e-12)
    np.testing.assert_allclose(preview.features() @ [3.0, 1.0], preview.returns, rtol=1e-5)
    for reward in (
        RewardSpec([Term("a", "x"), Term("b", "y")], combine="a * b"),
        RewardSpec(terms, groups=[TermGroup("g", combine="min(a, 0)")]),
    ):
        preview.update(reward)
        assert not preview.additive
        assert not preview.contributions(0).additive
        with pytest.raises(DesignError, match="'combine' is an expression"):
            preview.features()


def test_no_steps_and_no_enabled_term():
    empty = BATCH.slice(slice(0, 0))
    preview = RewardPreview(empty, RewardSpec([Term("a", "x")]))
    assert preview.returns.shape == preview.env_returns.shape == preview.lengths.shape == (0,)
    assert preview.step_histogram().counts.sum() == 0
    assert preview.ranking().order.tolist() == []
    assert preview.features().shape == (0, 1)
    off = RewardPreview(BATCH, RewardSpec([Term("a", "x", enabled=False)]))
    assert off.returns.tolist() == [0.0] * 6
    assert off.features().shape == (6, 0)
    assert off.step_histogram().counts.sum() == 40
