"""Profiles of observations: what each component was seen to do, against what its space declares.

Works on raw observations (`profile`) and on what a state design makes of them (`profile_values`); pictures
are described as such (`profile_images`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.spaces import space_bounds, width
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

BINS = 24
"""Number of bins of a component's histogram."""


@dataclass(frozen=True, eq=False)
class ComponentProfile:
    """What one component of n observations was seen to do.

    Attributes:
        name: the component's name.
        dtype: the dtype its space declares, such as "float32".
        low: declared bound, possibly infinite; `high` likewise.
        seen_low: smallest finite value; NaN where there is none. `seen_high` likewise.
        mean: of the finite values; `spread` is their standard deviation (divided by n).
        saturated: share of all values at a finite declared bound, in [0, 1].
        constant: all values are finite and the same.
        missing: number of NaN; `infinite` of infinities.
        edges: float64 (bins + 1,), of the histogram; `counts` int64 (bins,) of finite values. Few whole
            numbers have a bin each, centred on the number.
    """

    name: str
    dtype: str
    low: float
    high: float
    seen_low: float
    seen_high: float
    mean: float
    spread: float
    saturated: float
    constant: bool
    missing: int
    infinite: int
    edges: Array = field(repr=False)
    counts: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class ImageProfile:
    """What image observations look like.

    Attributes:
        shape: of one observation, as in (96, 96, 3); `dtype` of its numbers.
        low: declared smallest value; `high` the largest. `seen_low` and `seen_high` in the examples.
        bytes_each: memory of one observation.
        examples: a few observations, (k, *shape), from the first to the last of the recording.
        rows: int64 (k,), the rows they are from.
    """

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    seen_low: float
    seen_high: float
    bytes_each: int
    examples: Array = field(repr=False)
    rows: Array = field(repr=False)


def is_image(space: Any, names: Sequence[str]) -> bool:
    """Says whether observations are pictures: a Box of two or more dimensions that holds bytes or has no names."""
    if type(space).__name__ != "Box" or len(space.shape) < 2:
        return False
    return space.dtype == np.uint8 or not names


def profile(
    batch: Transitions, observation_space: Any, names: Sequence[str]
) -> list[ComponentProfile] | ImageProfile:
    """Profiles the environment's observations, from the first to the last of each episode.

    Args:
        observation_space: gymnasium space of one environment.
        names: its components' names; () for images.

    Returns:
        One profile for each component; one for all where the observations are images.

    Raises:
        DesignError: there is no step, the space has no components, or the names do not fit.
    """
    if not len(batch):
        raise DesignError("There is no observation to profile; record some episodes first.")
    if is_image(observation_space, names):
        return profile_images(batch.obs.matrix, observation_space)
    low, high = space_bounds(observation_space)
    names = names or tuple(f"obs{i}" for i in range(len(low)))
    dtypes = component_dtypes(observation_space)
    values = np.concatenate([batch.obs.matrix, batch.next_obs.matrix[batch.ends]])
    return profile_values(values.reshape(len(values), -1), low, high, names, dtypes)


def profile_values(
    values: Array, low: Array, high: Array, names: Sequence[str], dtypes: Sequence[str] = ()
) -> list[ComponentProfile]:
    """Profiles columns of numbers.

    Args:
        values: (n, d) of any numeric dtype, n >= 1.
        low: (d,) declared bounds, possibly infinite; `high` likewise.
        names: (d,) names.
        dtypes: (d,) dtypes to name; that of `values` where left out.

    Raises:
        DesignError: the lengths do not fit, or there is no row.
    """
    d = values.shape[1] if values.ndim == 2 else -1
    if not len(values) or not d == len(low) == len(high) == len(names):
        raise DesignError(
            f"A profile needs rows of one number for each name; got an array {values.shape}, {len(low)} bounds "
            f"and {len(names)} names."
        )
    dtypes = dtypes or [str(values.dtype)] * d
    return [
        _component(np.ascontiguousarray(values[:, i]), float(low[i]), float(high[i]), names[i], dtypes[i])
        for i in range(d)
    ]


def profile_images(values: Array, space: Any, *, examples: int = 6) -> ImageProfile:
    """Describes image observations.

    Args:
        values: (n, …), n >= 1, each row of the space's shape.
        space: the Box they are of.
        examples: how many rows are handed out at most, evenly spread.
    """
    rows = np.unique(np.linspace(0, len(values) - 1, min(examples, len(values))).round().astype(np.int64))
    shape = tuple(int(side) for side in space.shape)
    shown = values[rows].reshape(len(rows), *shape)
    finite = shown[np.isfinite(shown)]
    seen = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    return ImageProfile(
        shape, str(space.dtype), float(np.min(space.low)), float(np.max(space.high)), *seen,
        math.prod(shape) * np.dtype(space.dtype).itemsize, shown, rows,
    )  # fmt: skip


def component_dtypes(space: Any) -> list[str]:
    """Returns the dtype of each component of a space; those of a Dict may differ."""
    parts = space.spaces.values() if type(space).__name__ == "Dict" else [space]
    return [str(part.dtype) for part in parts for _ in range(width(part))]


def _component(column: Array, low: float, high: float, name: str, dtype: str) -> ComponentProfile:
    kind = column.dtype.kind
    values = column.astype(np.float64, copy=False)
    count = len(values)
    missing = infinite = 0
    finite = values
    if kind == "f" and not math.isfinite(float(values.min()) + float(values.max())):
        missing, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        finite = values[np.isfinite(values)]
    at_bound = sum(
        np.count_nonzero(column == np.asarray(bound, dtype=dtype if kind == "f" else np.float64))
        for bound in {low, high}
        if math.isfinite(bound)
    )
    if not len(finite):
        nan = math.nan
        return ComponentProfile(
            name, dtype, low, high, nan, nan, nan, nan, at_bound / count, False, missing, infinite,
            np.zeros(1), np.zeros(0, dtype=np.int64),
        )  # fmt: skip
    seen_low, seen_high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore"):
        mean = float(finite.mean()) if seen_low < seen_high else seen_low
        rest = finite - mean
        # no BLAS: its threads wait for each other on a busy machine, which costs 10 ms a component
        spread = math.sqrt(float(np.square(rest, out=rest).mean())) if seen_low < seen_high else 0.0
    edges, counts = _histogram(finite, seen_low, seen_high, whole=kind != "f")
    return ComponentProfile(
        name, dtype, low, high, seen_low, seen_high, mean, spread, at_bound / count,
        seen_low == seen_high and len(finite) == count, missing, infinite, edges, counts,
    )  # fmt: skip


def _histogram(values: Array, low: float, high: float, *, whole: bool) -> tuple[Array, Array]:
    """Returns edges and counts over [low, high]; quicker than np.histogram, which checks every value."""
    if whole and high - low < BINS and max(-low, high) < 2**52:  # else there are no halves between numbers
        edges = np.arange(low - 0.5, high + 1.0)
    elif low == high:
        half = max(0.5, 1e-6 * abs(low))
        edges = np.array([low - half, low + half])
    else:
        with np.errstate(all="ignore"):
            edges = np.linspace(low, high, BINS + 1)
            if not (np.diff(edges) > 0).all() or not math.isfinite(
                high - low
            ):  # narrower than rounding, or too wide
                return np.array([low, high]), np.array([len(values)])
    bins = len(edges) - 1
    scale = bins / (edges[-1] - edges[0])
    places = np.minimum(((values - edges[0]) * scale).astype(np.int32), bins - 1)
    return edges, np.bincount(places, minlength=bins)
