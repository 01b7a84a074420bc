"""Named columns of a batch: `batch.obs["vy"]` whatever the numbers are stored in.

A column is handed out as a read-only (n,) array: floats as float64 (so that arithmetic on a stored
float32 observation is done in float64, at preview and at training time alike), integers as int64,
booleans as they are. Nothing is copied before a column is asked for, because at step time most are not.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlnb.errors import DesignError, did_you_mean

Array = NDArray[Any]

#: keys that vector environments add to `info` for their own use
_PLUMBING = {"terminal_observation", "final_observation", "final_obs", "final_info", "TimeLimit.truncated"}


_WIDE = {"f": np.float64, "i": np.int64, "u": np.int64}

#: numbers up to which a whole matrix is turned into columns at once, as one step of a few environments is
_SMALL = 16_384


class UnknownName(DesignError, KeyError):
    """A batch has no column of that name; also a KeyError, as `Mapping` asks for."""

    def __str__(self) -> str:
        return str(self.args[0])


def freeze(values: Array) -> Array:
    """Returns `values` as a contiguous read-only array of float64, int64, bool or its own dtype; the
    caller's own array stays writeable."""
    return read_only(np.ascontiguousarray(values, dtype=_WIDE.get(values.dtype.kind)))


def read_only(values: Array) -> Array:
    """Returns a view that cannot be written; the caller's own array stays writeable."""
    view = values.view()
    view.flags.writeable = False
    return view


class Columns(Mapping[str, Array]):
    """Named (n,) columns over some storage.

    Attributes:
        names: the columns' names, in order.
        what: what the columns are, for messages, as in `obs["vz"]`.
    """

    what: str

    def __init__(self, what: str) -> None:
        self.what = what
        self._cache: dict[str, Array] = {}

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """The numbers as they are stored, (n, ...)."""

    @abstractmethod
    def take(self, rows: slice | Array) -> Columns:
        """Returns the columns of some rows (a slice shares memory)."""

    def read_only(self) -> Columns:
        """Returns the same columns, sharing what was read already, with stored arrays that cannot be written."""
        return self

    @abstractmethod
    def _fetch(self, name: str) -> Array | None:
        """Returns a column as it is handed out (`freeze`), or None if there is none of that name."""

    def __getitem__(self, name: str) -> Array:
        column = self._cache.get(name)
        if column is None:
            found = self._fetch(name)
            if found is None:
                known = ", ".join(self.names) or "no names"
                raise UnknownName(
                    f'{self.what}["{name}"] is not in this batch.{did_you_mean(name, self.names)} '
                    f"It has: {known}."
                )
            column = self._cache[name] = found
        return column

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        matrix = self.matrix
        return np.array(matrix, dtype=dtype or _WIDE.get(matrix.dtype.kind), copy=True)

    def __repr__(self) -> str:
        return f"{self.what}[{', '.join(self.names)}]"


class MatrixColumns(Columns):
    """Columns of one matrix (n, ...) in its own dtype; names run over the flattened row, or are none."""

    def __init__(self, what: str, matrix: Array, names: Sequence[str] = ()) -> None:
        super().__init__(what)
        self._matrix = matrix
        self._names = tuple(names)
        width = math.prod(matrix.shape[1:])
        if self._names and len(self._names) != width:
            raise DesignError(
                f"{what} has {width} component(s) a row, but {len(self._names)} names were given "
                f"({', '.join(self._names[:6])}…); give one name for each component."
            )
        self._flat = matrix.reshape(len(matrix), width)
        self._turned: Array | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def matrix(self) -> Array:
        return self._matrix

    def read_only(self) -> MatrixColumns:
        other = copy(self)
        other._matrix = read_only(self._matrix)
        return other

    def take(self, rows: slice | Array) -> MatrixColumns:
        return MatrixColumns(self.what, self._matrix[rows], self._names)

    def _fetch(self, name: str) -> Array | None:
        if name not in self._names:
            return None
        place = self._names.index(name)
        if self._flat.size > _SMALL:
            return freeze(self._flat[:, place])
        if self._turned is None:
            self._turned = np.array(self._flat.T, dtype=_WIDE.get(self._flat.dtype.kind), order="C")
            self._turned.flags.writeable = False
        column: Array = self._turned[place]
        return column


class MappingColumns(Columns):
    """Columns that were stored one by one, each with its own dtype."""

    def __init__(self, what: str, columns: Mapping[str, Array]) -> None:
        super().__init__(what)
        self._columns = dict(columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._columns)

    @property
    def matrix(self) -> Array:
        if not self._columns:
            raise DesignError(f"This batch has no {self.what} columns.")
        return np.stack([np.asarray(values) for values in self._columns.values()], axis=1)

    def raw(self, name: str) -> Array:
        """Returns a column in the dtype it is stored in."""
        return self._columns[name]

    def read_only(self) -> MappingColumns:
        other = copy(self)
        other._columns = {name: read_only(np.asarray(values)) for name, values in self._columns.items()}
        return other

    def take(self, rows: slice | Array) -> MappingColumns:
        return MappingColumns(self.what, {name: values[rows] for name, values in self._columns.items()})

    def _fetch(self, name: str) -> Array | None:
        return freeze(self._columns[name]) if name in self._columns else None


class InfoColumns(Columns):
    """Columns of a list of `info` dicts, one a row, read when asked for.

    A number, a boolean or an array of one number counts; a key that a row lacks is NaN there. A key
    that no row has is NaN everywhere: many environments add keys only at an episode's end, so at step
    time its absence says nothing. Misspelt keys are found against a recorded batch, where they are errors.
    """

    def __init__(self, what: str, infos: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(what)
        self._infos = infos

    @property
    def names(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for info in self._infos:
            for key, value in info.items():
                if key not in _PLUMBING and not key.startswith("rlnb.") and _number(value) is not None:
                    found[key] = None
        return tuple(found)

    @property
    def matrix(self) -> Array:
        return self.stored().matrix

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def take(self, rows: slice | Array) -> Columns:
        chosen = (
            range(len(self._infos))[rows] if isinstance(rows, slice) else np.arange(len(self._infos))[rows]
        )
        return InfoColumns(self.what, [self._infos[int(row)] for row in chosen])

    def stored(self) -> MappingColumns:
        """Returns all numeric columns, as a recording keeps them."""
        return MappingColumns(self.what, {name: self[name] for name in self.names})

    def _fetch(self, name: str) -> Array:
        column = np.full(len(self._infos), np.nan)
        for row, info in enumerate(self._infos):
            value = info.get(name)
            if value is None:
                continue
            number = _number(value)
            if number is None:
                raise DesignError(
                    f'{self.what}["{name}"] is a {type(value).__name__} ({str(value)[:40]!r}); '
                    "only numbers can be used in a design."
                )
            column[row] = number
        return freeze(column)


def _number(value: object) -> float | None:
    """Returns a scalar, boolean or one-element array as a float; None for anything else."""
    if isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        return float(value)
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf":
        return float(value.reshape(())[()])
    return None
