"""Interval arithmetic: how far an expression can reach, from the bounds of what it uses.

Bounds are never too narrow: where a rule is not known the answer is (-inf, inf). Rounding is monotone
for + - * / and sqrt, so their bounds are exact; for the other functions the bounds are widened by one
unit in the last place, since libraries may err by that much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Interval = tuple[float, float]
Rule = Callable[..., Interval]

EVERYTHING: Interval = (-np.inf, np.inf)
TRUTH: Interval = (0.0, 1.0)


def hull(*values: float) -> Interval:
    """Returns the smallest interval around some numbers; everything, if one is NaN."""
    if any(np.isnan(value) for value in values):
        return EVERYTHING
    return (float(min(values)), float(max(values)))


def monotone(function: Callable[[Any], Any], domain: Interval = EVERYTHING, *, exact: bool = False) -> Rule:
    """Returns the rule of an increasing function that is defined on `domain`."""

    def rule(a: Interval) -> Interval:
        low, high = (float(function(np.clip(end, *domain))) for end in a)
        if exact:
            return hull(low, high)
        return hull(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))

    return rule


def even(function: Callable[[Any], Any]) -> Rule:
    """Returns the rule of an even function that increases with the magnitude."""

    def rule(a: Interval) -> Interval:
        near, far = magnitude(a)
        return monotone(function)((near, far))

    return rule


def within(low: float, high: float) -> Rule:
    """Returns the rule of a function whose values never leave [low, high]."""
    return lambda *_: (low, high)


def everything(*_: Interval) -> Interval:
    """The rule of a function about which nothing is promised."""
    return EVERYTHING


def magnitude(a: Interval) -> Interval:
    """Bounds of |a|."""
    far = max(abs(a[0]), abs(a[1]))
    near = 0.0 if a[0] <= 0.0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return (near, far)


def negate(a: Interval) -> Interval:
    return (-a[1], -a[0])


def add(a: Interval, b: Interval) -> Interval:
    return _open(a[0] + b[0], a[1] + b[1])


def subtract(a: Interval, b: Interval) -> Interval:
    return add(a, negate(b))


def multiply(a: Interval, b: Interval) -> Interval:
    # 0 * inf is 0 here: an infinite bound means "finite but unbounded"
    return hull(*(0.0 if x == 0.0 or y == 0.0 else x * y for x in a for y in b))


def divide(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0.0 <= b[1]:
        return EVERYTHING
    return (
        multiply(a, hull(1.0 / b[0], 1.0 / b[1]))
        if np.isinf([*a, *b]).any()
        else hull(*(x / y for x in a for y in b))
    )


def square(a: Interval) -> Interval:
    near, far = magnitude(a)
    return (near * near, far * far)


def power(a: Interval, b: Interval) -> Interval:
    """Bounds of a ** b, for a constant exponent; everything otherwise."""
    exponent = b[0]
    if b[0] != b[1]:
        return EVERYTHING
    whole = float(exponent).is_integer()
    if exponent < 0 and a[0] <= 0.0 <= a[1]:
        return EVERYTHING
    if not whole:
        if a[0] < 0.0:  # NaN there, so only what is not negative can come back
            a = (0.0, max(a[1], 0.0))
            if exponent < 0:
                return EVERYTHING
    elif exponent % 2 == 0:
        a = magnitude(a)
    low, high = sorted((float(np.power(a[0], exponent)), float(np.power(a[1], exponent))))
    return hull(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def minimum(*parts: Interval) -> Interval:
    return (min(low for low, _ in parts), min(high for _, high in parts))


def maximum(*parts: Interval) -> Interval:
    return (max(low for low, _ in parts), max(high for _, high in parts))


def clip(a: Interval, low: Interval, high: Interval) -> Interval:
    return minimum(maximum(a, low), high)


def choose(_: Interval, a: Interval, b: Interval) -> Interval:
    """Bounds of where(condition, a, b)."""
    return (min(a[0], b[0]), max(a[1], b[1]))


def remainder(_: Interval, b: Interval) -> Interval:
    """Bounds of a mod b, which lies between 0 and b."""
    return (min(0.0, b[0]), max(0.0, b[1]))


def hypot(a: Interval, b: Interval) -> Interval:
    (a0, a1), (b0, b1) = magnitude(a), magnitude(b)
    return (float(np.nextafter(np.hypot(a0, b0), -np.inf)), float(np.nextafter(np.hypot(a1, b1), np.inf)))


def _open(low: float, high: float) -> Interval:
    return (-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)
