"""A design as tables and sentences of a document: no script, no colours of its own but for accents.

Whatever a design says comes from a person or a file, so every text goes through `html.escape`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from rlnb.design.describe import describe_operation, describe_source, design_diff
from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec
from rlnb.design.state import StatePlan, StateSpec
from rlnb.view.facts import number
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.state.number_text import short_number

# Half-transparent grey is a line on white and on black; opacity is a quieter ink on both.
LINE = "1px solid rgba(128,128,128,.4)"
QUIET = "opacity:.72"
_CELL = f"border:0;border-bottom:{LINE};padding:3px 10px 3px 0;text-align:left;vertical-align:top"
_CODE = "font-family:monospace;font-size:.95em;white-space:pre-wrap;overflow-wrap:anywhere;background:none;padding:0;color:inherit"
#: components that are named one by one
NAMED = 24


def section(title: str, *parts: str) -> str:
    """Returns a part of the document under a heading; "" without content."""
    inside = "".join(parts)
    return (
        f'<h4 style="margin:16px 0 4px;font-size:1.05em;font-weight:700">{escape(title)}</h4>{inside}'
        if inside
        else ""
    )


def paragraph(markup: str, *, quiet: bool = False) -> str:
    """Returns a paragraph of what is markup already."""
    return f'<p style="margin:3px 0;{QUIET if quiet else ""}">{markup}</p>'


def code(text: str) -> str:
    """Returns a text as code."""
    return f'<code style="{_CODE}">{escape(text)}</code>'


def table(heads: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]]) -> str:
    """Returns a table.

    Args:
        heads: the columns' names.
        rows: (cells as markup, whether the row counts); one that does not is paler.
    """
    top = "".join(f'<th scope="col" style="{_CELL};{QUIET}">{escape(head)}</th>' for head in heads)
    body = "".join(
        f'<tr style="background:none;{"" if counts else "opacity:.55"}">'
        + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        + "</tr>"
        for cells, counts in rows
    )
    return (
        '<table style="border-collapse:collapse;margin:4px 0;font-size:1em;color:inherit">'
        f'<thead><tr style="background:none">{top}</tr></thead><tbody>{body}</tbody></table>'
    )


def difference_html(defaults: Design, design: Design) -> str:
    """Returns how a design differs from what the code says."""
    lines = design_diff(defaults, design)
    if not lines:
        return paragraph("As in the code: the design file changes nothing.")
    items = "".join(f'<li style="margin:2px 0">{code(line)}</li>' for line in lines)
    return (
        paragraph(f"{len(lines)} {'change' if len(lines) == 1 else 'changes'} to what the code says:")
        + f'<ul style="margin:2px 0;padding-left:14px;border-left:3px solid #d9630a;list-style:none">{items}</ul>'
    )


def reward_html(reward: RewardSpec) -> str:
    """Returns what the agent is paid."""
    if reward.is_identity:
        return paragraph("The environment's own reward.")
    enabled = {part.name for part in reward.enabled}
    optional = {
        "clipped to": [_interval(getattr(part, "clip", None)) for part in reward.terms],
        "gamma": [_plain(getattr(part, "gamma", None)) for part in reward.terms],
        "group": [escape(part.group or "") for part in reward.terms],
    }
    extra = {head: cells for head, cells in optional.items() if any(cells)}
    rows = [
        (
            [
                f"<b>{escape(part.name)}</b>",
                code(describe_source(part)),
                _weight(part.weight, part.name in enabled),
                *(cells[place] for cells in extra.values()),
            ],
            part.name in enabled,
        )
        for place, part in enumerate(reward.terms)
    ]
    parts = [table(["term", "computed from", "weight", *extra], rows)]
    if reward.groups:
        groups = [
            (
                [
                    f"<b>{escape(group.name)}</b>",
                    code(group.combine) if group.combine else "the sum of its weighted terms",
                    _weight(group.weight, group.enabled),
                ],
                group.enabled,
            )
            for group in reward.groups
        ]
        parts.append(table(["group", "computed from", "weight"], groups))
    total = code(reward.combine) if reward.combine else "the sum of the weighted terms" + " and groups" * bool(reward.groups)  # fmt: skip
    return "".join([*parts, paragraph(f"Reward of a step: {total}.")])


def state_html(state: StateSpec, plan: StatePlan) -> str:
    """Returns what the agent sees; `plan` says which space results."""
    if state.is_identity:
        parts = [paragraph("The environment's own observation.")]
    else:
        items = "".join(f'<li style="margin:2px 0">{code(describe_operation(op))}</li>' for op in state.ops)
        parts = [
            paragraph("The environment's observation goes through:"),
            f'<ol style="margin:2px 0;padding-left:28px">{items}</ol>',
        ]
    return "".join([*parts, paragraph(f"Observation space: {named_space_html(plan.space, plan.names)}")])


def named_space_html(space: Any, names: Sequence[str]) -> str:
    """Returns an observation space in one line of markup, e.g. "Box of shape (4,), float32: x, vx, …"."""
    kind, shape = type(space).__name__, getattr(space, "shape", None)
    if kind != "Box" or shape is None:
        return code(str(space)[:300])
    words = f"Box of shape {tuple(int(side) for side in shape)}, {space.dtype}"
    if not names:
        return f"{words}, from {short_number(float(np.min(space.low)))} to {short_number(float(np.max(space.high)))}"
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return f"{words}: {code(shown)}"


def episodes_html(bench: Workbench) -> str:
    """Returns what each policy's episodes earn, by the design and by the environment's own reward."""
    with bench.lock:
        preview = bench.preview
        returns, env_returns, lengths = preview.returns, preview.env_returns, preview.lengths
        labels = np.asarray(preview.labels, dtype=object)
    rows = []
    for label in dict.fromkeys(labels):
        of = labels == label
        counts = f"{int(of.sum()):,}", f"{int(lengths[of].sum()):,}"
        rows.append(([escape(label or "unnamed"), *counts, _mean(returns[of]), _mean(env_returns[of])], True))
    heads = ["policy", "episodes", "steps", "designed reward per episode", "environment's reward per episode"]
    return table(heads, rows)


def _mean(values: Any) -> str:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "not a number"
    return f"{number(float(finite.mean()))} ± {number(float(finite.std()))}"


def _weight(weight: float | str, counts: bool) -> str:
    return _plain(weight) if counts else f"{_plain(weight)} (off)"


def _interval(clip: tuple[float, float] | None) -> str:
    return "" if clip is None else f"[{_plain(clip[0])}, {_plain(clip[1])}]"


def _plain(value: float | str | None) -> str:
    if value is None:
        return ""
    return escape(value) if isinstance(value, str) else f"{value!r}".removesuffix(".0")
