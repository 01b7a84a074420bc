"""What state operations remember: the rows before, and running statistics.

An operation never stores anything itself; it asks a `Memory`. At training time that is a `StateContext`,
which belongs to a vector environment and is saved with a checkpoint; for a recorded batch it is a
`Recorded`, which finds the rows before in the batch. So both run the very same operations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array
from rlnb.errors import DesignError


@dataclass
class RunningStatistics:
    """Mean and variance of k components over all rows so far.

    Merging of batches after Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing
    sample variances", 1979, with the small initial count of SB3's RunningMeanStd.
    """

    mean: Array
    variance: Array
    count: float = 1e-4

    @classmethod
    def fresh(cls, width: int) -> RunningStatistics:
        """Returns statistics that have seen nothing."""
        return cls(np.zeros(width), np.ones(width))

    def update(self, values: Array) -> None:
        """Takes in rows, float64 (n, k)."""
        rows = len(values)
        if not rows:
            return
        mean = np.add.reduce(values, axis=0) / rows
        spread = values - mean
        variance = np.add.reduce(spread * spread, axis=0) / rows
        total = self.count + rows
        delta = mean - self.mean
        moment = self.variance * self.count + variance * rows + delta * delta * (self.count * rows / total)
        self.mean = self.mean + delta * (rows / total)
        self.variance = moment / total
        self.count = total


class Memory(ABC):
    """What an operation may ask; `key` is its place in the state design."""

    @abstractmethod
    def history(self, key: int, values: Array, count: int) -> list[Array]:
        """Returns the rows of the last `count` >= 2 steps, (n, ...) each, the oldest first and `values`
        last; an episode's first row stands for those before it."""

    def previous(self, key: int, values: Array) -> Array:
        """Returns the rows one step earlier, (n, ...); `values` themselves where an episode starts."""
        return self.history(key, values, 2)[0]

    @abstractmethod
    def statistics(self, key: int, values: Array) -> RunningStatistics:
        """Returns the statistics to scale `values` with, which may first take them in."""


class Live(Memory):
    """The memory of n_envs environments that step together.

    Attributes:
        learning: False freezes the running statistics (evaluation).
    """

    def __init__(self, n_envs: int) -> None:
        self.n_envs = n_envs
        self.learning = True
        self._past: dict[int, Array] = {}  # (n_envs, count - 1, ...), the oldest first
        self._known = np.zeros(n_envs, dtype=bool)
        self._statistics: dict[int, RunningStatistics] = {}
        self._envs = np.arange(n_envs)
        self._fresh = ~self._known
        self._peek = False

    def begin(self, *, envs: Array | None, starts: Array | None, peek: bool) -> None:
        """Says which environments the next rows come from, which of them just began an episode, and
        whether the rows are only looked at."""
        self._envs = np.arange(self.n_envs) if envs is None else np.asarray(envs, dtype=np.int64)
        self._fresh = ~self._known[self._envs]
        if starts is not None:
            self._fresh = self._fresh | np.asarray(starts, dtype=bool)
        self._peek = peek

    def end(self) -> None:
        """Closes what `begin` opened."""
        if not self._peek:
            self._known[self._envs] = True

    def history(self, key: int, values: Array, count: int) -> list[Array]:
        past = self._past.get(key)
        if past is None:
            past = np.zeros((self.n_envs, count - 1, *values.shape[1:]), values.dtype)
            self._past[key] = past
        before = past[self._envs]
        before[self._fresh] = values[self._fresh, None]
        rows = [*before.swapaxes(0, 1), values]
        if not self._peek:
            past[self._envs] = np.stack(rows[1:], axis=1)
        return rows

    def statistics(self, key: int, values: Array) -> RunningStatistics:
        found = self._statistics.setdefault(key, RunningStatistics.fresh(values.shape[1]))
        if self.learning and not self._peek:
            found.update(values)
        return found

    def known_statistics(self) -> dict[int, RunningStatistics]:
        """Returns the statistics so far, by operation."""
        return self._statistics

    def state_dict(self) -> dict[str, Array]:
        """Returns everything remembered as plain arrays, by names such as `2.mean`."""
        state: dict[str, Array] = {"known": self._known.copy()}
        state |= {f"{key}.past": rows.copy() for key, rows in self._past.items()}
        for key, found in self._statistics.items():
            state[f"{key}.mean"] = found.mean.copy()
            state[f"{key}.variance"] = found.variance.copy()
            state[f"{key}.count"] = np.array(found.count)
        return state

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Puts back what `state_dict` returned.

        Raises:
            DesignError: the state is of another number of environments.
        """
        known = np.asarray(state["known"], dtype=bool)
        if known.shape != (self.n_envs,):
            raise DesignError(
                f"The saved state of the observations is of {len(known)} environments, but there are "
                f"{self.n_envs}; resume with n_envs={len(known)}."
            )
        self._known = known.copy()
        places = {
            name.rpartition(".")[::2]: np.array(values) for name, values in state.items() if "." in name
        }
        self._past = {int(key): values for (key, what), values in places.items() if what == "past"}
        # as earlier versions saved it: one row, without an axis for it
        self._past |= {int(key): values[:, None] for (key, what), values in places.items() if what == "rows"}
        self._statistics = {
            int(key): RunningStatistics(values, places[key, "variance"], float(places[key, "count"]))
            for (key, what), values in places.items()
            if what == "mean"
        }


class Recorded(Memory):
    """The memory of a recorded batch: the row before stands in the batch.

    Args:
        starts: bool (n,), rows that begin an episode (or the batch).
        known: statistics to scale with, by operation; without them those of the batch itself.
    """

    def __init__(self, starts: Array, known: Mapping[int, RunningStatistics]) -> None:
        self._statistics = dict(known)
        self._row = np.arange(len(starts))
        self._first = np.maximum.accumulate(np.where(starts, self._row, 0))
        self._now: dict[int, Array] = {}

    def history(self, key: int, values: Array, count: int) -> list[Array]:
        self._now[key] = values
        return self.recall(key, count)

    def recall(self, key: int, count: int) -> list[Array]:
        """Returns the history of rows that were handed over before; `count` >= 1."""
        now = self._now[key]
        older = [now[np.maximum(self._row - ago, self._first)] for ago in range(count - 1, 0, -1)]
        return [*older, now]

    def statistics(self, key: int, values: Array) -> RunningStatistics:
        if key not in self._statistics:
            self._statistics[key] = RunningStatistics.fresh(values.shape[1])
            self._statistics[key].update(values)
        return self._statistics[key]

    def following(self) -> Memory:
        """Returns the memory for the observations s' of the same rows: the row before is s."""
        return _Following(self)


class _Following(Memory):
    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def history(self, key: int, values: Array, count: int) -> list[Array]:
        return [*self._recorded.recall(key, count - 1), values]

    def statistics(self, key: int, values: Array) -> RunningStatistics:
        return self._recorded.statistics(key, values)
