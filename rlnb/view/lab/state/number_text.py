"""Numbers as people type them into a field and read them in a narrow table."""

from __future__ import annotations

import math
from typing import Any


def parse_number(text: str, empty: str = "") -> Any:
    """Returns what somebody typed as a float; what is no number comes back as it is, for its owner to refuse.

    Args:
        text: may contain "∞" and the typographic minus.
        empty: stands for an empty field.
    """
    text = (text.strip() or empty).replace("∞", "inf").replace("−", "-")
    try:
        return float(text)
    except ValueError:
        return text


def short_number(value: float) -> str:
    """Returns three significant digits at most: "−0.0123", "1,240", "3.4e38", "∞"."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    value, size = value + 0.0, abs(value)  # no negative zero
    if size and (size >= 1e6 or size < 1e-4):
        mantissa, exponent = f"{value:.2g}".split("e") if "e" in f"{value:.2g}" else (f"{value:.2g}", "0")
        text = f"{mantissa}e{int(exponent)}"
    elif size >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−")
