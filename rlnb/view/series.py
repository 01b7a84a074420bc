"""Running means and decimation: many points become the few that a screen can show."""

from __future__ import annotations

import numpy as np

from rlnb.view.history import Floats

MAX_POINTS = 2000


def running_mean(values: Floats, window: int) -> Floats:
    """Averages each value with those before it.

    Args:
        values: shape (n,); NaN and infinities are left out of the average.
        window: number of values, the current one included.

    Returns:
        Shape (n,): the mean over the last `window` values (fewer at the start); NaN where none is finite.
    """
    finite = np.isfinite(values)
    # Sums are taken about the mean, so that a long run of large returns loses no digits to cancellation.
    centre = float(values[finite].mean()) if finite.any() else 0.0
    sums = np.concatenate([[0.0], np.cumsum(np.where(finite, values - centre, 0.0))])
    counts = np.concatenate([[0], np.cumsum(finite)])
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - window, 0)
    count = counts[end] - counts[start]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = (sums[end] - sums[start]) / count + centre
    return np.where(count > 0, mean, np.nan)


def decimate(x: Floats, ys: Floats, points: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """Thins lines that share their x to at most `points`, keeping every peak.

    The points are cut into buckets of equal count; each bucket is drawn by its smallest and its largest
    value, so that no spike disappears, whatever its width. The newest point is kept as it is.

    Args:
        x: shape (n,), not decreasing.
        ys: shape (lines, n).
        points: the most points to return, at least 4.

    Returns:
        x of shape (m,) and ys of shape (lines, m) with m <= points; the input itself when it is short
        enough. A bucket without any finite value gives NaN.
    """
    if x.size <= points:
        return x, ys
    buckets = (points - 1) // 2
    edges = np.linspace(0, x.size - 1, buckets + 1).astype(np.int64)
    starts, lasts = edges[:-1], edges[1:] - 1
    thin_x = np.empty(2 * buckets + 1)
    thin_x[0:-1:2], thin_x[1::2], thin_x[-1] = x[starts], x[lasts], x[-1]
    thin = np.empty((ys.shape[0], 2 * buckets + 1))
    # fmin and fmax pass over NaN.
    thin[:, 0:-1:2] = np.fmin.reduceat(ys[:, :-1], starts, axis=1)
    thin[:, 1::2] = np.fmax.reduceat(ys[:, :-1], starts, axis=1)
    thin[:, -1] = ys[:, -1]
    return thin_x, thin
