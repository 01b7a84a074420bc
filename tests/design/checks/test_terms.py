"""Terms against each other and the reward as a signal, with numbers; what the cache keeps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.checks.finding import Severity
from rlnb.design.checks.reward.check import check_reward
from rlnb.design.checks.reward.cycles import best_cycle
from rlnb.design.checks.reward.separation import auc
from rlnb.design.groups import TermGroup
from rlnb.design.reward import RewardSpec, Term
from tests.design.batches import make_batch
from tests.design.checks import rollouts
from tests.design.checks.rollouts import by_code

ENV = Term("env", "reward")
mountain_car = lru_cache(rollouts.mountain_car)


def speed(batch):
    return batch.obs["vx"]


def share(part, total):
    return np.cov(part, total)[0, 1] / np.var(total, ddof=1)


@pytest.mark.parametrize("combine", [None, "big + small"])
def test_a_dominating_term_hides_the_others(combine):
    batch = make_batch(600, length=20)
    spec = RewardSpec([Term("big", "100 * x"), Term("small", "y", weight=0.5)], combine=combine)
    found = by_code(check_reward(batch, spec))["reward.dominated"]
    assert found.severity is Severity.WARNING
    assert found.names == ("big", "small")
    assert found.value == pytest.approx(1.0, abs=0.01)
    # at a third of the other's spread: 100 * std(x) / (3 * std(y)), about 33
    assert "Raise the weight of 'small' (now 0.5, try 3" in found.advice
    even = RewardSpec([Term("big", "x"), Term("small", "y")], combine=combine)
    assert by_code(check_reward(batch, even))["reward.dominated"].severity is Severity.FINE


def test_shares_are_of_the_variance_of_the_sum():
    batch = make_batch(600, length=20)
    found = by_code(check_reward(batch, RewardSpec([Term("a", "2 * x"), Term("b", "y")])))["reward.dominated"]
    a, b = 2 * batch.obs["x"], batch.obs["y"]
    step = share(a, a + b)
    sums = [np.add.reduceat(one, batch.starts) for one in (a, b)]
    assert found.value == pytest.approx(min(step, share(sums[0], sums[0] + sums[1])))


def test_terms_that_never_fire_and_terms_that_say_the_same():
    batch = make_batch(600, length=20)
    spec = RewardSpec([ENV, Term("goal", "x > 99"), Term("one", "y"), Term("two", "-2 * y + 1", weight=0.25)])
    findings = by_code(check_reward(batch, spec))
    assert findings["reward.never_fires"].names == ("goal",)
    assert findings["reward.never_fires"].severity is Severity.WARNING
    same = findings["reward.correlated"]
    assert (same.severity, same.names) == (Severity.WARNING, ("one", "two"))
    assert same.value == pytest.approx(1.0)
    assert "r = -1.000" in same.sentence
    assert "a weight of 0.5 for 'one'" in same.advice


def test_scale_and_clips():
    batch = make_batch(600, length=20)
    spec = RewardSpec([Term("a", "100 * x", weight=30.0, clip=(-50, 50))])
    found = by_code(check_reward(batch, spec))["reward.scale"]
    paid = 30 * np.clip(100 * batch.obs["x"], -50, 50)
    assert found.severity is Severity.WARNING
    assert found.value == pytest.approx(np.sqrt(np.mean(paid**2)), rel=1e-5)
    cut = 100 * np.mean(np.abs(batch.obs["x"]) > 0.5)
    assert f"cuts it in {cut:.0f} % of the steps" in found.sentence
    assert f"Multiply all weights by about {1 / found.value:.1g}," in found.advice
    assert found.names == ("a",)


def test_a_sparse_reward_gets_a_potential_to_try():
    batch = mountain_car()
    found = by_code(check_reward(batch, RewardSpec([Term("goal", "next_x >= 0.5")])))["reward.sparse"]
    assert found.severity is Severity.WARNING
    assert found.value == pytest.approx(4 / len(batch))
    assert "rlnb.Shaping('progress', '-abs(x - 0.5" in found.advice
    assert found.rows == tuple(np.flatnonzero(batch.terminated).tolist())


def test_nan_is_named_with_its_place():
    batch = make_batch(12)
    batch.obs.matrix[7, 0] = np.nan
    spec = RewardSpec([ENV, Term("bad", "x")])
    found = by_code(check_reward(batch, spec))["reward.nonfinite"]
    assert found.severity is Severity.PROBLEM
    assert found.rows == (7,)
    assert "'bad' is nan in 1 row, first in row 7 (episode 1 by \"trained\", t = 2)" in found.sentence
    unspoilt = RewardSpec([ENV, Term("bad", "x", weight=0.0)])
    assert by_code(check_reward(batch, unspoilt))["reward.nonfinite"].severity is Severity.HINT


def test_the_cache_changes_nothing_and_notices_changes():
    batch, cache = make_batch(600, length=20), {}
    for weight, clip in ((1.0, (-1, 1)), (3.0, (-1, 1)), (3.0, (-0.5, 2))):
        for expression in ("x", "y", speed):
            spec = RewardSpec(
                [ENV, Term("a", expression, weight=weight, group="g"), Term("b", "x * y", clip=clip)],
                groups=[TermGroup("g", weight=0.5)],
            )
            assert check_reward(batch, spec, cache=cache) == check_reward(batch, spec)
    other = make_batch(600, seed=1, length=20)
    assert check_reward(other, spec, cache=cache) == check_reward(other, spec)


def test_auc_counts_ties_half():
    assert auc(np.array([1.0, 2.0]), np.array([1.0, 0.0])) == 0.875
    assert auc(np.array([0.0]), np.array([0.0])) == 0.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(-5, 5)), min_size=1, max_size=20))
def test_the_best_cycle_has_the_mean_that_karp_gives(edges):
    source, target, pay = (np.array(column) for column in zip(*edges, strict=True))
    found = best_cycle(source, target, pay.astype(float))
    expected = karp(edges, 7)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert found.mean == pytest.approx(expected)
    walk = list(found.edges)
    assert all(target[one] == source[after] for one, after in zip(walk, [*walk[1:], walk[0]], strict=True))


def karp(edges, nodes):
    """Karp 1978: max over v of min over k of (F_n(v) - F_k(v)) / (n - k), from any start."""
    best = np.full((nodes + 1, nodes), -np.inf)
    best[0] = 0.0
    for step in range(1, nodes + 1):
        for a, b, pay in edges:
            best[step, b] = max(best[step, b], best[step - 1, a] + pay)
    means = [
        min((best[nodes, v] - best[k, v]) / (nodes - k) for k in range(nodes) if best[k, v] > -np.inf)
        for v in range(nodes)
        if best[nodes, v] > -np.inf
    ]
    return max(means, default=None)
