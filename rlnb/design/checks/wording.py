"""How numbers and names read in the sentences of findings."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(share: float) -> str:
    """Returns a share in [0, 1] as "12 %", "0.3 %" or "< 0.1 %"."""
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.1f} %"


def number(value: float) -> str:
    """Returns a number with four digits, or whole with thousands separators: "0.1235", "12,346", "-200"."""
    if math.isfinite(value) and abs(value) < 1e15 and (abs(value) >= 1000 or value == int(value)):
        return f"{value + 0.0:,.0f}"  # -0.0 reads 0
    return f"{value:.4g}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Returns "x, y and z", or "x, y, z and 12 more"."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    """Returns "1 component" or "3 components"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
