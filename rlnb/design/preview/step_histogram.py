"""Distribution of the designed reward per step, with edges that stand still while a slider moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array
from rlnb.errors import DesignError

#: share of the steps that may lie beyond each end
TAIL = 0.001

#: steps that are looked at for the range; counts are of all
_SAMPLE = 16_384

#: room left around the steps seen, and the least of an axis that they must fill, before edges are chosen anew
_ROOM, _FILLED = 1.25, 0.4

#: steps counted at a time; their bins stay in the cache
_BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class StepHistogram:
    """Counts of steps by their reward.

    Attributes:
        edges: float64 (bins + 1,), equally wide.
        counts: int64 (bins,); steps beyond the edges are counted in the first and last bin.
        by_label: policy label → int64 (bins,), in the order of first appearance; they add up to `counts`.
        below: steps under the first edge, among those of the first bin.
        above: steps from the last edge on, among those of the last bin.
        missing: steps that are NaN, counted in no bin.
    """

    edges: Array
    counts: Array
    by_label: dict[str, Array]
    below: int
    above: int
    missing: int


@dataclass(frozen=True)
class Axis:
    """Equally wide bins whose edges are whole multiples of their width.

    Attributes:
        first: the first edge, in widths.
        width: 4, 5, 6 or 7 times a power of two, so that edges and bin numbers are exact.
    """

    first: int
    width: float
    bins: int

    @property
    def edges(self) -> Array:
        return (self.first + np.arange(self.bins + 1.0)) * self.width

    def fits(self, low: float, high: float) -> bool:
        """Tells whether a range lies within the edges and fills enough of them."""
        inside = self.first * self.width <= low and high <= (self.first + self.bins) * self.width
        return inside and high - low >= _FILLED * self.bins * self.width


class StepHistograms:
    """Counts the steps of one batch again and again, by policy label.

    Args:
        labels: label of each episode.
        lengths: steps of each episode, int64 (episodes,).
    """

    def __init__(self, labels: Sequence[str], lengths: Array) -> None:
        self._labels = list(dict.fromkeys(labels))
        rows = int(lengths.sum())
        places = np.array([self._labels.index(label) for label in labels], dtype=np.int32)
        self._place = np.repeat(places, lengths) if len(self._labels) > 1 else None
        # a fixed sample, so that the range does not tremble; drawn, as a stride could follow the episodes' beat
        drawn = np.random.default_rng(0).integers(0, max(rows, 1), _SAMPLE) if rows > _SAMPLE else None
        self._sample: Array | slice = slice(None) if drawn is None else np.sort(drawn)
        self._axes: dict[int, Axis] = {}
        self._offsets: tuple[int, Array | None] = (0, None)

    def count(self, steps: Array, bins: int) -> StepHistogram:
        """Returns the histogram of `steps`, float32 (n,).

        Raises:
            DesignError: fewer than 1 or more than 10,000 bins.
        """
        if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= 10_000:
            raise DesignError(f"A histogram of {bins!r} bins cannot be drawn; ask for 1 to 10,000.")
        axis = self._axis(steps, bins)
        slots = bins + 3  # for each label: NaN, below, the bins, above
        found = np.zeros(max(len(self._labels), 1) * slots, dtype=np.int64)
        offsets = self._label_offsets(slots)
        value, number = np.empty(_BLOCK), np.empty(_BLOCK, dtype=np.intp)
        with np.errstate(all="ignore"):
            for start in range(0, len(steps), _BLOCK):
                part = steps[start : start + _BLOCK]
                place, slot = value[: len(part)], number[: len(part)]
                # in float64, rounded correctly, floored before anything is added: exact at the edges
                np.divide(part, axis.width, out=place, dtype=np.float64)
                np.floor(place, out=place)
                np.add(place, 2.0 - axis.first, out=place)
                np.maximum(place, 1.0, out=place)
                np.minimum(place, bins + 2.0, out=place)
                np.fmax(place, 0.0, out=place)  # NaN becomes 0
                np.copyto(slot, place, casting="unsafe")
                if offsets is not None:
                    np.add(slot, offsets[start : start + _BLOCK], out=slot)
                found += np.bincount(slot, minlength=len(found))
        table = found.reshape(-1, slots)
        inner = table[:, 2:-1].copy()
        inner[:, 0] += table[:, 1]
        inner[:, -1] += table[:, -1]
        missing, below, above = (int(table[:, slot].sum()) for slot in (0, 1, -1))
        by_label = dict(zip(self._labels, inner, strict=False))
        return StepHistogram(axis.edges, inner.sum(axis=0), by_label, below, above, missing)

    def _label_offsets(self, slots: int) -> Array | None:
        if self._place is None:
            return None
        if self._offsets[0] != slots:
            self._offsets = (slots, self._place * np.int32(slots))
        return self._offsets[1]

    def _axis(self, steps: Array, bins: int) -> Axis:
        low, high = _range(steps, self._sample)
        axis = self._axes.get(bins)
        if axis is None or not axis.fits(low, high):
            axis = self._axes[bins] = choose_axis(low, high, bins)
        return axis


def choose_axis(low: float, high: float, bins: int) -> Axis:
    """Returns bins around a range, with room at both ends; low < high, both finite."""
    least = (high - low) * _ROOM / bins
    # the smallest of 4, 5, 6, 7 times a power of two that is wide enough
    power = 2.0 ** (math.floor(math.log2(least)) - 2)
    width = power * next(step for step in (4, 5, 6, 7, 8) if step * power >= least)
    middle = low / 2 + high / 2
    return Axis(math.floor(middle / width - bins / 2 + 0.5), width, bins)


def _range(steps: Array, sample: Array | slice) -> tuple[float, float]:
    """Returns the range of all but the outermost steps (`TAIL`), widened to something if it is a point."""
    seen = np.asarray(steps[sample], dtype=np.float64)
    seen = np.sort(seen[np.isfinite(seen)])
    if not len(seen):
        return -1.0, 1.0
    cut = int(TAIL * len(seen))
    low, high = float(seen[cut]), float(seen[-1 - cut])
    if low == high:
        # nearly always the same pay: what is paid seldom is then what there is to see
        rest = steps[np.isfinite(steps)]
        low, high = float(rest.min()), float(rest.max())
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    if half <= 1e-6 * abs(middle) or half < 1e-30:
        half = max(1.0, 0.1 * abs(middle))
    return middle - half, middle + half
