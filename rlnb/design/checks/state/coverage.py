"""Which part of the state space each policy's rollouts visit: count maps over two axes.

The axes are two components, or the two principal components of the standardized ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlnb.design.checks.episode_sampling import SEED, extremes, policy_codes
from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.state.sample import StateSample
from rlnb.design.checks.wording import listed, percent
from rlnb.design.columns import Array
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError, did_you_mean

#: rows that principal components are computed from
PCA_ROWS = 20_000
#: share of a policy's cells that random rollouts should reach
REACHED = 0.5
#: policies that nobody wants to reach
_HUGE = 1e150
_AIMLESS = ("random", "idle", "")


@dataclass(frozen=True, eq=False)
class Coverage:
    """Count maps of all policies on common cells.

    Attributes:
        axes: names of both axes, as in ("x", "y") or ("PC1 (61 % of variance)", "PC2 (20 % of variance)").
        x_edges: float64 (bins + 1,), in the axis' own unit; `y_edges` likewise.
        counts: for each policy label the number of steps in each cell, int64 (bins, bins), first axis first.
        dropped: rows left out because they are not finite.
        weights: (2, d) of the standardized components, for principal components.
    """

    axes: tuple[str, str]
    x_edges: Array
    y_edges: Array
    counts: Mapping[str, Array]
    dropped: int = 0
    weights: Array | None = field(default=None, repr=False)

    @property
    def occupied(self) -> dict[str, float]:
        """Share of the cells that any policy visits which this policy visits, in [0, 1]."""
        visited = np.any([counts > 0 for counts in self.counts.values()], axis=0).sum()
        return {label: float((counts > 0).sum() / max(visited, 1)) for label, counts in self.counts.items()}

    @property
    def only(self) -> dict[str, Array]:
        """Cells that this policy visits and no other does, bool (bins, bins)."""
        visitors = np.sum([counts > 0 for counts in self.counts.values()], axis=0)
        return {label: (counts > 0) & (visitors == 1) for label, counts in self.counts.items()}

    def reached(self, label: str, by: str) -> float:
        """Returns the share of the cells that `label` visits which `by` visits too, in [0, 1]."""
        theirs = self.counts[label] > 0
        return float((theirs & (self.counts[by] > 0)).sum() / max(theirs.sum(), 1))


def coverage(
    values: Array,
    names: Sequence[str],
    labels: Array | Sequence[str] | Transitions,
    axes: tuple[str, str] | None = None,
    bins: int = 40,
) -> Coverage:
    """Counts how often each policy visits each cell.

    Args:
        values: (n, d) components of the state.
        names: (d,) their names.
        labels: policy label of each row, or the batch that the rows are of (which is quicker).
        axes: two components; None means principal components.
        bins: cells along each axis, which go from the smallest to the largest value.

    Raises:
        DesignError: an axis is unknown, the lengths do not fit, or no row is finite.
    """
    if values.ndim != 2 or not values.shape[1] == len(names) > 0:
        raise DesignError(
            f"A coverage map needs one name for each component; got an array {values.shape} and {len(names)} names."
        )
    if bins < 1:
        raise DesignError(f"bins={bins} does not fit; give a whole number >= 1.")
    codes, known = _codes(labels)
    if len(codes) != len(values):
        raise DesignError(f"There are {len(codes)} labels for {len(values)} rows; give one for each.")
    picked = values if axes is None else values[:, [_place(name, names) for name in axes]]
    dropped = 0
    if len(picked) and not np.isfinite(extremes(picked)).all():
        finite = np.isfinite(picked).all(axis=1)
        dropped = int((~finite).sum())
        picked, codes = picked[finite], codes[finite]
    if not len(picked):
        raise DesignError("No row of the state is finite, so there is nothing to map.")
    weights = None
    if axes is None:
        points, axes, weights = principal_components(picked, names)
    else:
        points = picked.T.astype(np.float64)
    (x, x_edges), (y, y_edges) = (_cut(axis, bins) for axis in points)
    flat = np.bincount((codes * bins + x) * bins + y, minlength=len(known) * bins * bins)
    counts = dict(zip(known, flat.reshape(len(known), bins, bins), strict=True))
    return Coverage(axes, x_edges, y_edges, counts, dropped, weights)


def principal_components(values: Array, names: Sequence[str]) -> tuple[Array, tuple[str, str], Array]:
    """Returns the two directions in which standardized components vary most (Pearson, 1901).

    They are computed from a sample of the rows; constant components count for nothing. The sign is chosen so
    that the largest weight is positive.

    Returns:
        (2, n) coordinates, names with the explained share of the variance, (2, d) weights.
    """
    some = values
    if len(values) > PCA_ROWS:
        some = values[np.sort(np.random.default_rng(SEED).choice(len(values), PCA_ROWS, replace=False))]
    some = some.astype(np.float64)
    peak = np.abs(some).max(axis=0, initial=0.0)
    unit = np.where(peak > _HUGE, peak, 1.0)  # else squares are infinite
    some /= unit
    mean, spread = some.mean(axis=0), some.std(axis=0)
    spread[spread <= 1e-12 * np.maximum(np.abs(mean), 1e-300)] = np.inf
    scaled = (some - mean) / spread
    # The right singular vectors of the rows are those of their correlation matrix, which is small.
    _, strengths, directions = np.linalg.svd(scaled.T @ scaled, hermitian=True)
    weights, told = np.zeros((2, values.shape[1])), np.zeros(2)
    found = min(2, len(directions))
    weights[:found] = directions[:found]
    told[:found] = strengths[:found] / max(float(strengths.sum()), 1e-300)
    largest = np.abs(weights).argmax(axis=1)
    weights *= np.where(weights[[0, 1], largest] < 0, -1.0, 1.0)[:, None]
    scaled = weights / spread
    points = (scaled / unit) @ values.T - (scaled @ mean)[:, None]
    axes = tuple(f"PC{i + 1} ({percent(told[i])} of variance)" for i in range(2))
    return points, (axes[0], axes[1]), weights


def check_coverage(sample: StateSample) -> Finding:
    """Says how much of where other policies go random rollouts reach ("state.coverage")."""
    why = "What random actions never reach has to be found by luck at the start of training."
    known = sample.policies[1]
    goals = [label for label in known if label not in _AIMLESS]
    if "random" not in known or not goals:
        missing = "random rollouts" if "random" not in known else "a demo or a trained policy"
        return Finding(
            "state.coverage", Severity.FINE, f"How far random actions get cannot be told without {missing}.", why,
            f"Record {missing}.",
        )  # fmt: skip
    if not np.isfinite(sample.obs).all(axis=1).any():
        return Finding(
            "state.coverage", Severity.HINT, "No observation is finite, so nothing is mapped.", why
        )
    found = coverage(sample.obs, sample.names, sample.batch)
    shares = {label: found.reached(label, by="random") for label in goals}
    worst = min(shares, key=lambda label: shares[label])
    shown = [f"{percent(share)} of what {label} visits" for label, share in shares.items()]
    sentence = (
        f"Random rollouts reach {listed(shown)} ({len(found.x_edges) - 1} x {len(found.y_edges) - 1} cells of "
        f"{found.axes[0]} and {found.axes[1]}, {sample.phrase})."
    )
    if shares[worst] >= REACHED:
        return Finding("state.coverage", Severity.FINE, sentence, why, value=shares[worst])
    return Finding(
        "state.coverage", Severity.HINT, sentence, why,
        "Expect long training, shape the reward towards these states, or start episodes there.", value=shares[worst],
    )  # fmt: skip


def _codes(labels: Array | Sequence[str] | Transitions) -> tuple[Array, tuple[str, ...]]:
    if isinstance(labels, Transitions):
        return policy_codes(labels)
    found: dict[str, int] = {}
    listed_labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    codes = [found.setdefault(str(label), len(found)) for label in listed_labels]
    return np.array(codes, dtype=np.int64), tuple(found)


def _place(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise DesignError(
            f"The state has no component {name!r} to use as an axis.{did_you_mean(name, names)} "
            f"It has: {listed(list(names), 20)}."
        )
    return list(names).index(name)


def _cut(values: Array, bins: int) -> tuple[Array, Array]:
    """Returns the cell of each value, int64, and the edges of the cells."""
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):  # from one end of the doubles to the other
        cells, edges = _cut(values / 4, bins)
        return cells, edges * 4
    half = max(0.5, 1e-6 * abs(low)) if high - low <= 1e-12 * max(abs(low), abs(high)) else 0.0
    edges = np.linspace(low - half, high + half, bins + 1)
    cells = ((values - edges[0]) * (bins / (edges[-1] - edges[0]))).astype(np.int64)
    return np.clip(cells, 0, bins - 1), edges
