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

from rlnb.design.checks.episode_sampling import policy_codes, sampled_rows
from rlnb.design.columns import Array
from rlnb.design.plan import StatePlan
from rlnb.design.spaces import space_bounds
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

#: rows beyond this many are sampled, and fewer where there are many components
MAX_ROWS, MAX_NUMBERS = 50_000, 1_000_000

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
        return np.asarray(self.columns.mean(axis=1))

    @cached_property
    def spreads(self) -> Array:
        """Standard deviation of each component, float64 (d,); exactly 0 for a constant."""
        spreads = np.asarray(self.columns.std(axis=1))
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
    limit = min(MAX_ROWS, max(2000, MAX_NUMBERS // max(1, len(plan.names))))
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
