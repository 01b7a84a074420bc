"""Operations of a state design. Each names components, and says how values and bounds change.

All of them are elementwise in float64, so that a batch may be cut anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.expressions.expression import Expression
from rlnb.design.expressions.namespace import subscript
from rlnb.design.memory import Memory
from rlnb.design.operations.components import Components
from rlnb.design.operations.images import Grayscale, Resize, ToUnit
from rlnb.design.operations.operation import Apply, Names, Operation, changing, read_names, read_number
from rlnb.design.operations.stack import Stack
from rlnb.design.operations.standardize import RunningZScore, ZScore
from rlnb.design.term import check_name, compile_for
from rlnb.errors import DesignError


@dataclass(frozen=True)
class Select(Operation):
    """Keeps the named components, in that order."""

    kind = "select"
    names: Sequence[str]

    def __post_init__(self) -> None:
        names = read_names(self.names, self.kind) or ()
        if not names:
            raise DesignError("The state operation select keeps nothing; name at least one component.")
        object.__setattr__(self, "names", names)

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        places = before.indices(self.names, self.kind)
        return before.pick(places), lambda x, _: x[:, places]


@dataclass(frozen=True)
class Derive(Operation):
    """Appends a component computed from the others.

    Attributes:
        expression: over the components at this point.
        low: the value is clipped to [low, high] where given; otherwise its bounds follow from those of
            what it is computed from.
    """

    kind = "derive"
    name: str
    expression: str
    low: float | None = None
    high: float | None = None
    _compiled: Expression | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "_compiled", compile_for(self.name, self.expression))
        for end in ("low", "high"):
            if getattr(self, end) is not None:
                object.__setattr__(self, end, read_number(getattr(self, end), f"{end} of {self.name!r}"))
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise DesignError(
                f"The bounds of {self.name!r} are [{self.low}, {self.high}]; low must not exceed high."
            )

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        expression = self._compiled
        assert expression is not None
        spelled = {name: name for name in before.names} | {
            subscript("obs", name): name for name in before.names
        }
        expression.check(spelled)
        used = {name: before.names.index(spelled[name]) for name in expression.names}
        low, high = expression.bounds(
            {name: (float(before.low[place]), float(before.high[place])) for name, place in used.items()}
        )
        clip = (-math.inf if self.low is None else self.low, math.inf if self.high is None else self.high)
        bounds = np.clip([low, high], *clip)
        after = before.append([self.name], bounds[:1], bounds[1:], f"derive of {self.name!r}")

        def apply(x: Array, _: Memory) -> Array:
            columns = {name: np.ascontiguousarray(x[:, place]) for name, place in used.items()}
            value = np.clip(expression.evaluate(columns, rows=len(x)), *clip)
            return np.concatenate([x, value[:, None]], axis=1)

        return after, apply


@dataclass(frozen=True)
class Clip(Operation):
    """Clips to [low, high]; `names` None means all components."""

    kind = "clip"
    names: Names = None
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", read_names(self.names, self.kind))
        for end in ("low", "high"):
            object.__setattr__(self, end, read_number(getattr(self, end), f"{end} of clip"))
        if not self.low <= self.high:
            raise DesignError(
                f"The clip of the state is [{self.low}, {self.high}]; low must not exceed high."
            )

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        places = before.indices(self.names, self.kind)
        low, high = (np.clip(end[places], self.low, self.high) for end in (before.low, before.high))
        return before.change(places, low, high), changing(
            places, lambda part, _: np.clip(part, self.low, self.high)
        )


@dataclass(frozen=True)
class Delta(Operation):
    """Appends `d_<name>`, the change since the step before, 0 where an episode starts; None means all."""

    kind = "delta"
    names: Names = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", read_names(self.names, self.kind))

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        places = before.indices(self.names, self.kind)
        span = before.high[places] - before.low[places]
        names = [f"d_{before.names[place]}" for place in places]

        def apply(x: Array, memory: Memory) -> Array:
            part = x[:, places]
            return np.concatenate([x, part - memory.previous(key, part)], axis=1)

        return before.append(names, -span, span, self.kind), apply


@dataclass(frozen=True)
class Scale(Operation):
    """x * factor + offset; `names` None means all components."""

    kind = "scale"
    names: Names = None
    factor: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", read_names(self.names, self.kind))
        for what in ("factor", "offset"):
            object.__setattr__(self, what, read_number(getattr(self, what), f"{what} of scale"))
        if self.factor == 0.0 or not math.isfinite(self.factor) or not math.isfinite(self.offset):
            raise DesignError(f"A scale needs a finite factor other than 0 and a finite offset: {self!r}.")

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        places = before.indices(self.names, self.kind)
        ends = [end[places] * self.factor + self.offset for end in (before.low, before.high)]
        return before.change(places, np.minimum(*ends), np.maximum(*ends)), changing(
            places, lambda part, _: part * self.factor + self.offset
        )


#: operations by their name in design files
OPERATIONS: dict[str, type[Operation]] = {
    operation.kind: operation
    for operation in (
        Select, Derive, ZScore, RunningZScore, Clip, Delta, Scale, Stack, ToUnit, Resize, Grayscale,
    )
}  # fmt: skip
