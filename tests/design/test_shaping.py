"""Potential-based shaping keeps the optimal policy: it telescopes to -Phi(start) over an episode."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.errors import ExpressionError
from tests.design.batches import make_batch


def _shaped(batch, shaping):
    return RewardSpec([shaping]).evaluate(batch).terms[shaping.name]


def test_formula_with_a_terminal_potential_of_zero():
    batch = make_batch(10)  # row 4 is terminal, row 9 truncated
    phi, after = np.abs(batch.obs["x"]), np.abs(batch.next_obs["x"])
    expected = 0.9 * np.where(batch.terminated, 0.0, after) - phi
    assert _shaped(batch, Shaping("s", "abs(x)", gamma=0.9)).tolist() == expected.tolist()
    assert batch.terminated[4]
    assert batch.truncated[9]
    assert expected[9] == 0.9 * after[9] - phi[9]


def test_an_episode_that_ends_both_ways_is_terminal():
    batch = make_batch(5)
    both = batch.slice(slice(4, 5))
    both.truncated[:] = True
    assert _shaped(both, Shaping("s", "7", gamma=0.5)).tolist() == [-7.0]


def test_discounted_sum_over_an_episode_is_minus_the_first_potential():
    gamma = 0.97
    episode = make_batch(5)
    shaped = _shaped(episode, Shaping("s", "x * y + 3", gamma=gamma))
    total = sum(gamma**k * value for k, value in enumerate(shaped))
    start = episode.obs["x"][0] * episode.obs["y"][0] + 3
    assert total == pytest.approx(-start, abs=1e-12)


def test_weight_scales_the_potential():
    batch = make_batch(10)
    spec = RewardSpec([Term("env", "reward"), Shaping("s", "x", gamma=1.0, weight=3.0)])
    result = spec.evaluate(batch)
    expected = np.float32(1) * result.terms["env"] + 3.0 * result.terms["s"]
    assert result.total.tolist() == expected.astype(np.float32).tolist()


def test_an_infinite_terminal_observation_does_not_matter():
    batch = make_batch(5)
    batch.next_obs.matrix[4] = np.nan
    assert np.isfinite(_shaped(batch, Shaping("s", "x"))).all()


def test_a_potential_of_something_else_is_refused():
    with pytest.raises(ExpressionError, match="observation components only, and 'action' is none"):
        _shaped(make_batch(), Shaping("s", "action"))
