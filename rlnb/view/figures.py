"""Plotly figures of a run, for a person who wants to look closer: `job.plot()`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rlnb.view.history import History
from rlnb.view.panels import Line, LineStyle, Panel, panels_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

X_LABEL = "environment steps"

PALETTE = ("#1d63d8", "#d9630a", "#16803c", "#8b3fd1", "#c8291f", "#0f8090", "#9a5b2a", "#c2308c")
"""Colours that read on white; the live view has the same and a second set for dark themes."""

_COLUMNS = 2


def job_figure(
    rows: Iterable[Mapping[str, object]] | History, *, title: str = "", only: Iterable[str] | None = None
) -> go.Figure:
    """Draws a run's charts as one plotly figure.

    Args:
        rows: metric rows as written (rewinds are applied here), or a `History` made of them.
        title: title of the figure.
        only: keys of the charts to draw (`rlnb.view.panels.PANEL_KEYS`); all that have values when None.
    """
    history = rows if isinstance(rows, History) else History(rows)
    figure = panels_figure(panels_of(history, only=only), title=title)
    for mark in history.attempts:
        figure.add_vline(mark.step, line={"dash": "dash", "width": 1, "color": "#777"})
    _mark_checkpoints(figure, history.checkpoints)
    figure.update_xaxes(range=[0, max(1, history.last_step)])
    return figure


def panels_figure(panels: list[Panel], *, title: str = "") -> go.Figure:
    """Draws panels as small multiples that share their x axis."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    columns = min(_COLUMNS, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[f"{panel.title} ({panel.note})" if panel.note else panel.title for panel in panels],
        vertical_spacing=0.42 / (rows + 1),
        horizontal_spacing=0.1,
    )
    for place, panel in enumerate(panels):
        row, column = place // columns + 1, place % columns + 1
        several = sum(line.style is LineStyle.LINE for line in panel.lines) > 1
        for line, y in zip(panel.lines, panel.ys, strict=True):
            trace = go.Scatter(x=panel.x, y=y, name=line.label, legendgroup=panel.key, **_look(line))
            # Scatter, not Scattergl: without a GPU in the browser WebGL takes seconds.
            trace.update(
                showlegend=line.style is LineStyle.LINE and several,
                legendgrouptitle_text=panel.title if several else None,
            )
            figure.add_trace(trace, row=row, col=column)
        figure.update_yaxes(title_text=panel.unit, title_standoff=8, row=row, col=column)
        figure.update_xaxes(title_text=X_LABEL, title_standoff=8, matches="x", row=row, col=column)
    figure.update_layout(
        title=title,
        height=90 + 270 * rows,
        template="plotly_white",
        margin={"l": 70, "r": 20, "t": 80, "b": 50},
    )
    figure.update_annotations(font_size=14)
    return figure


def _look(line: Line) -> dict[str, object]:
    color = PALETTE[line.color % len(PALETTE)]
    if line.style is LineStyle.LINE:
        return {"mode": "lines", "line": {"color": color, "width": 2}}
    if line.style is LineStyle.FAINT:
        return {"mode": "lines", "line": {"color": color, "width": 1}, "opacity": 0.28, "hoverinfo": "skip"}
    band: dict[str, object] = {"mode": "lines", "line": {"color": color, "width": 0}, "hoverinfo": "skip"}
    if line.style is LineStyle.LOWER:
        band |= {"fill": "tonexty", "fillcolor": _pale(color)}
    return band


def _pale(color: str) -> str:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _mark_checkpoints(figure: go.Figure, steps: list[int]) -> None:
    """Puts a small triangle for each checkpoint on the first chart's step axis."""
    import plotly.graph_objects as go

    if not steps or not figure.data:
        return
    first = [trace for trace in figure.data if trace.xaxis in (None, "x")]
    low = min((y for trace in first for y in trace.y if math.isfinite(y)), default=0.0)
    figure.add_trace(
        go.Scatter(
            x=steps,
            y=[low] * len(steps),
            mode="markers",
            marker={"symbol": "triangle-up", "size": 8, "color": "#777"},
            name="checkpoint",
            hovertemplate="checkpoint at step %{x}<extra></extra>",
        ),
        row=1,
        col=1,
    )
