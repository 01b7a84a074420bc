"""Which episodes a reward calls good: their order, and how far it agrees with another order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array

#: returns that differ by less than this share of the largest are tied: sums in another order differ by as much
_TIE = 1e-12

#: elements within which inversions are counted pair by pair
_CHUNK = 32


@dataclass(frozen=True, eq=False)
class Ranking:
    """Episodes under the designed reward against the environment's own.

    Attributes:
        order: episode numbers by designed return, the best first, int64 (episodes,); ties as recorded.
        env_order: the same under the environment's reward.
        ranks: rank of each episode under the designed reward, float64 (episodes,); 1 is best, ties share
            the mean of their ranks.
        env_ranks: the same under the environment's reward.
        spearman: rank correlation, -1 to 1; NaN where all returns of one of the two are equal.
        kendall: tau-b, -1 to 1; NaN likewise.
        moved: episodes whose rank moves, the furthest first, at most 10, int64 (k,).
    """

    order: Array
    env_order: Array
    ranks: Array
    env_ranks: Array
    spearman: float
    kendall: float
    moved: Array


def rank(designed: Array, env: Array, *, most: int = 10) -> Ranking:
    """Compares two returns of the same episodes.

    Args:
        designed: float64 (episodes,); NaN ranks last.
        env: the same, of the environment's reward.
        most: number of moved episodes to name.
    """
    one, two = _tied(designed), _tied(env)
    ranks, env_ranks = mean_ranks(-one), mean_ranks(-two)
    distance = np.abs(ranks - env_ranks)
    moved = np.argsort(-distance, kind="stable")[:most]
    return Ranking(
        order=np.argsort(-one, kind="stable"),
        env_order=np.argsort(-two, kind="stable"),
        ranks=ranks,
        env_ranks=env_ranks,
        spearman=correlation(ranks, env_ranks),
        kendall=tau_b(one, two),
        moved=moved[distance[moved] > 0],
    )


def mean_ranks(values: Array) -> Array:
    """Returns ranks from 1 for the smallest, float64 (n,); equal values share the mean of their ranks."""
    order = np.argsort(values, kind="stable")
    first = _firsts(values[order])
    ends = np.r_[np.flatnonzero(first), len(values)]
    shared = (ends[:-1] + ends[1:] + 1) / 2
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(shared, np.diff(ends))
    return ranks


def correlation(one: Array, two: Array) -> float:
    """Returns Pearson's correlation of two (n,) columns; NaN where one of them is constant."""
    a, b = one - one.mean() if len(one) else one, two - two.mean() if len(two) else two
    scale = math.sqrt(float((a * a).sum()) * float((b * b).sum()))
    return float((a * b).sum()) / scale if scale else math.nan


def tau_b(one: Array, two: Array) -> float:
    """Returns Kendall's tau-b, which counts tied pairs as neither agreeing nor disagreeing; n log² n.

    NaN where all values of one column are equal. Source: Knight, "A computer method for calculating
    Kendall's tau with ungrouped data", JASA 61, 1966.
    """
    n = len(one)
    pairs = n * (n - 1) // 2
    order = np.lexsort((two, one))
    a, b = one[order], two[order]
    first = _firsts(a)
    ties_one = _pairs(first)
    ties_both = _pairs(first | _firsts(b))
    ties_two = _pairs(_firsts(np.sort(two)))
    scale = math.sqrt(pairs - ties_one) * math.sqrt(pairs - ties_two)
    if not scale:
        return math.nan
    # pairs tied in `one` stand in order of `two` and so are no inversions; those tied in `two` are none either
    disagree = inversions(b)
    agree = pairs - ties_one - ties_two + ties_both - disagree
    return (agree - disagree) / scale


def inversions(values: Array) -> int:
    """Returns the number of pairs that stand in falling order, without a loop over the values."""
    n = len(values)
    if n < 2:
        return 0
    dense = np.unique(values, return_inverse=True)[1].astype(np.int64)
    levels = max(math.ceil(math.log2(n / _CHUNK)), 0)
    width = _CHUNK << levels
    # filled up at the end with something larger than all, which stands in order
    rows = np.concatenate([dense, np.full(width - n, n, dtype=np.int64)]).reshape(-1, _CHUNK)
    count = sum(int(np.count_nonzero(rows[:, :place] > rows[:, place, None])) for place in range(1, _CHUNK))
    rows.sort(axis=1)
    while len(rows) > 1:
        left, right = rows[0::2], rows[1::2]
        # each pair of halves in a range of its own, so that one search serves all
        shift = np.arange(len(left))[:, None] * (n + 1)
        below = np.searchsorted((left + shift).ravel(), (right + shift).ravel(), side="right")
        ends = np.repeat(np.arange(1, len(left) + 1) * left.shape[1], left.shape[1])
        count += int((ends - below).sum())
        rows = np.sort(rows.reshape(len(left), -1), axis=1)
    return count


def _firsts(ordered: Array) -> Array:
    """Returns where a value differs from the one before it, bool (n,)."""
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def _pairs(first: Array) -> int:
    """Returns the number of pairs within runs that begin where `first` is true."""
    lengths = np.diff(np.r_[np.flatnonzero(first), len(first)])
    return int((lengths * (lengths - 1) // 2).sum())


def _tied(returns: Array) -> Array:
    """Returns values that are equal where returns are, but for rounding; NaN counts as the lowest."""
    values = np.where(np.isnan(returns), -np.inf, returns)
    finite = np.abs(values[np.isfinite(values)])
    scale = float(finite.max()) if len(finite) else 0.0
    return np.round(values / scale, 12) if scale else values
