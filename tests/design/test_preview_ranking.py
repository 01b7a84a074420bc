"""Rankings: ties, correlations, who moves; held against counting pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.preview.ranking import rank

few = st.lists(st.integers(-3, 3).map(float), min_size=0, max_size=90)


def tau_by_pairs(one, two):
    a, b = (np.sign(np.subtract.outer(values, values))[np.triu_indices(len(one), 1)] for values in (one, two))
    scale = math.sqrt(np.count_nonzero(a)) * math.sqrt(np.count_nonzero(b))
    return float((a * b).sum()) / scale if scale else math.nan


def test_a_ranking_by_hand():
    found = rank(np.array([3.0, 1.0, 2.0, 2.0]), np.array([10.0, 30.0, 20.0, 0.0]))
    assert found.order.tolist() == [0, 2, 3, 1]
    assert found.env_order.tolist() == [1, 2, 0, 3]
    assert found.ranks.tolist() == [1.0, 4.0, 2.5, 2.5]
    assert found.env_ranks.tolist() == [3.0, 1.0, 2.0, 4.0]
    assert found.moved.tolist() == [1, 0, 3, 2]
    # pairs: 1 agrees (0 before 3), 4 disagree, 1 is tied
    assert found.kendall == pytest.approx((1 - 4) / math.sqrt(5 * 6))
    # sum of d² is 4 + 9 + 0.25 + 2.25; by the means of tied ranks, not the formula without ties
    assert found.spearman == pytest.approx(np.corrcoef(found.ranks, found.env_ranks)[0, 1])


def test_the_same_order_and_the_reverse():
    returns = np.array([5.0, -2.0, 0.5, 7.0])
    same = rank(3 * returns + 1, returns)
    assert (same.spearman, same.kendall, same.moved.tolist()) == (pytest.approx(1), pytest.approx(1), [])
    reverse = rank(-returns, returns, most=2)
    assert (reverse.spearman, reverse.kendall) == (pytest.approx(-1), pytest.approx(-1))
    assert sorted(reverse.moved.tolist()) == [1, 3]


def test_rounding_breaks_no_tie():
    found = rank(np.array([0.1 + 0.2, 0.3, 1e3]), np.array([1.0, 1.0, 2.0]))
    assert found.ranks.tolist() == [2.5, 2.5, 1.0]
    assert found.kendall == pytest.approx(1)


def test_what_cannot_be_ranked():
    found = rank(np.array([math.nan, 1.0, math.inf]), np.array([1.0, 1.0, 1.0]))
    assert found.order.tolist() == [2, 1, 0]
    assert math.isnan(found.spearman)
    assert math.isnan(found.kendall)
    for size in (0, 1):
        alone = rank(np.zeros(size), np.zeros(size))
        assert alone.order.tolist() == list(range(size))
        assert math.isnan(alone.kendall)


@settings(max_examples=60, deadline=None)
@given(few, st.randoms(use_true_random=False))
def test_tau_counts_pairs(one, random):
    two = np.array([random.choice([-1.0, 0.0, 2.0, value]) for value in one])
    found, expected = rank(np.array(one), two).kendall, tau_by_pairs(np.array(one), two)
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_many_episodes():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 500, 1500).astype(np.float64)
    two = one + rng.integers(-200, 200, 1500)
    found = rank(one, two)
    assert found.kendall == pytest.approx(tau_by_pairs(one, two), abs=1e-12)
    assert found.ranks.sum() == 1500 * 1501 / 2
    assert len(found.moved) == 10
