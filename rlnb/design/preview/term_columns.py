"""The terms' columns over one batch, kept by what is measured, so that an edit re-measures one term only."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.measure import as_paid, clipped, measure
from rlnb.design.shaping import Shaping
from rlnb.design.term import Term
from rlnb.design.transitions import Transitions

#: bytes of columns that no term uses now, kept for undo and for a term that is switched on again
SPARE = 256 * 2**20

_Clip = tuple[float, float] | None


@dataclass(eq=False)
class Column:
    """One term's values within its clip, before its weight.

    Attributes:
        values: float64 (n,).
        starts: row at which each episode begins, int64 (episodes,).
    """

    values: Array
    starts: Array

    @cached_property
    def sums(self) -> Array:
        """Sum over each episode, float64 (episodes,); made once, as weights do not change it."""
        return episode_sums(self.values, self.starts)


class TermColumns:
    """Measures the terms of changing rewards over one batch, each thing once.

    A column is found by its expression, its potential and discount, or its Python function: renaming,
    copying, reordering, weighting and switching off and on measure nothing. Of the columns that are out
    of use the latest are kept (`SPARE`).
    """

    def __init__(self, batch: Transitions) -> None:
        self.paid = as_paid(batch)
        self._kept: dict[Hashable, _Measured] = {}  # the least recently used first

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, parts: Sequence[Term | Shaping]) -> dict[str, Column]:
        """Returns each part's column by name.

        Raises:
            DesignError: a name is unknown, with its position, or a Python term fails; the columns of other
                parts stay.
        """
        found = {}
        used: dict[Hashable, set[_Clip]] = {}
        try:
            for part in parts:
                key = _key(part)
                kept = self._kept.pop(key, None) or self._measure(part)
                self._kept[key] = kept
                used.setdefault(key, set()).add(part.clip)
                if part.clip not in kept.clipped:
                    kept.clipped[part.clip] = Column(clipped(part, kept.values), self.paid.starts)
                found[part.name] = kept.clipped[part.clip]
        finally:  # while one term is wrong the others may be edited for long
            self._forget(used)
        return found

    def _measure(self, part: Term | Shaping) -> _Measured:
        part.check(self.paid.namespace)
        values = measure([part], self.paid)[part.name]
        return _Measured(values, part.function if isinstance(part, Term) else None)

    def _forget(self, used: dict[Hashable, set[_Clip]]) -> None:
        for key, kept in self._kept.items():
            # a clip that is dragged would leave a column behind at each of its places
            kept.clipped = {
                clip: column for clip, column in kept.clipped.items() if clip in used.get(key, ())
            }
        spare = [key for key in self._kept if key not in used]
        room = SPARE // max(8 * len(self.paid), 2**16)
        for key in spare[: max(len(spare) - room, 0)]:
            del self._kept[key]


@dataclass(eq=False)
class _Measured:
    values: Array
    function: object  # held so that its id, by which it is found, stays its own
    clipped: dict[_Clip, Column] = field(default_factory=dict)


def _key(part: Term | Shaping) -> Hashable:
    if isinstance(part, Shaping):
        return ("potential", part.potential, part.gamma)
    if part.function is not None:
        return ("function", id(part.function))
    return ("expression", part.expression, part.python)


def episode_sums(values: Array, starts: Array) -> Array:
    """Returns the sum over each episode, float64 (episodes,), of a (n,) column."""
    if not len(starts):
        return np.zeros(0)
    with np.errstate(all="ignore"):
        return np.asarray(np.add.reduceat(values, starts, dtype=np.float64))
