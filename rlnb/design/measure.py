"""What a reward's terms are worth over a batch, before weights: the half that a preview keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.expressions.expression import quiet
from rlnb.design.shaping import Shaping
from rlnb.design.term import Term
from rlnb.design.transitions import Transitions


def as_paid(batch: Transitions) -> Transitions:
    """Returns a batch whose reward is what a vector environment passes on: float64 of its float32."""
    with np.errstate(over="ignore"):
        return batch.with_reward(np.asarray(batch.reward, dtype=np.float32).astype(np.float64))


def measure(parts: Sequence[Term | Shaping], paid: Transitions) -> dict[str, Array]:
    """Returns each part's value before clip and weight, float64 (n,), by name.

    Args:
        paid: a batch as `as_paid` returns it.

    Raises:
        DesignError: a name is unknown or a Python term fails.
    """
    values = np.empty((len(parts), len(paid)))
    with np.errstate(all="ignore"):
        for part, row in zip(parts, values, strict=True):
            part.fill(row, paid)
        quiet(values)
    return {part.name: row for part, row in zip(parts, values, strict=True)}


def clipped(part: Term | Shaping, measured: Array) -> Array:
    """Returns a part's measured values within its clip; the same array if it has none."""
    if part.clip is None:
        return measured
    low, high = part.clip
    with np.errstate(all="ignore"):
        values = np.maximum(measured, low)
        return np.minimum(values, high, out=values)
