from __future__ import annotations

import math

import pytest

from rlnb.design.expressions.expression import compile_expression

INF = math.inf


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("x + y", -1, 5),
        ("x - y", -4, 2),
        ("x * y", -3, 6),
        ("y / 2", 0, 1.5),
        ("x / y", -INF, INF),
        ("1 / (y + 1)", 0.25, 1),
        ("-x", -2, 1),
        ("x ** 2", 0, 4),
        ("x ** 3", -1, 8),
        ("x ** -2", -INF, INF),
        ("(y + 1) ** -1", 0.25, 1),
        ("x ** 0.5", 0, 2**0.5),
        ("x ** y", -INF, INF),
        ("abs(x)", 0, 2),
        ("sqrt(y)", 0, 3**0.5),
        ("log(y)", -INF, math.log(3)),
        ("exp(-z)", 0, INF),
        ("z + 1", -INF, INF),
        ("z * 0", 0, 0),
        ("z - z", -INF, INF),
        ("tanh(z)", -1, 1),
        ("sin(z) + cos(z)", -2, 2),
        ("arctan2(z, x)", -math.pi, math.pi),
        ("clip(z, -1, y)", -1, 3),
        ("min(x, y, 1)", -1, 1),
        ("max(x, y)", 0, 3),
        ("where(x > 0, y, -5)", -5, 3),
        ("x > 0", 0, 1),
        ("z % y", 0, 3),
        ("hypot(x, y)", 0, 13**0.5),
        ("hypot(x + 4, y + 4)", 5, 85**0.5),
        ("floor(x / 2)", -1, 1),
        ("cosh(x)", 1, math.cosh(2)),
        ("nan + x", -INF, INF),
    ],
)
def test_bounds(text, low, high):
    found = compile_expression(text).bounds({"x": (-1, 2), "y": (0, 3)})
    assert found == (pytest.approx(low, abs=1e-12), pytest.approx(high))
