"""What kind of value an argument takes, and how a given one is checked and made plain.

Every value an experiment holds becomes plain data (None, bool, int, float, str, list, dict) that YAML
carries without loss; a class or function becomes a reference (see `rlnb.run.references`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeVar

from rlnb.errors import ExperimentError
from rlnb.run.noise import plain_noise
from rlnb.run.references import References
from rlnb.run.schedule import LinearSchedule, parse_schedule

_Number = TypeVar("_Number", int, float)
_UNITS: Final = ("step", "episode")


class Kind(Enum):
    """The shapes of value that SB3's arguments take."""

    INT = auto()
    FLOAT = auto()
    BOOL = auto()
    SCHEDULE = auto()  # a float, "lin_1e-3" or a function of the progress that remains
    AUTO = auto()  # a float, "auto" or "auto_0.1"
    FREQUENCY = auto()  # an int, or [int, "step" | "episode"]
    NOISE = auto()  # an SB3 action noise, "normal_0.1" or "ornstein-uhlenbeck_0.1"
    CLASS = auto()  # an importable or cell-defined class
    MAPPING = auto()  # keyword arguments


@dataclass(frozen=True)
class Argument:
    """One argument of an algorithm.

    Attributes:
        name: as SB3 calls it.
        kind: what it takes.
        default: SB3's default, as plain data.
        low: smallest allowed number, or None.
        high: largest allowed number, or None.
        optional: whether None is allowed.
    """

    name: str
    kind: Kind
    default: Any
    low: float | None = None
    high: float | None = None
    optional: bool = False

    def plain(self, value: object, references: References, *, where: str | None = None) -> Any:
        """Checks `value` and returns it as plain data.

        Args:
            value: what the user gave.
            references: collects live classes and functions met on the way.
            where: the name for messages and references; by default the argument's.

        Raises:
            ExperimentError: naming the argument, the value and what it takes.
        """
        where = where or self.name
        value = plain_number(value)
        if value is None:
            if not self.optional:
                raise ExperimentError(f"{where}=None is not possible; {where} takes {self.takes}")
            return None
        match self.kind:
            case Kind.INT:
                return self._within(as_int(value, where, self.takes), where)
            case Kind.FLOAT:
                return self._within(as_float(value, where, self.takes), where)
            case Kind.BOOL:
                return as_bool(value, where)
            case Kind.SCHEDULE:
                return self._schedule(value, references, where)
            case Kind.AUTO:
                return self._auto(value, where)
            case Kind.FREQUENCY:
                return self._frequency(value, where)
            case Kind.NOISE:
                return plain_noise(value, where)
            case Kind.CLASS:
                plain = references.freeze(value, where)
                if not isinstance(plain, Mapping):
                    raise ExperimentError(
                        f"{where}={value!r} is no class; pass the class itself, not its name"
                    )
                return plain
            case Kind.MAPPING:
                if not isinstance(value, Mapping):
                    raise ExperimentError(f"{where}={value!r} is no mapping; {where} takes {self.takes}")
                return references.freeze(value, where)

    @property
    def takes(self) -> str:
        """What the argument takes, for messages: "an integer >= 1"."""
        bounds = self._bounds
        words = {
            Kind.INT: f"an integer{bounds}",
            Kind.FLOAT: f"a number{bounds}",
            Kind.BOOL: "true or false",
            Kind.SCHEDULE: f"a number{bounds}, 'lin_1e-3', or a function of the progress that remains",
            Kind.AUTO: f"a number{bounds}, 'auto' or 'auto_0.1'",
            Kind.FREQUENCY: f"an integer{bounds} or [integer, 'step' or 'episode']",
            Kind.NOISE: "an SB3 action noise, 'normal_0.1' or 'ornstein-uhlenbeck_0.1'",
            Kind.CLASS: "a class",
            Kind.MAPPING: "a mapping of keyword arguments",
        }[self.kind]
        return words + (" or None" if self.optional else "")

    @property
    def _bounds(self) -> str:
        """The allowed range, in words: " >= 1"."""
        if self.low is not None and self.high is not None:
            low, high = (int(end) if end == int(end) else end for end in (self.low, self.high))
            return f" between {low} and {high}"
        return f" >= {self.low:g}" if self.low is not None else ""

    def _within(self, value: _Number, where: str) -> _Number:
        below = self.low is not None and not value >= self.low
        above = self.high is not None and not value <= self.high
        if below or above:
            raise ExperimentError(f"{where}={value!r} is out of range; {where} takes {self.takes}")
        return value

    def _schedule(self, value: object, references: References, where: str) -> Any:
        if callable(value) and not isinstance(value, LinearSchedule):
            return references.freeze(value, where)
        if isinstance(value, Mapping):
            return references.freeze(value, where)
        parsed = parse_schedule(value, where=where) if isinstance(value, str) else value
        if isinstance(parsed, LinearSchedule):
            self._within(parsed.initial, where)
            self._within(parsed.final, where)
            return str(parsed)
        return self._within(as_float(parsed, where, self.takes), where)

    def _auto(self, value: object, where: str) -> Any:
        if isinstance(value, str):
            head, _, start = value.partition("_")
            if head == "auto" and (not start or _is_number(start)):
                return value
            if not _is_number(value):
                raise ExperimentError(f"{where}={value!r} cannot be read; {where} takes {self.takes}")
            value = float(value)
        return self._within(as_float(value, where, self.takes), where)

    def _frequency(self, value: object, where: str) -> Any:
        pair = list(value) if isinstance(value, (list, tuple)) else [value, "step"]
        if len(pair) != 2 or pair[1] not in _UNITS:
            raise ExperimentError(f"{where}={value!r} cannot be read; {where} takes {self.takes}")
        count = self._within(as_int(plain_number(pair[0]), where, self.takes), where)
        return count if pair[1] == "step" else [count, "episode"]


def plain_number(value: object) -> Any:
    """Returns a NumPy scalar as the Python number it holds, and everything else as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value


def as_int(value: object, where: str, takes: str) -> int:
    """Returns an int; a float is accepted only when it is whole, as in `total_timesteps=1e6`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or int_is_lossy(value):
        raise ExperimentError(f"{where}={value!r} is no whole number; {where} takes {takes}")
    return int(value)


def int_is_lossy(value: float) -> bool:
    """Whether `int(value)` would lose something."""
    return not math.isfinite(value) or value != int(value)


def as_float(value: object, where: str, takes: str) -> float:
    """Returns a finite float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ExperimentError(f"{where}={value!r} is no finite number; {where} takes {takes}")
    return float(value)


def as_bool(value: object, where: str) -> bool:
    """Returns a bool."""
    if not isinstance(value, bool):
        raise ExperimentError(f"{where}={value!r} is neither true nor false")
    return value


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
