"""Preferences between episodes, and weights that agree with them.

A person says which of two episodes is better. Under the Bradley-Terry model the first is preferred with
probability sigmoid(b * (return of the first - return of the second)). A return is a weighted sum of the
terms' returns, so the likelihood is concave in the weights and has one maximum.
Sources: Bradley, Terry, "Rank analysis of incomplete block designs", Biometrika 39, 1952; Christiano et
al., "Deep reinforcement learning from human preferences", NeurIPS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array
from rlnb.errors import DesignError

#: how far free terms may outweigh fixed ones; preferences against these would have it without bound
_OUTWEIGH = 20.0

#: likelier by less than this (in nats, of all comparisons) is no reason to change a weight
_NO_GAIN = 1e-4


@dataclass(frozen=True)
class Preference:
    """One comparison, by keys of episodes that survive restarts.

    Attributes:
        better: key of the episode that is preferred.
        worse: key of the other.
    """

    better: str
    worse: str

    def __post_init__(self) -> None:
        if self.better == self.worse:
            raise DesignError(
                f"Episode {self.better!r} cannot be better than itself; pick two different episodes."
            )


@dataclass(frozen=True, eq=False)
class PreferenceFit:
    """Weights fitted to preferences.

    Attributes:
        weights: float64 (terms,); those that were not free, and those that no comparison tells anything
            about, as they were.
        informed: bool (terms,), the weights that were fitted.
        log_likelihood: of all comparisons at the maximum; 0 would be certainty, `-k * log(2)` guessing.
        satisfied_before: number of comparisons that the start weights order rightly.
        satisfied_after: the same with the fitted weights.
        comparisons: number of comparisons, k.
    """

    weights: Array
    informed: Array
    log_likelihood: float
    satisfied_before: int
    satisfied_after: int
    comparisons: int

    def __str__(self) -> str:
        return (
            f"The fitted weights satisfy {self.satisfied_after} of {self.comparisons} preferences "
            f"({self.satisfied_before} before)."
        )


def satisfied(returns: Array, pairs: Array) -> Array:
    """Tells which preferences a reward agrees with, bool (k,): the better episode has the higher return.

    Args:
        returns: float64 (episodes,).
        pairs: int (k, 2), the better and the worse episode, counted from 0.

    Raises:
        DesignError: a pair names no episode.
    """
    pairs = _checked_pairs(pairs, len(returns))
    return np.asarray(returns[pairs[:, 0]] > returns[pairs[:, 1]])


def fit_preferences(
    features: Array,
    pairs: Array,
    *,
    start: Array,
    free: Array,
    nonnegative: bool = False,
    ridge: float = 0.001,
) -> PreferenceFit:
    """Fits the weights of a weighted sum to preferences, by maximum likelihood.

    Preferences say nothing about the scale of a reward. Where nothing is fixed, the sum over terms of the
    squared (weight times spread of its feature over the comparisons) stays that of the start weights;
    otherwise the fixed terms give the scale, and the free ones may outweigh them 20-fold at most.

    Args:
        features: float64 (episodes, terms), what each term's weight adds to a return (`RewardPreview.features`).
        pairs: int (k, 2), the better and the worse episode, counted from 0.
        start: float64 (terms,), the weights now.
        free: bool (terms,), the weights that may change.
        nonnegative: free weights may not become negative.
        ridge: pull towards the start weights, which keeps weights finite where they can satisfy every
            preference; in units of one comparison's information on standardised features.

    Raises:
        DesignError: there are no preferences, every term is fixed, a feature is not finite, or no compared
            pair differs in a free term.
    """
    features, start = np.asarray(features, dtype=np.float64), np.asarray(start, dtype=np.float64)
    free = np.asarray(free, dtype=bool)
    pairs = _checked_pairs(pairs, len(features))
    differences = features[pairs[:, 0]] - features[pairs[:, 1]]
    _check(differences, free, ridge)
    spread = np.sqrt(np.mean(differences**2, axis=0))
    informed = free & (spread > 1e-12 * np.abs(features).max(axis=0, initial=0.0))
    if not informed.any():
        raise DesignError(
            "The compared episodes do not differ in any term that may change, so that nothing can be fitted; "
            "compare other episodes, or free other terms."
        )
    before = differences @ start
    held = before - differences[:, informed] @ start[informed]
    columns = differences[:, informed] / spread[informed]
    guess = start[informed] * spread[informed]
    lowest = np.full(len(guess), 0.0 if nonnegative else -np.inf)
    # what is fixed is one more column, of known weight 1: its coefficient is the scale b
    fixed = float(np.sqrt(np.mean(held**2)))
    has_fixed = fixed > 1e-12 * max(float(np.abs(before).max()), 1e-300)
    if has_fixed:
        columns, guess = np.c_[columns, held / fixed], np.r_[guess, fixed]
    # the start weights at the scale that explains the comparisons best: what the ridge pulls to
    size = float(np.linalg.norm(guess))
    towards = guess / size if size else guess
    scale = _maximise((columns @ towards)[:, None], np.zeros(1), np.full(1, 1e-3), ridge)[0]
    towards = scale * towards
    if has_fixed:
        lowest = np.r_[lowest, 0.0]
    found = _maximise(columns, towards, lowest, ridge)
    gain = _log_likelihood(columns @ found) - _log_likelihood(columns @ towards)
    weights = start.copy()
    if gain > _NO_GAIN or np.any(towards < lowest):
        fitted = found[: len(spread[informed])]
        length = float(np.linalg.norm(fitted))
        if has_fixed:
            factor = fixed / max(found[-1], length / _OUTWEIGH)
        else:
            factor = size / length if size and length else 1.0
        weights[informed] = fitted * factor / spread[informed]
    return PreferenceFit(
        weights=weights,
        informed=informed,
        log_likelihood=_log_likelihood(columns @ found),
        satisfied_before=int(np.count_nonzero(before > 0)),
        satisfied_after=int(np.count_nonzero(differences @ weights > 0)),
        comparisons=len(pairs),
    )


def _maximise(columns: Array, towards: Array, lowest: Array, ridge: float) -> Array:
    """Returns the v >= lowest that maximises sum(log sigmoid(columns @ v)) - ridge/2 * |v - towards|².

    Newton's method on the coordinates that are not held at their bound, with a projected line search.
    Source: Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM
    J. Control and Optimization 20, 1982.
    """

    def value(v: Array) -> float:
        return _log_likelihood(columns @ v) - ridge / 2 * float(np.sum((v - towards) ** 2))

    v = np.maximum(towards, lowest)
    best = value(v)
    for _ in range(200):
        doubt = _sigmoid(-(columns @ v))
        slope = columns.T @ doubt - ridge * (v - towards)
        moves = (v > lowest) | (slope > 0)
        if not moves.any() or float(np.abs(slope[moves]).max()) < 1e-10:
            break
        some = columns[:, moves]
        curvature = (some * (doubt * (1 - doubt))[:, None]).T @ some + ridge * np.eye(some.shape[1])
        step = np.zeros(len(v))
        step[moves] = np.linalg.solve(curvature, slope[moves])
        for halving in range(50):
            tried = np.maximum(v + step * 0.5**halving, lowest)
            gained = value(tried) - best
            if gained > 0:
                break
        else:
            break
        v, best = tried, best + gained
        if gained < 1e-13 * max(abs(best), 1.0):
            break
    return v


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def _log_likelihood(logits: Array) -> float:
    return float(-np.logaddexp(0.0, -logits).sum())


def _checked_pairs(pairs: Array, episodes: int) -> Array:
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    wrong = pairs[(pairs < 0) | (pairs >= episodes)]
    if len(wrong):
        raise DesignError(
            f"A preference names episode {int(wrong[0])}, but there are {episodes}, counted from 0."
        )
    return pairs


def _check(differences: Array, free: Array, ridge: float) -> None:
    if not len(differences):
        raise DesignError(
            "There are no preferences to fit weights to; pick two episodes and say which is better."
        )
    if not free.any():
        raise DesignError("Every term's weight is fixed, so that nothing can be fitted; free at least one.")
    if not ridge > 0:
        raise DesignError(f"The ridge is {ridge!r}; it must be above 0, or weights may grow without bound.")
    broken = np.flatnonzero(~np.isfinite(differences).all(axis=0))
    if len(broken):
        raise DesignError(
            f"Term {int(broken[0]) + 1} is NaN or infinite in an episode that was compared; mend the term, or "
            "remove the preference."
        )
