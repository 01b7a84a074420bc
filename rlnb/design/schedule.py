"""Weights that change over training: `lin_1` falls from 1 to 0, `lin_0_1` grows from 0 to 1."""

from __future__ import annotations

import math
import re

import numpy as np

from rlnb.errors import DesignError

_FLOAT = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_LINEAR = re.compile(rf"lin_({_FLOAT})(?:_({_FLOAT}))?")

Weight = float | str


def read_weight(weight: object, where: str) -> Weight:
    """Checks a weight and returns it: a finite float, or a schedule's text.

    Args:
        where: the owner, for messages, as in "term 'upright'".

    Raises:
        DesignError: it is neither.
    """
    if isinstance(weight, str):
        if _LINEAR.fullmatch(weight):
            return weight
    elif (
        isinstance(weight, int | float | np.integer | np.floating)
        and not isinstance(weight, bool)
        and math.isfinite(weight)
    ):
        return float(weight)
    raise DesignError(
        f"The weight of {where} is {weight!r}; it must be a finite number, or a schedule: "
        "'lin_1' (from 1 to 0) or 'lin_0_1' (from 0 to 1)."
    )


def weight_at(weight: Weight, progress: float) -> float:
    """Returns the weight when the fraction `progress` (0 to 1) of training is done."""
    if not isinstance(weight, str):
        return weight
    match = _LINEAR.fullmatch(weight)
    assert match is not None  # read_weight let it in
    start, end = float(match[1]), float(match[2] or 0.0)
    done = min(max(progress, 0.0), 1.0)
    return start + (end - start) * done
