"""Where recorded episodes come back to a state they have been in.

Observations that repeat exactly (grids, discrete states) give a graph, in which walks from different
episodes can be joined to a loop. Continuous ones never repeat, and binning them would join walks that do
not meet: a walk that drifts through a bin would look like one that stays. So there only those stretches
count that were really walked and came back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlnb.design.checks.reward.payments import Payments
from rlnb.design.columns import Array

#: steps, and numbers in their observations, looked at, in whole episodes
_MOST_ROWS, _MOST_VALUES = 200_000, 30_000_000

#: numbers in an observation up to which a return can be told by closeness
_MOST_NUMBERS = 40

#: steps of the stretches that are looked at
_STRETCHES = (8, 16, 32, 64, 128)

#: a stretch has come back if each component ends this near, as a share of its way and of its range, ...
_OF_WAY, _OF_RANGE = 0.1, 0.05
#: ... or stood still: its whole way is less than this share of its range
_STILL = 1e-3


@dataclass(frozen=True)
class StateGraph:
    """Observed transitions between states that repeat exactly; those into a terminal state are left out.

    Attributes:
        rows: the batch's rows behind it, (rows,).
        edge: the edge of each of these rows.
        source: state each edge leaves, (edges,); `target` likewise.
        first: one row of the batch for each edge.
        states: how many different states there are.
    """

    rows: Array
    edge: Array
    source: Array
    target: Array
    first: Array
    states: int

    def mean(self, values: Array) -> Array:
        """Returns the mean of a column of the batch over the rows of each edge, float64 (edges,)."""
        count = np.bincount(self.edge, minlength=len(self.source))
        return np.asarray(np.bincount(self.edge, weights=values[self.rows], minlength=len(count)) / count)


@dataclass(frozen=True)
class Stretches:
    """Stretches of episodes that end where they began.

    Attributes:
        start: first row of each, int64 (stretches,).
        length: steps of each, int64 (stretches,).
    """

    start: Array
    length: Array


def state_graph(payments: Payments) -> StateGraph | None:
    """Returns the graph of exactly repeating states, or None if states hardly repeat."""
    batch, rows = payments.batch, _whole_episodes(payments)
    few = _fingerprints(batch.obs.matrix[rows[:2000]])
    if len(np.unique(few)) > 0.8 * len(few):
        return None  # continuous: no need to look at all of it
    before = _fingerprints(batch.obs.matrix[rows])
    if len(np.unique(before)) > len(before) / 3:
        return None
    after = _fingerprints(batch.next_obs.matrix[rows])
    known, state = np.unique(np.concatenate([before, after]), return_inverse=True)
    goes_on = ~batch.terminated[rows]
    source, target = state[: len(rows)][goes_on], state[len(rows) :][goes_on]
    pairs, first, edge = np.unique(source * len(known) + target, return_index=True, return_inverse=True)
    walked = rows[goes_on]
    return StateGraph(walked, edge, pairs // len(known), pairs % len(known), walked[first], len(known))


def returning_stretches(payments: Payments) -> Stretches | None:
    """Returns the stretches that came back, or None if observations are too large to tell."""
    batch = payments.batch
    if batch.obs.matrix.reshape(len(batch), -1).shape[1] > _MOST_NUMBERS:
        return None
    rows = _whole_episodes(payments)
    state = batch.obs.matrix[rows].reshape(len(rows), -1).astype(np.float64)
    number = batch.episode[rows]
    low, high = np.quantile(state[:: max(len(state) // 20_000, 1)], (0.01, 0.99), axis=0)
    span = high - low
    state = state[:, span > 0.0] / span[span > 0.0]
    way = np.zeros_like(state)
    np.cumsum(np.abs(np.diff(state, axis=0)), axis=0, out=way[1:])
    starts, lengths = [], []
    for length in _STRETCHES:
        if length >= len(rows):
            break
        gone = np.abs(state[length:] - state[:-length])
        walked = way[length:] - way[:-length]
        back = ((gone <= _OF_WAY * walked) & (gone <= _OF_RANGE)) | (walked <= _STILL)
        # the last state of a stretch is one that the episode went on from, so it did not end there
        found = np.flatnonzero(back.all(axis=1) & (number[length:] == number[:-length]))
        starts.append(rows[found])
        lengths.append(np.full(len(found), length))
    none = np.zeros(0, dtype=np.int64)
    return Stretches(np.concatenate([none, *starts]), np.concatenate([none, *lengths]))


def _whole_episodes(payments: Payments) -> Array:
    """Returns the rows of all episodes, or of as many as fit, drawn with a private generator."""
    numbers = max(payments.batch.obs.matrix[:1].size, 1)
    most = min(_MOST_ROWS, max(_MOST_VALUES // numbers, 1000))
    if len(payments.batch) <= most:
        return np.arange(len(payments.batch))
    order = np.random.default_rng(0).permutation(len(payments.starts))
    fits = order[np.cumsum(payments.lengths[order]) <= most]
    chosen = np.zeros(len(order), dtype=bool)
    chosen[fits if len(fits) else order[:1]] = True
    return np.flatnonzero(np.repeat(chosen, payments.lengths))[:most]


def _fingerprints(matrix: Array) -> Array:
    """Returns an int64 for each row, equal for equal rows (and, by a chance of 2^-64, for others)."""
    flat = matrix.reshape(len(matrix), -1)
    if flat.dtype.kind == "f":
        flat = flat + 0.0  # -0.0 and 0.0 are one state
    flat = np.ascontiguousarray(flat)
    rows = flat.view(f"V{flat.dtype.itemsize * flat.shape[1]}").ravel().tolist()
    return np.fromiter(map(hash, rows), dtype=np.int64, count=len(rows))
