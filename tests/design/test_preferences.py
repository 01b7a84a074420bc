"""Preferences: recovered weights, separable and contradictory comparisons, what cannot be fitted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlnb.design.preferences import Preference, fit_preferences, satisfied
from rlnb.design.preview.preview import RewardPreview
from rlnb.design.reward import RewardSpec, Term
from rlnb.errors import DesignError
from tests.design.batches import make_batch

#: terms' returns differ in size as they do in practice
SIZES = np.array([1.0, 20.0, 0.1])
ALL = np.ones(3, dtype=bool)


def compared(seed, *, noise=0.125, count=60, terms=3):
    """Returns features, comparisons and the weights behind them.

    Args:
        noise: temperature of Bradley-Terry, in standard deviations of the difference in return; 0 is none.
    """
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((40, terms)) * SIZES[:terms]
    weights = rng.standard_normal(terms) / SIZES[:terms]
    pairs = np.array([rng.choice(40, 2, replace=False) for _ in range(count)])
    difference = features[pairs] @ weights
    logits = difference[:, 0] - difference[:, 1]
    logits /= logits.std()
    if noise:
        first = rng.random(count) < 1 / (1 + np.exp(-logits / noise))
    else:
        first = logits > 0
    return features, np.where(first[:, None], pairs, pairs[:, ::-1]), weights


def cosine(one, two, sizes=SIZES):
    a, b = one * sizes, two * sizes
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def test_the_direction_is_recovered_from_sixty_noisy_comparisons():
    found, wrong = [], []
    for seed in range(40):
        features, pairs, weights = compared(seed)
        fit = fit_preferences(features, pairs, start=1 / SIZES, free=ALL)
        found.append(cosine(fit.weights, weights))
        wrong.append(60 - int(satisfied(features @ weights, pairs).sum()))
        assert fit.satisfied_before == satisfied(features @ (1 / SIZES), pairs).sum()
        assert fit.satisfied_after == satisfied(features @ fit.weights, pairs).sum()
    assert np.mean(wrong) > 2  # about one comparison in twenty contradicts the true weights
    assert np.median(found) >= 0.99
    # what noise leaves open: the most likely weights themselves miss 0.98 now and then
    assert np.mean(np.array(found) >= 0.98) >= 0.85
    assert min(found) >= 0.95


def test_the_fit_is_the_maximum():
    features, pairs, _ = compared(0, noise=0.5)
    fit = fit_preferences(features, pairs, start=1 / SIZES, free=ALL, ridge=1e-9)
    differences = features[pairs[:, 0]] - features[pairs[:, 1]]

    def likelihood(weights):
        # at its best scale, as a comparison tells nothing of it
        return max(
            -np.logaddexp(0, -scale * (differences @ weights)).sum() for scale in np.geomspace(0.1, 20, 400)
        )

    best = likelihood(fit.weights)
    assert best == pytest.approx(fit.log_likelihood, abs=1e-3)
    rng = np.random.default_rng(1)
    for _ in range(50):
        assert likelihood(fit.weights + 0.05 * rng.standard_normal(3) / SIZES) <= best + 1e-3


def test_one_comparison_by_hand():
    # the better episode has more of the first term and less of the second
    features = np.array([[1.0, 0.0], [0.0, 1.0]])
    fit = fit_preferences(features, np.array([[0, 1]]), start=np.array([1.0, 1.0]), free=ALL[:2])
    assert fit.weights == pytest.approx([1.0, -1.0], abs=1e-2)
    assert math.hypot(*fit.weights) == pytest.approx(math.sqrt(2))
    assert (fit.satisfied_before, fit.satisfied_after, fit.comparisons) == (0, 1, 1)
    assert str(fit) == "The fitted weights satisfy 1 of 1 preferences (0 before)."
    held = fit_preferences(
        features, np.array([[0, 1]]), start=np.array([1.0, 1.0]), free=ALL[:2], nonnegative=True
    )
    assert held.weights == pytest.approx([math.sqrt(2), 0.0])


def test_comparisons_without_noise_stay_finite_and_are_satisfied():
    for seed in range(5):
        features, pairs, weights = compared(seed, noise=0)
        fit = fit_preferences(features, pairs, start=1 / SIZES, free=ALL)
        assert fit.satisfied_after >= 59  # a near tie may stay on the wrong side
        assert cosine(fit.weights, weights) >= 0.98
        assert -2.0 < fit.log_likelihood < 0


def test_the_scale_of_the_start_stays():
    features, pairs, _ = compared(3)
    spread = np.sqrt(np.mean((features[pairs[:, 0]] - features[pairs[:, 1]]) ** 2, axis=0))
    fits = [fit_preferences(features, pairs, start=scale / SIZES, free=ALL) for scale in (1.0, 100.0)]
    for scale, fit in zip((1.0, 100.0), fits, strict=True):
        assert np.linalg.norm(fit.weights * spread) == pytest.approx(np.linalg.norm(scale / SIZES * spread))
    assert fits[1].weights == pytest.approx(100 * fits[0].weights, rel=1e-6)
    zero = fit_preferences(features, pairs, start=np.zeros(3), free=ALL)
    assert cosine(zero.weights, fits[0].weights) > 0.999


def test_fixed_terms_give_the_scale():
    features, pairs, weights = compared(5, count=400, noise=0.25)
    weights *= np.sign(weights[0])
    if satisfied(features @ weights, pairs).mean() < 0.5:
        pairs = pairs[:, ::-1]
    start = np.array([weights[0], 0.0, 0.0])
    fit = fit_preferences(features, pairs, start=start, free=np.array([False, True, True]))
    assert fit.weights[0] == weights[0]
    assert fit.weights * SIZES == pytest.approx(weights * SIZES, abs=0.15)
    assert fit.informed.tolist() == [False, True, True]


def test_preferences_against_a_fixed_term_stay_finite():
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.9]])
    fit = fit_preferences(
        features, np.array([[1, 0], [1, 2]]), start=np.array([1.0, 1.0]), free=np.array([False, True])
    )
    assert fit.weights[0] == 1.0
    assert 1.0 < fit.weights[1] < 30
    assert fit.satisfied_after == 2


def test_contradictory_preferences_leave_the_start_weights():
    features = np.array([[1.0, 0.0, 2.0], [0.0, 0.5, 1.0]])
    start = np.array([0.3, -1.0, 2.0])
    fit = fit_preferences(features, np.array([[0, 1], [1, 0]]), start=start, free=ALL)
    assert fit.weights == pytest.approx(start)
    assert fit.log_likelihood == pytest.approx(-2 * math.log(2), abs=1e-3)
    assert fit.satisfied_after == 1


def test_a_term_that_is_the_same_in_all_compared_episodes_keeps_its_weight():
    features, pairs, weights = compared(2)
    features = np.c_[features, np.full(40, 0.1), np.zeros(40)]
    start = np.r_[1 / SIZES, 0.7, -3.0]
    fit = fit_preferences(features, pairs, start=start, free=np.ones(5, dtype=bool))
    assert fit.weights[3:].tolist() == [0.7, -3.0]
    assert fit.informed.tolist() == [True, True, True, False, False]
    assert cosine(fit.weights[:3], weights) >= 0.98


def test_weights_are_fitted_on_a_preview():
    batch = make_batch(200, seed=2, length=10)
    true = RewardSpec([Term("a", "x", weight=2.0), Term("b", "vy", weight=-1.0)])
    returns = RewardPreview(batch, true).returns
    pairs = np.array([(i, (i + apart) % 20) for i in range(20) for apart in (1, 2, 3)])
    pairs = np.where((returns[pairs[:, 0]] > returns[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    preview = RewardPreview(batch, RewardSpec([Term("a", "x"), Term("b", "vy")]))
    fit = fit_preferences(preview.features(), pairs, start=np.ones(2), free=ALL[:2])
    assert fit.satisfied_after == 60
    assert cosine(fit.weights, np.array([2.0, -1.0]), 1.0) >= 0.98


def test_what_cannot_be_fitted_is_said():
    features, pairs, start = np.eye(3), np.array([[0, 1]]), np.ones(3)
    cases = [
        ({"pairs": np.zeros((0, 2))}, "There are no preferences"),
        ({"free": ~ALL}, "Every term's weight is fixed"),
        ({"pairs": np.array([[0, 3]])}, "names episode 3, but there are 3, counted from 0"),
        ({"pairs": np.array([[-1, 0]])}, "names episode -1"),
        ({"ridge": 0.0}, "The ridge is 0.0; it must be above 0"),
        ({"free": np.array([False, False, True])}, "do not differ in any term that may change"),
        ({"features": np.diag([1.0, math.nan, 1.0])}, "Term 2 is NaN or infinite"),
    ]
    for changes, message in cases:
        given = {"features": features, "pairs": pairs, "start": start, "free": ALL} | changes
        with pytest.raises(DesignError, match=message):
            fit_preferences(given.pop("features"), given.pop("pairs"), **given)
    with pytest.raises(DesignError, match="cannot be better than itself"):
        Preference("entry:0", "entry:0")


def test_satisfied_counts_ties_as_not_satisfied():
    returns = np.array([1.0, 2.0, 2.0])
    assert satisfied(returns, np.array([[1, 0], [0, 1], [1, 2]])).tolist() == [True, False, False]
    assert satisfied(returns, np.zeros((0, 2), dtype=int)).tolist() == []
