"""Every function of expressions gives a row the same bits wherever it stands, on this machine."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.design.expressions import functions
from rlnb.design.expressions.functions import FUNCTIONS, Kind, Operation

_SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 2.0, 0.5, 1e300, -1e300, 5e-324, 1e-300]
_OPERATORS = [value for value in vars(functions).values() if isinstance(value, Operation)]
_ALL = {**FUNCTIONS, **{f"operator {op.name} {op.least}": op for op in _OPERATORS}}


def _values(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n) * np.exp(rng.uniform(-6, 6, n))
    special = rng.random(n) < 0.3
    values[special] = rng.choice(_SPECIAL, special.sum())
    return values


_CASES = [
    (name, constant)
    for name, operation in sorted(_ALL.items())
    for constant in ([None] if operation.least < 2 else [None, 0, 1])
]


@pytest.mark.parametrize(("name", "constant"), _CASES)
def test_position_and_length_do_not_change_a_bit(name, constant):
    operation = _ALL[name]
    n = 1037
    arguments: list = [_values(n, place) for place in range(operation.least)]
    if constant is not None:
        arguments[constant] = np.float64(2.5)
    arguments = [
        value if operation.kind_of(place) is Kind.NUMBER else value > 0
        for place, value in enumerate(arguments)
    ]

    def run(start: int, stop: int) -> np.ndarray:
        cut = [value[start:stop].copy() if np.ndim(value) else value for value in arguments]
        result = np.asarray(operation.function(*cut), dtype=np.float64)
        result[np.isnan(result)] = np.nan  # the sign of a NaN is what `expression.quiet` is for
        return result

    with np.errstate(all="ignore"):
        whole = run(0, n)
        for size in (1, 2, 3, 5, 7, 8, 15, 16, 17, 33):
            for offset in (0, 1, 3):
                parts = np.concatenate([run(at, min(at + size, n)) for at in range(offset, n, size)])
                assert parts.tobytes() == whole[offset:].tobytes(), (size, offset)


def test_names_are_the_functions_of_numpy():
    for name, operation in FUNCTIONS.items():
        if name not in {"min", "max", "pow", "round", "clip"}:
            assert hasattr(np, name), name
        assert operation.least >= 1
