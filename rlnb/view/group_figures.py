"""A group of runs as one chart: the mean over the seeds, and a band of one standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlnb.view.figures import panels_figure
from rlnb.view.history import Floats, History
from rlnb.view.panels import MEAN_OF, Line, LineStyle, Panel
from rlnb.view.series import running_mean

if TYPE_CHECKING:
    import plotly.graph_objects as go

_GRID = 400
_MAX_MEMBERS_DRAWN = 40  # each member's own line behind the mean


@dataclass(frozen=True)
class Member:
    """One run of a group.

    Attributes:
        label: its setting apart from the seed, e.g. "learning_rate=0.001"; members of one label are averaged.
        name: what tells it from the others, e.g. "seed=3".
        history: its rows.
    """

    label: str
    name: str
    history: History


def group_panel(members: Sequence[Member]) -> Panel:
    """Makes the one chart of a group: the environment's own return.

    Runs of different speed are compared at equal steps. A mean is drawn as far as at least half of its
    members have come, and is the mean over those that have come so far.
    """
    end = max((member.history.last_step for member in members), default=0)
    labels = list(dict.fromkeys(member.label for member in members))
    grid = np.linspace(0, end, _GRID) if end else np.empty(0)
    lines: list[Line] = []
    rows: list[Floats] = []
    for color, label in enumerate(labels):
        curves = np.stack([_curve(member.history, grid) for member in members if member.label == label])
        if len(curves) > 1 and len(members) <= _MAX_MEMBERS_DRAWN:
            lines += [Line(label, LineStyle.FAINT, color)] * len(curves)
            rows += list(curves)
        mean, deviation = _mean_and_deviation(curves)
        if len(curves) > 1:
            lines += [Line(label, LineStyle.UPPER, color), Line(label, LineStyle.LOWER, color)]
            rows += [mean + deviation, mean - deviation]
        lines.append(Line(label or "mean", LineStyle.LINE, color))
        rows.append(mean)
    seeds = max((sum(m.label == label for m in members) for label in labels), default=0)
    note = f"mean of {MEAN_OF} episodes"
    if seeds > 1:
        note = f"mean ± one standard deviation over {seeds} runs, each the {note}"
    ys = np.stack(rows) if rows else np.empty((0, 0))
    return Panel("return", "Return of the environment", "reward per episode", note, tuple(lines), grid, ys)


def group_figure(members: Sequence[Member], *, title: str = "") -> go.Figure:
    """Draws a group as a plotly figure."""
    figure = panels_figure([group_panel(members)], title=title)
    figure.update_layout(height=460)
    return figure


def _curve(history: History, grid: Floats) -> Floats:
    """Returns a run's return at the steps of the grid, shape (grid,); NaN outside its own steps."""
    table = history.table("episode")
    value = table.column("episode/return_env")
    if not np.isfinite(value).any():
        value = table.column("episode/return")
    known = np.isfinite(value)
    if not known.any() or not grid.size:
        return np.full(grid.size, np.nan)
    curve: Floats = np.interp(
        grid, table.step[known], running_mean(value[known], MEAN_OF), left=np.nan, right=np.nan
    )
    return curve


def _mean_and_deviation(curves: Floats) -> tuple[Floats, Floats]:
    """Returns mean and standard deviation (n - 1) over runs, shape (grid,) each, from (runs, grid)."""
    known = np.isfinite(curves)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, curves, 0.0).sum(axis=0) / count
        square = np.where(known, (curves - mean) ** 2, 0.0).sum(axis=0)
        deviation = np.sqrt(square / np.maximum(count - 1, 1))
    enough = count >= max(1, (len(curves) + 1) // 2)
    return np.where(enough, mean, np.nan), np.where(enough, deviation, np.nan)
