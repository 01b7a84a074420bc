"""Which episodes a reward calls good: their order, and how far it agrees with another order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array

#: digits of a return, in shares of the largest, that count: sums in another order differ in the next ones
_DIGITS = 12


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
    from scipy.stats import kendalltau, rankdata  # a second to import, when a ranking is first asked for

    one, two = _tied(designed), _tied(env)
    ranks, env_ranks = rankdata(-one), rankdata(-two)
    varied = len(set(one)) > 1 and len(set(two)) > 1
    distance = np.abs(ranks - env_ranks)
    moved = np.argsort(-distance, kind="stable")[:most]
    return Ranking(
        order=np.argsort(-one, kind="stable"),
        env_order=np.argsort(-two, kind="stable"),
        ranks=ranks,
        env_ranks=env_ranks,
        spearman=float(np.corrcoef(ranks, env_ranks)[0, 1]) if varied else math.nan,
        kendall=float(kendalltau(ranks, env_ranks).statistic) if varied else math.nan,
        moved=moved[distance[moved] > 0],
    )


def _tied(returns: Array) -> Array:
    """Returns values that are equal where returns are, but for rounding; NaN counts as the lowest."""
    values = np.where(np.isnan(returns), -np.inf, returns)
    finite = np.abs(values[np.isfinite(values)])
    scale = float(finite.max()) if len(finite) else 0.0
    return np.round(values / scale, _DIGITS) if scale else values
