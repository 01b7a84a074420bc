"""Operations of a state design. Each names components, and says how values and bounds change.

All of them are elementwise in float64, so that a batch may be cut anywhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.components import Components
from rlnb.design.expression import Expression
from rlnb.design.memory import Memory
from rlnb.design.namespace import subscript
from rlnb.design.term import check_name, compile_for
from rlnb.errors import DesignError

#: float64 (n, d) and a memory → float64 (n, d')
Apply = Callable[[Array, Memory], Array]

Names = Sequence[str] | None


class Operation(ABC):
    """One row of a state design.

    Attributes:
        kind: its name in design files.
    """

    kind: ClassVar[str]

    @abstractmethod
    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        """Fits the operation to the components in front of it.

        Args:
            key: its place in the design, under which it asks the memory.

        Raises:
            DesignError: a component is missing, or a name is taken.
        """


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
class ZScore(Operation):
    """(x - mean) / std with stored statistics; `names` None means all components."""

    kind = "zscore"
    names: Names = None
    mean: Sequence[float] = ()
    std: Sequence[float] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", read_names(self.names, self.kind))
        for what in ("mean", "std"):
            values = tuple(read_number(value, f"{what} of zscore") for value in _listed(getattr(self, what)))
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
        return after, _changing(places, lambda part, _: (part - mean) / std)


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

        return before.change(places, np.array(-self.clip), np.array(self.clip)), _changing(places, scale)


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
        return before.change(places, low, high), _changing(
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
        return before.change(places, np.minimum(*ends), np.maximum(*ends)), _changing(
            places, lambda part, _: part * self.factor + self.offset
        )


#: operations by their name in design files
OPERATIONS: dict[str, type[Operation]] = {
    operation.kind: operation for operation in (Select, Derive, ZScore, RunningZScore, Clip, Delta, Scale)
}


def read_names(names: object, owner: str) -> tuple[str, ...] | None:
    """Returns names as a tuple; one name may stand for itself, None for all.

    Raises:
        DesignError: they are not names, or one stands there twice.
    """
    if names is None:
        return None
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise DesignError(
            f"The names of the state operation {owner} are {names!r:.60}; give a list of names."
        )
    twice = next((name for name in listed if listed.count(name) > 1), None)
    if twice is not None:
        raise DesignError(f"The state operation {owner} names {twice!r} twice; once is enough.")
    return tuple(listed)


def read_number(value: object, what: str) -> float:
    """Returns a number that is not NaN as a float.

    Raises:
        DesignError: it is something else.
    """
    plain = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not plain or math.isnan(value):  # type: ignore[arg-type]
        raise DesignError(f"The {what} is {value!r:.60}; it must be a number.")
    return float(value)  # type: ignore[arg-type]


def _listed(values: object) -> list[object]:
    return list(values) if isinstance(values, list | tuple | np.ndarray) else [values]


def _changing(places: Array, function: Callable[[Array, Memory], Array]) -> Apply:
    def apply(x: Array, memory: Memory) -> Array:
        changed = x.copy()
        changed[:, places] = function(x[:, places], memory)
        return changed

    return apply
