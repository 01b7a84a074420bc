"""Named components with their bounds: what a state operation takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array
from rlnb.errors import DesignError, did_you_mean


@dataclass(frozen=True, eq=False)
class Components:
    """d named numbers.

    Attributes:
        names: (d,) different names.
        low: float64 (d,), bounds that no value leaves; `high` likewise.
    """

    names: tuple[str, ...]
    low: Array
    high: Array

    def indices(self, names: Sequence[str] | None, owner: str) -> Array:
        """Returns the place of each name, int64; None means all.

        Raises:
            DesignError: a name is unknown at this point of the state design.
        """
        if names is None:
            return np.arange(len(self.names))
        for name in names:
            if name not in self.names:
                raise DesignError(
                    f"The state operation {owner} uses {name!r}, which is not there at that point."
                    f"{did_you_mean(name, self.names)} There are: {', '.join(self.names) or 'none'}."
                )
        return np.array([self.names.index(name) for name in names], dtype=np.int64)

    def pick(self, indices: Array) -> Components:
        """Returns some components in the given order."""
        return Components(tuple(self.names[i] for i in indices), self.low[indices], self.high[indices])

    def append(self, names: Sequence[str], low: Array, high: Array, owner: str) -> Components:
        """Returns these components with new ones behind them.

        Raises:
            DesignError: a name is taken.
        """
        for name in names:
            if name in self.names:
                raise DesignError(
                    f"The state operation {owner} adds {name!r}, but that name is taken; choose another."
                )
        return Components((*self.names, *names), np.append(self.low, low), np.append(self.high, high))

    def change(self, indices: Array, low: Array, high: Array) -> Components:
        """Returns these components with other bounds for some."""
        lows, highs = self.low.copy(), self.high.copy()
        lows[indices], highs[indices] = low, high
        return Components(self.names, lows, highs)
