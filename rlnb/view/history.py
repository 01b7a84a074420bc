"""A run's metric rows as columns that grow, with one history after every rewind.

The rows come from `rlnb.run.metrics`; each kind of row ("episode", "train") has its own table, so that
the lines of one chart share their steps. Nothing here reads files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_NOT_VALUES = frozenset({"step", "time", "kind", "attempt"})


@dataclass(frozen=True)
class Mark:
    """Something that happened at one step.

    Attributes:
        step: environment steps.
        label: what to write beside it, e.g. "attempt 2".
    """

    step: int
    label: str


class Column:
    """Float64 values that grow at the end; `view()` stays valid while more are appended."""

    def __init__(self, length: int = 0) -> None:
        self._buffer: Floats = np.full(max(64, 2 * length), np.nan)
        self._length = length

    def __len__(self) -> int:
        return self._length

    def append(self, value: float) -> None:
        if self._length == len(self._buffer):
            # A new buffer, not a resize: arrays that were handed out keep the old one alive.
            self._buffer = np.concatenate([self._buffer, np.full(len(self._buffer), np.nan)])
        self._buffer[self._length] = value
        self._length += 1

    def keep(self, mask: npt.NDArray[np.bool_]) -> None:
        """Keeps the values where `mask` is true."""
        kept = self.view()[mask]
        self._buffer, self._length = np.concatenate([kept, np.full(64, np.nan)]), len(kept)

    def view(self) -> Floats:
        """Returns the values so far, shape (n,), without a copy."""
        return self._buffer[: self._length]


class Table:
    """The rows of one kind: their steps, and one column for each key; missing values are NaN."""

    def __init__(self) -> None:
        self.version = 0
        self._step = Column()
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self._step)

    @property
    def keys(self) -> list[str]:
        """Column names in order of first appearance."""
        return list(self._columns)

    @property
    def step(self) -> Floats:
        return self._step.view()

    def column(self, key: str) -> Floats:
        """Returns the values of `key`, shape (n,); all NaN when no row had it."""
        column = self._columns.get(key)
        return column.view() if column is not None else np.full(len(self), np.nan)

    def append(self, step: float, row: Mapping[str, object]) -> None:
        before = len(self._step)
        self._step.append(step)
        for key, value in row.items():
            if key in _NOT_VALUES or isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            if key not in self._columns:
                self._columns[key] = Column(before)
            self._columns[key].append(float(value))
        for column in self._columns.values():
            if len(column) == before:
                column.append(np.nan)
        self.version += 1

    def rewind(self, step: float) -> None:
        """Forgets the rows after `step`."""
        mask = self.step <= step
        if not mask.all():
            self._step.keep(mask)
            for column in self._columns.values():
                column.keep(mask)
            self.version += 1


class History:
    """Everything the charts of one run show.

    Attributes:
        attempts: where each attempt after the first took up the run.
        checkpoints: steps of the checkpoints of the one history.
    """

    def __init__(self, rows: Iterable[Mapping[str, object]] = ()) -> None:
        self.attempts: list[Mark] = []
        self.checkpoints: list[int] = []
        self._tables: dict[str, Table] = {"episode": Table(), "train": Table()}
        self.extend(rows)

    def table(self, kind: str) -> Table:
        """Returns the table of one kind of rows; "episode" and "train" always exist."""
        return self._tables[kind]

    @property
    def version(self) -> int:
        """Changes whenever the content does."""
        tables = sum(table.version for table in self._tables.values())
        return tables + len(self.checkpoints) + len(self.attempts)

    @property
    def last_step(self) -> int:
        """The newest step of any row, 0 when there is none."""
        ends = [table.step[-1] for table in self._tables.values() if len(table)]
        return int(max([*ends, *self.checkpoints[-1:], 0]))

    def extend(self, rows: Iterable[Mapping[str, object]]) -> bool:
        """Takes in new rows; rows without a step or of an unknown kind are passed over.

        Returns:
            Whether there was anything to take in.
        """
        changed = False
        for row in rows:
            step, kind = row.get("step"), row.get("kind")
            if isinstance(step, bool) or not isinstance(step, (int, float)):
                continue
            if kind == "rewind":
                self._rewind(int(step), row.get("attempt"))
            elif kind == "checkpoint":
                self.checkpoints.append(int(step))
            elif kind in self._tables:
                self._tables[str(kind)].append(float(step), row)
            else:
                continue
            changed = True
        return changed

    def _rewind(self, step: int, attempt: object) -> None:
        for table in self._tables.values():
            table.rewind(step)
        self.checkpoints = [at for at in self.checkpoints if at <= step]
        # An earlier attempt that had got further than `step` is no longer part of the one history.
        self.attempts = [mark for mark in self.attempts if mark.step < step]
        if attempt != 1:  # the first attempt begins the run, it does not take it up
            self.attempts.append(Mark(step, f"attempt {attempt}" if attempt is not None else "resumed"))
