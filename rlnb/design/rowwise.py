"""Does a function of a batch treat each row for itself? Whole, halves and single rows must agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.transitions import Transitions

#: single rows tried of a long batch, spread over it
SINGLES = 64


def differing_row(
    measure: Callable[[Transitions], Array], batch: Transitions
) -> tuple[int, float, float] | None:
    """Finds a row whose bytes depend on the rows around it.

    Args:
        measure: batch of n → float64 (n,).

    Returns:
        (row, value within the whole batch, value in a smaller one), or None when all agree.
    """
    rows = len(batch)
    whole = measure(batch)
    middle = rows // 2
    cuts = [(0, rows), (0, middle), (middle, rows)]
    cuts += [
        (int(row), int(row) + 1)
        for row in np.unique(np.linspace(0, rows - 1, min(rows, SINGLES)).astype(int))
    ]
    for start, stop in cuts:
        if stop == start:
            continue
        alone = measure(batch.slice(slice(start, stop)))
        wrong = np.flatnonzero(alone.view(np.int64) != whole[start:stop].view(np.int64))
        if len(wrong):
            at = int(wrong[0])
            return start + at, float(whole[start + at]), float(alone[at])
    return None
