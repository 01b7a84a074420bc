"""z-scores: with statistics that are stored in the design, or that grow while training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.memory import Memory
from rlnb.design.operations.components import Components
from rlnb.design.operations.operation import (
    Apply,
    Names,
    Operation,
    as_list,
    changing,
    read_names,
    read_number,
)
from rlnb.errors import DesignError


@dataclass(frozen=True)
class ZScore(Operation):
    """(x - mean) / std with stored statistics; `names` None means all components."""

    kind = "zscore"
    names: Names = None
    mean: Sequence[float] = ()
    std: Sequence[float] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", read_names(self.names, self.kind))
        for what in ("mean", "std"):
            values = tuple(read_number(value, f"{what} of zscore") for value in as_list(getattr(self, what)))
            object.__setattr__(self, what, values)
        if len(self.mean) != len(self.std) or (self.names is not None and len(self.mean) != len(self.names)):
            raise DesignError(
                f"A zscore needs one mean and one std for each component; it has {len(self.mean)} means, "
                f"{len(self.std)} stds and {'all' if self.names is None else len(self.names)} components."
            )
        if not all(0.0 < value < math.inf for value in self.std) or not all(map(math.isfinite, self.mean)):
            raise DesignError(f"The std of a zscore must be above 0 and finite, the mean finite: {self!r}.")

    @classmethod
    def of(cls, values: Array, names: Sequence[str]) -> ZScore:
        """Returns the z-score with the statistics of recorded values (n, k); a constant gets std 1."""
        table = np.asarray(values, dtype=np.float64)
        spread = table.std(axis=0)
        stds = np.where(spread > 0.0, spread, 1.0)
        return cls(tuple(names), tuple(map(float, table.mean(axis=0))), tuple(map(float, stds)))

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        places = before.indices(self.names, self.kind)
        if len(places) != len(self.mean):
            raise DesignError(
                f"A zscore of all components has {len(self.mean)} means, but there are {len(places)} components."
            )
        mean, std = np.array(self.mean), np.array(self.std)
        after = before.change(places, (before.low[places] - mean) / std, (before.high[places] - mean) / std)
        return after, changing(places, lambda part, _: (part - mean) / std)


@dataclass(frozen=True)
class RunningZScore(Operation):
    """z-score with statistics that grow while training, clipped; `names` None means all components.

    Attributes:
        clip: values stay within [-clip, clip].
        epsilon: added to the variance.
    """

    kind = "running_zscore"
    names: Names = None
    clip: float = 10.0
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", read_names(self.names, self.kind))
        for what in ("clip", "epsilon"):
            value = read_number(getattr(self, what), f"{what} of running_zscore")
            if not 0.0 < value < math.inf:
                raise DesignError(
                    f"The {what} of running_zscore is {value!r}; it must be above 0 and finite."
                )
            object.__setattr__(self, what, value)

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        places = before.indices(self.names, self.kind)

        def scale(part: Array, memory: Memory) -> Array:
            found = memory.statistics(key, part)
            return np.clip(
                (part - found.mean) / np.sqrt(found.variance + self.epsilon), -self.clip, self.clip
            )

        return before.change(places, np.array(-self.clip), np.array(self.clip)), changing(places, scale)
