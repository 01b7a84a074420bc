"""The rows that state checks look at: all of them, or whole episodes of every policy.

A million transitions need not be transformed to see that two components are the same; but a demo of twenty
episodes must not drown in a thousand random ones. So each policy gives an equal share of the rows.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.plan import StatePlan
from rlnb.design.spaces import space_bounds
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

#: rows beyond this many are sampled
MAX_ROWS = 50_000
#: every batch is sampled by the same generator, so that a check says the same each time
SEED = 20_170_612

Cache = MutableMapping[str, Any]


@dataclass(frozen=True, eq=False)
class StateSample:
    """Rows of a batch with the observations that a state design makes of them.

    Attributes:
        batch: the sampled rows, episode after episode.
        rows: int64 (m,), where they stand in the whole batch.
        total: number of rows of the whole batch.
        space: of the transformed observations.
        names: (d,) of their components.
        obs: (m, d) transformed; `next_obs` likewise.
        low: float64 (d,), declared; `high` likewise.
        reward: float64 (m,), what is to be learned.
        whole: (n, d) transformed obs and next_obs of the whole batch, where they cost nothing.
    """

    batch: Transitions
    rows: Array
    total: int
    space: Any
    names: tuple[str, ...]
    obs: Array
    next_obs: Array
    low: Array
    high: Array
    reward: Array
    whole: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def phrase(self) -> str:
        """How many steps were looked at, for sentences: "4,000 steps"."""
        if len(self) == self.total:
            return f"{self.total:,} steps"
        return f"{len(self):,} sampled steps of {self.total:,}"

    def first_rows(self, where: Array, most: int = 5) -> tuple[int, ...]:
        """Returns a few rows of the whole batch where `where`, bool (m,), holds."""
        return tuple(int(row) for row in self.rows[np.flatnonzero(where)[:most]])

    @cached_property
    def columns(self) -> Array:
        """Components as float64 (d, m), each contiguous; what is not finite is the component's mean."""
        columns = np.array(self.obs.T, dtype=np.float64, order="C")
        bad = ~np.isfinite(columns)
        for place in np.flatnonzero(bad.any(axis=1)):
            fine = columns[place, ~bad[place]]
            columns[place, bad[place]] = fine.mean() if len(fine) else 0.0
        return columns

    @cached_property
    def means(self) -> Array:
        """Mean of each component, float64 (d,)."""
        return self.columns.mean(axis=1)

    @cached_property
    def spreads(self) -> Array:
        """Standard deviation of each component, float64 (d,); exactly 0 for a constant."""
        spreads = self.columns.std(axis=1)
        spreads[self.columns.min(axis=1) == self.columns.max(axis=1)] = 0.0
        return spreads

    @cached_property
    def two_valued(self) -> Array:
        """bool (d,), components of at most two values (contacts, flags), which have no scale."""
        low, high = self.columns.min(axis=1)[:, None], self.columns.max(axis=1)[:, None]
        return np.asarray(((self.columns == low) | (self.columns == high)).all(axis=1))

    @cached_property
    def policies(self) -> tuple[Array, tuple[str, ...]]:
        """Policy of each row: int64 (m,) codes, and the labels they stand for."""
        return policy_codes(self.batch)


def take_sample(
    batch: Transitions,
    plan: StatePlan,
    *,
    reward: Array | None = None,
    values: tuple[Array, Array] | None = None,
    cache: Cache | None = None,
    limit: int = MAX_ROWS,
) -> StateSample:
    """Samples a batch and transforms the sample.

    Args:
        reward: float64 (n,) of the whole batch; None means the environment's own.
        values: `plan.preview(batch)`, where it is at hand.
        cache: keeps which rows of a batch were sampled, for the next call.

    Raises:
        DesignError: the batch is empty, `reward` is of another length, or the space has no components.
    """
    if not len(batch):
        raise DesignError("There is no step to check the state on; record some episodes first.")
    paid = batch.reward if reward is None else np.asarray(reward, dtype=np.float64)
    if paid.shape != (len(batch),):
        raise DesignError(
            f"reward has the shape {paid.shape}, but there are {len(batch)} steps; give one number for each."
        )
    kept = (cache or {}).get("state.sample")
    if kept is not None and kept[0] is batch and kept[1] == limit:
        rows, part = kept[2:]
    else:
        rows = sampled_rows(batch, limit)
        part = batch if len(rows) == len(batch) else batch.slice(rows)
        if cache is not None:
            cache["state.sample"] = (batch, limit, rows, part)
    low, high = space_bounds(plan.space)
    if values is None and plan.spec.is_identity:
        values = plan.preview(batch)
    if values is None:
        obs, after = (side.reshape(len(side), -1) for side in plan.preview(part))
        whole = (obs, after) if part is batch else None
    else:
        whole = (values[0].reshape(len(batch), -1), values[1].reshape(len(batch), -1))
        obs, after = whole if part is batch else (whole[0][rows], whole[1][rows])
    names = plan.names or tuple(f"obs{i}" for i in range(obs.shape[1]))
    return StateSample(
        part, rows, len(batch), plan.space, names, obs, after, low, high, paid if part is batch else paid[rows], whole
    )  # fmt: skip


def sampled_rows(batch: Transitions, limit: int) -> Array:
    """Returns the rows of whole episodes, in order, int64: at most `limit`, the same for each policy.

    Episodes with an observation that is not finite come first. The last one that a policy gives is cut off
    where its share is full.
    """
    n = len(batch)
    if n <= limit:
        return np.arange(n)
    lengths = np.diff(np.append(batch.starts, n))
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
    return np.repeat(codes, np.diff(np.append(batch.starts, len(batch)))), labels


def _episode_codes(batch: Transitions) -> tuple[Array, tuple[str, ...]]:
    found: dict[str, int] = {}
    get = batch.labels.get
    codes = [found.setdefault(get(key, ""), len(found)) for key in batch.episode[batch.starts].tolist()]
    return np.array(codes, dtype=np.int64), tuple(found)
