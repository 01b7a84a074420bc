"""A batch of transitions as columns: what every reward term and every preview sees.

The same class holds a recording of a million rows and one step of eight environments, so that the
functions that preview a batch are the very functions that pay the agent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from rlnb.design import table
from rlnb.design.columns import Array, Columns, InfoColumns, MappingColumns, MatrixColumns, read_only
from rlnb.design.expressions.namespace import Namespace
from rlnb.errors import DesignError

_COLUMNS = ("next_obs", "action", "prev_action", "t", "terminated", "truncated", "reward", "episode")


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """n transitions (s, a, r, s') in columns.

    Attributes:
        obs: components of s; `obs["vy"]` is (n,), `obs.matrix` the stored (n, ...) array.
        next_obs: components of s'; at an episode's end the last observation, never the reset's.
        action: (n,) for scalar actions, else columns `a0`, `a1`, …
        prev_action: the action one step earlier in the same episode; zeros where `t` is 0.
        t: int64 (n,), the step within its episode, from 0.
        terminated: bool (n,), s' is terminal.
        truncated: bool (n,), the episode was cut off at s' (a time limit), which is not terminal.
        reward: float64 (n,), the environment's own.
        info: numeric entries of `info`, by key.
        signals: recorded signals, by name.
        episode: int64 (n,), the number of the episode a row belongs to; rows of one stand together.
        labels: policy label of each episode number.
    """

    obs: Columns
    next_obs: Columns
    action: Array | Columns
    prev_action: Array | Columns
    t: Array
    terminated: Array
    truncated: Array
    reward: Array
    info: Columns
    signals: Columns
    episode: Array
    labels: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        obs: Array,
        next_obs: Array,
        action: Array,
        *,
        reward: Array,
        terminated: Array,
        truncated: Array,
        t: Array,
        names: Sequence[str] = (),
        prev_action: Array | None = None,
        episode: Array | None = None,
        infos: Sequence[Mapping[str, Any]] | Mapping[str, Array] | None = None,
        signals: Sequence[Mapping[str, Any]] | Mapping[str, Array] | None = None,
        labels: Mapping[int, str] | None = None,
    ) -> Transitions:
        """Wraps arrays of n rows, without copying those that have the right dtype already.

        Args:
            obs: (n, ...) observations in the environment's dtype; `next_obs` likewise.
            action: (n,) or (n, k).
            names: one name for each component of a flattened observation, or none (images).
            prev_action: derived from `action` and `t` when left out, which is right for whole episodes.
            episode: derived from `t` when left out: a new one begins where `t` is 0.
            infos: a dict of columns, or the list of `info` dicts; `signals` likewise.
            labels: policy label of each episode number.

        Raises:
            DesignError: the arrays differ in length or the names do not fit.
        """
        obs, next_obs, action = np.asarray(obs), np.asarray(next_obs), np.asarray(action)
        reward, t = np.asarray(reward, dtype=np.float64), np.asarray(t, dtype=np.int64)
        terminated, truncated = np.asarray(terminated, dtype=bool), np.asarray(truncated, dtype=bool)
        n = len(obs)
        if prev_action is None:
            prev_action = shift_actions(action, t)
        if episode is None:
            episode = np.cumsum(t == 0) - (1 if n and t[0] == 0 else 0)
        batch = cls(
            obs=MatrixColumns("obs", obs, names),
            next_obs=MatrixColumns("next_obs", next_obs, names),
            action=_actions("action", action),
            prev_action=_actions("prev_action", prev_action),
            t=t,
            terminated=terminated,
            truncated=truncated,
            reward=reward,
            info=_columns("info", infos),
            signals=_columns("signals", signals),
            episode=episode,
            labels=labels or {},
        )
        columns = (next_obs, action, prev_action, t, terminated, truncated, reward, episode)
        if any(len(column) != n for column in columns):
            lengths = ", ".join(
                f"{name} {len(column)}" for name, column in zip(_COLUMNS, columns, strict=True)
            )
            raise DesignError(f"A batch needs equally long columns: obs has {n} rows, but {lengths}.")
        return batch

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        policies = ", ".join(dict.fromkeys(self.labels.values()))
        return (
            f"Transitions({len(self)} steps, {len(self.starts)} episodes"
            f"{f' by {policies}' if policies else ''}, obs: {', '.join(self.obs.names) or 'unnamed'})"
        )

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the action's components; () for a scalar action."""
        return self.action.names if isinstance(self.action, Columns) else ()

    @cached_property
    def namespace(self) -> Namespace:
        """The names an expression may use over this batch, as float64 (n,) arrays."""
        return Namespace(self)

    @cached_property
    def starts(self) -> Array:
        """Row at which each episode begins, int64 (episodes,); for `np.add.reduceat`."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(np.r_[True, self.episode[1:] != self.episode[:-1]])

    @cached_property
    def lengths(self) -> Array:
        """Steps of each episode, int64 (episodes,)."""
        return np.diff(self.starts, append=len(self))

    @property
    def ends(self) -> Array:
        """Last row of each episode, int64 (episodes,)."""
        return np.asarray(self.starts + self.lengths - 1)

    @cached_property
    def episode_labels(self) -> tuple[str, ...]:
        """Policy label of each episode, in the order of `starts`; "" where none was given."""
        return tuple(self.labels.get(number, "") for number in self.episode[self.starts].tolist())

    @cached_property
    def policy(self) -> Array:
        """Policy label of each row, object (n,); "" where none was given."""
        return np.repeat(np.array(self.episode_labels, dtype=object), self.lengths)

    def slice(self, rows: slice | Array) -> Transitions:
        """Returns some rows: a slice (shares memory), an index array or a mask."""

        def cut(value: Any) -> Any:
            return value.take(rows) if isinstance(value, Columns) else value[rows]

        episode = self.episode[rows]
        kept = set(np.unique(episode).tolist()) if self.labels else set()
        return Transitions(
            obs=cut(self.obs), next_obs=cut(self.next_obs), action=cut(self.action),
            prev_action=cut(self.prev_action), t=self.t[rows], terminated=self.terminated[rows],
            truncated=self.truncated[rows], reward=self.reward[rows], info=cut(self.info),
            signals=cut(self.signals), episode=episode,
            labels={number: label for number, label in self.labels.items() if number in kept},
        )  # fmt: skip

    def episodes(self) -> list[Transitions]:
        """Returns each episode as a batch of its own (views)."""
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.slice(slice(start, end + 1)) for start, end in spans]

    def with_reward(self, reward: Array) -> Transitions:
        """Returns the same transitions with another reward column, float64 (n,)."""
        # At every step of training, where `dataclasses.replace` would take a tenth of the design's time. What
        # was computed from the other columns stays valid; the namespace holds the old reward.
        other = object.__new__(Transitions)
        other.__dict__.update(self.__dict__, reward=reward)
        for name in ("namespace", "read_only"):
            other.__dict__.pop(name, None)
        return other

    @cached_property
    def read_only(self) -> Transitions:
        """The same transitions in arrays that cannot be written: what is handed to a Python term."""
        other = object.__new__(Transitions)
        other.__dict__.update(
            {
                name: _read_only(value)
                for name, value in self.__dict__.items()
                if name not in ("namespace", "policy")
            }
        )
        return other

    @staticmethod
    def concat(batches: Iterable[Transitions]) -> Transitions:
        """Puts batches of the same columns one after the other; episodes are numbered anew, in order.

        An info key that one batch never saw is NaN there.

        Raises:
            DesignError: no batches, or their columns differ.
        """
        return table.concat(list(batches))

    def meta(self) -> dict[str, Any]:
        """Returns what `to_columns` does not say: names and row shapes, as JSON-able values."""
        return table.describe(self)

    def to_columns(self) -> dict[str, Array]:
        """Returns flat columns in their stored dtypes, lossless together with `meta()`; see `table`."""
        return table.columns_of(self)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Array], meta: Mapping[str, Any] | None = None) -> Transitions:
        """Rebuilds a batch from `to_columns()`; without `meta`, names follow the columns' order.

        Raises:
            DesignError: a needed column is missing.
        """
        return table.from_columns(columns, meta)


def shift_actions(action: Array, t: Array) -> Array:
    """Returns the action one row earlier, zeros where an episode starts (`t` is 0) or no row precedes."""
    previous = np.zeros_like(action)
    previous[1:] = action[:-1]
    previous[t == 0] = 0
    return previous


def _read_only(value: Any) -> Any:
    if isinstance(value, Columns):
        return value.read_only()
    return read_only(value) if isinstance(value, np.ndarray) else value


def _actions(what: str, action: Array) -> Array | Columns:
    if action.ndim == 1:
        return action
    width = math.prod(action.shape[1:])
    return MatrixColumns(what, action, _action_names(width))


@lru_cache(maxsize=64)
def _action_names(width: int) -> tuple[str, ...]:
    return tuple(f"a{i}" for i in range(width))


def _columns(what: str, values: Sequence[Mapping[str, Any]] | Mapping[str, Array] | None) -> Columns:
    if values is None or isinstance(values, Mapping):
        return MappingColumns(what, values or {})
    return InfoColumns(what, values)
