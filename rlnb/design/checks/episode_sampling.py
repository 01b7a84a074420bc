"""Sampling whole episodes of every policy, and what else is read off the rows of a batch at once."""

from __future__ import annotations

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.transitions import Transitions

#: every batch is sampled by the same generator, so that a check says the same each time
SEED = 20_170_612


def sampled_rows(batch: Transitions, limit: int) -> Array:
    """Returns the rows of whole episodes, in order, int64: at most `limit`, the same for each policy.

    Episodes with an observation that is not finite come first. The last one that a policy gives is cut off
    where its share is full.
    """
    n = len(batch)
    if n <= limit:
        return np.arange(n)
    lengths = batch.lengths
    codes, labels = _episode_codes(batch)
    owned = np.bincount(codes, weights=lengths, minlength=len(labels)).astype(np.int64)
    shares = _equal_shares(owned, limit)
    odd = _odd_episodes(batch)
    rng = np.random.default_rng(SEED)
    taken = np.zeros(len(lengths), dtype=np.int64)
    for code, share in enumerate(shares):
        mine = rng.permutation(np.flatnonzero(codes == code))
        mine = mine[np.argsort(~odd[mine], kind="stable")]
        before = np.cumsum(lengths[mine]) - lengths[mine]
        taken[mine] = np.clip(share - before, 0, lengths[mine])
    chosen = np.flatnonzero(taken)
    counts = taken[chosen]
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows: Array = np.repeat(batch.starts[chosen], counts) + offsets
    return rows


def _odd_episodes(batch: Transitions) -> Array:
    """Says of each episode whether an observation in it is not finite, bool (episodes,)."""
    odd = np.zeros(len(batch.starts), dtype=bool)
    for side in (batch.obs.matrix, batch.next_obs.matrix):
        values = side.reshape(len(batch), -1)
        if values.dtype.kind == "f" and not np.isfinite(extremes(values)).all():
            odd |= np.logical_or.reduceat(~np.isfinite(values).all(axis=1), batch.starts)
    return odd


def extremes(values: Array) -> Array:
    """Returns the smallest and largest of each column, (2, d); NaN where a column has one.

    Rows are folded first, because NumPy is slow over a long axis of short rows.
    """
    n, d = values.shape
    fold = 64 if n >= 4096 else 1
    head = values[: n - n % fold].reshape(-1, fold * d)
    found = []
    for smallest in (np.minimum, np.maximum):
        least = smallest.reduce(smallest.reduce(head, axis=0).reshape(fold, d), axis=0)
        rest = values[n - n % fold :]
        found.append(smallest.reduce(np.vstack([least, rest]), axis=0))
    return np.array(found, dtype=np.float64)


def _equal_shares(owned: Array, limit: int) -> Array:
    """Returns how many rows each policy gives; who has fewer than an equal share gives all."""
    shares = np.zeros_like(owned)
    left, open_ = limit, list(np.argsort(owned, kind="stable"))
    while open_:
        code = open_.pop(0)
        shares[code] = min(owned[code], left // (len(open_) + 1))
        left -= int(shares[code])
    return shares


def policy_codes(batch: Transitions) -> tuple[Array, tuple[str, ...]]:
    """Returns the policy of each row as int64 (n,) codes, and the labels they stand for ("" for none)."""
    codes, labels = _episode_codes(batch)
    return np.repeat(codes, batch.lengths), labels


def _episode_codes(batch: Transitions) -> tuple[Array, tuple[str, ...]]:
    found: dict[str, int] = {}
    codes = [found.setdefault(label, len(found)) for label in batch.episode_labels]
    return np.array(codes, dtype=np.int64), tuple(found)
