"""An observation space as a reader wants it: how many dimensions, of what, and the space itself."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from rlnb.design.plan import StatePlan

#: characters of a space's text that are shown at once
_SHORT = 160
_LONG = 4000


def space_html(plan: StatePlan) -> str:
    """Returns the observation space that a state design results in, as HTML."""
    text = space_text(plan.space)
    code = f"<code>{escape(text)}</code>"
    if len(text) > _SHORT:
        code = (
            f"<details><summary><code>{escape(text[:_SHORT])} …</code></summary>"
            f"<code>{escape(text[:_LONG])}</code></details>"
        )
    advice = "".join(
        f'<p class="rlnb-space-advice"><b>▲ Warning</b> {escape(one)}</p>' for one in plan.advice()
    )
    return (
        f'<div class="rlnb-space"><span>observation_space:</span> <b>{escape(dimensions_words(plan))}</b> '
        f"{code}{advice}</div>"
    )


def dimensions_words(plan: StatePlan) -> str:
    """Returns e.g. "8 dimensions, float32" or "84 x 84 x 4 = 28,224 numbers, uint8"."""
    space = plan.space
    if not getattr(space, "shape", None):
        parts = getattr(space, "spaces", None)
        inside = f" of {len(parts)} entries" if parts is not None else ""
        named = f", {len(plan.names)} components" if plan.names else ""
        return f"{type(space).__name__}{inside}{named}"
    count = 1
    for side in space.shape:
        count *= int(side)
    if len(space.shape) == 1:
        return f"{count:,} dimension{'' if count == 1 else 's'}, {space.dtype}"
    return f"{' x '.join(map(str, space.shape))} = {count:,} numbers, {space.dtype}"


def space_text(space: Any) -> str:
    """Returns a space's own text on one line."""
    text = " ".join(repr(space).split())
    text = re.sub(r"(?<=[\[(]) | (?=[\])])", "", text)
    return re.sub(r"(?<![\w.])-0\.?(?=[,\s\])])", "0.", text)
