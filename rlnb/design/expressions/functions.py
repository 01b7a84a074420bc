"""What an expression may do: a closed list of elementwise functions.

Elementwise only, so that a row's value never depends on the rows beside it. Left out on purpose: sums,
means and sorts (they look across rows), `sign`-of-NaN tricks such as copysign (the sign of a NaN differs
between vector lanes, measured with numpy 2.4: NaN + NaN keeps one operand's sign in a vector register and
the other's in the tail), and everything that allocates more than its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np

from rlnb.design.expressions import interval
from rlnb.design.expressions.interval import Rule


class Kind(Enum):
    """What a value is: expressions know numbers (float64) and truths (bool)."""

    NUMBER = "number"
    TRUTH = "truth"


@dataclass(frozen=True)
class Operation:
    """One thing an expression can do.

    Attributes:
        function: takes and gives arrays of equal length, or scalars.
        least: number of arguments at least; `most` at most.
        rule: bounds of the result from the bounds of the arguments.
        takes: kind of each argument; the last stands for all that follow.
        gives: kind of the result.
    """

    name: str
    function: Callable[..., Any]
    least: int
    most: int
    rule: Rule
    takes: tuple[Kind, ...] = (Kind.NUMBER,)
    gives: Kind = Kind.NUMBER

    def kind_of(self, place: int) -> Kind:
        """Returns the kind that argument number `place` must have."""
        return self.takes[min(place, len(self.takes) - 1)]


def _number(name: str, function: Callable[..., Any], count: int, rule: Rule) -> Operation:
    return Operation(name, function, count, count, rule)


def _test(name: str, function: Callable[..., Any], count: int) -> Operation:
    return Operation(name, function, count, count, interval.within(0.0, 1.0), gives=Kind.TRUTH)


def _logic(name: str, function: Callable[..., Any], least: int, most: int) -> Operation:
    return Operation(name, function, least, most, interval.within(0.0, 1.0), (Kind.TRUTH,), Kind.TRUTH)


def _fold(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *parts: reduce(function, parts)


def _clip(values: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(values, low), high)


_INCREASING: dict[str, tuple[Callable[[Any], Any], interval.Interval]] = {
    "cbrt": (np.cbrt, interval.EVERYTHING),
    "exp": (np.exp, interval.EVERYTHING),
    "expm1": (np.expm1, interval.EVERYTHING),
    "log": (np.log, (0.0, np.inf)),
    "log1p": (np.log1p, (-1.0, np.inf)),
    "log2": (np.log2, (0.0, np.inf)),
    "log10": (np.log10, (0.0, np.inf)),
    "arcsin": (np.arcsin, (-1.0, 1.0)),
    "arctan": (np.arctan, interval.EVERYTHING),
    "sinh": (np.sinh, interval.EVERYTHING),
    "tanh": (np.tanh, interval.EVERYTHING),
    "arcsinh": (np.arcsinh, interval.EVERYTHING),
    "deg2rad": (np.deg2rad, interval.EVERYTHING),
    "rad2deg": (np.rad2deg, interval.EVERYTHING),
}
_STEPS: dict[str, Callable[[Any], Any]] = {
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
}  # fmt: skip

ADD = _number("+", np.add, 2, interval.add)
SUBTRACT = _number("-", np.subtract, 2, interval.subtract)
MULTIPLY = _number("*", np.multiply, 2, interval.multiply)
DIVIDE = _number("/", np.divide, 2, interval.divide)
FLOOR_DIVIDE = _number("//", np.floor_divide, 2, interval.everything)
REMAINDER = _number("%", np.mod, 2, interval.remainder)
POWER = _number("**", np.power, 2, interval.power)
SQUARE = _number("square", np.square, 1, interval.square)
NEGATE = _number("-", np.negative, 1, interval.negate)
POSITIVE = _number("+", np.positive, 1, lambda a: a)
LESS = _test("<", np.less, 2)
LESS_EQUAL = _test("<=", np.less_equal, 2)
GREATER = _test(">", np.greater, 2)
GREATER_EQUAL = _test(">=", np.greater_equal, 2)
EQUAL = _test("==", np.equal, 2)
NOT_EQUAL = _test("!=", np.not_equal, 2)
AND = _logic("and", _fold(np.logical_and), 2, 64)
OR = _logic("or", _fold(np.logical_or), 2, 64)
XOR = _logic("^", np.logical_xor, 2, 2)
NOT = _logic("not", np.logical_not, 1, 1)
WHERE = Operation("where", np.where, 3, 3, interval.choose, (Kind.TRUTH, Kind.NUMBER))

_HALF_PI = float(np.nextafter(np.pi / 2, np.inf))

_CALLABLE = [
    *(_number(name, f, 1, interval.monotone(f, domain)) for name, (f, domain) in _INCREASING.items()),
    *(_number(name, f, 1, interval.monotone(f, exact=True)) for name, f in _STEPS.items()),
    _number("abs", np.abs, 1, interval.magnitude),
    _number("sqrt", np.sqrt, 1, interval.monotone(np.sqrt, (0.0, np.inf), exact=True)),
    SQUARE,
    _number("power", np.power, 2, interval.power),
    _number("sin", np.sin, 1, interval.within(-1.0, 1.0)),
    _number("cos", np.cos, 1, interval.within(-1.0, 1.0)),
    _number("tan", np.tan, 1, interval.everything),
    _number("arccos", np.arccos, 1, interval.within(0.0, 2 * _HALF_PI)),
    _number("arctan2", np.arctan2, 2, interval.within(-2 * _HALF_PI, 2 * _HALF_PI)),
    _number("cosh", np.cosh, 1, interval.even(np.cosh)),
    _number("arccosh", np.arccosh, 1, interval.monotone(np.arccosh, (1.0, np.inf))),
    _number("arctanh", np.arctanh, 1, interval.monotone(np.arctanh, (-1.0, 1.0))),
    _number("hypot", np.hypot, 2, interval.hypot),
    _number("mod", np.mod, 2, interval.remainder),
    _number("clip", _clip, 3, interval.clip),
    Operation("minimum", _fold(np.minimum), 2, 64, interval.minimum),
    Operation("maximum", _fold(np.maximum), 2, 64, interval.maximum),
    WHERE,
    _test("isnan", np.isnan, 1),
    _test("isfinite", np.isfinite, 1),
    _logic("logical_and", _fold(np.logical_and), 2, 64),
    _logic("logical_or", _fold(np.logical_or), 2, 64),
    _logic("logical_not", np.logical_not, 1, 1),
]

#: functions an expression may call, by name
FUNCTIONS: dict[str, Operation] = {operation.name: operation for operation in _CALLABLE}
FUNCTIONS |= {
    other: FUNCTIONS[name]
    for other, name in {"min": "minimum", "max": "maximum", "pow": "power", "rint": "round"}.items()
}

#: constants an expression may name
CONSTANTS: dict[str, float] = {"pi": np.pi, "inf": np.inf, "nan": np.nan}
