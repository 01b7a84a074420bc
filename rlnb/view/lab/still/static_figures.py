"""The Lab's charts as still pictures: matplotlib drawings of the values in `rlnb.view.lab.charts.figures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.view.drawing import GRID, INK, SOFT, dress, few_ticks, say_empty, short_number
from rlnb.view.figures import PALETTE
from rlnb.view.history import Floats
from rlnb.view.lab.charts.figures import (
    Bars,
    Color,
    Figure,
    HeatMap,
    Layer,
    LinesFigure,
    Points,
    Stacked,
    Strips,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Paper

#: inches beside and below a chart, for its labels
LEFT, RIGHT, BOTTOM = 0.62, 0.14, 0.44
#: rows of a legend beside a chart; what is left over is counted
LEGEND_ROWS = 16
#: characters of a name in a legend
NAME_LENGTH = 26


@dataclass(frozen=True)
class Area:
    """A part of a picture, in inches from the picture's left and lower edge."""

    paper: Paper
    left: float
    bottom: float
    width: float
    height: float

    def axes(self, *, left: float, right: float, bottom: float, top: float) -> Axes:
        """Returns axes that leave these margins, in inches."""
        width, height = self.paper.get_size_inches()
        across, up = self.width - left - right, self.height - bottom - top
        sides = ((self.left + left) / width, (self.bottom + bottom) / height, across / width, up / height)
        return self.paper.add_axes(sides)

    def say(self, words: str, *, left: float, down: float, **look: Any) -> None:
        """Writes words, `left` from the left edge and `down` from the upper one, in inches."""
        width, height = self.paper.get_size_inches()
        place = (self.left + left) / width, (self.bottom + self.height - down) / height
        self.paper.text(*place, words, va="center", parse_math=False, **look)


def draw(area: Area, figure: Figure) -> None:
    """Draws one chart into a part of a picture."""
    if isinstance(figure, HeatMap) and figure.counts:
        _maps(area, figure)
        return
    axes = _axes(area, figure, beside=isinstance(figure, Stacked | LinesFigure))
    if isinstance(figure, Stacked):
        _stack(axes, figure)
    elif isinstance(figure, LinesFigure):
        _lines(axes, figure)
    elif isinstance(figure, Strips):
        _strips(axes, figure)
    elif isinstance(figure, Bars):
        _bars(axes, figure)
    elif isinstance(figure, Points):
        _points(axes, figure)
    else:
        say_empty(axes, figure.empty)


def css_color(color: Color) -> str:
    """Returns a figure's colour as "#rrggbb" for white paper."""
    if isinstance(color, int):
        return PALETTE[color % len(PALETTE)]
    return color if color.startswith("#") else INK


def _axes(area: Area, figure: Figure, *, beside: bool) -> Axes:
    """Returns axes that leave room for two lines above them, labels, and a legend on the right."""
    area.say(figure.note, left=LEFT, down=0.38, size=7, color=SOFT)
    return area.axes(left=LEFT, right=1.75 if beside else RIGHT, bottom=BOTTOM, top=0.5)


def _label(axes: Axes, figure: Figure, x_label: str, y_label: str, *, ticks: bool = True) -> None:
    dress(axes, figure.title, x_label, y_label)
    axes.set_title(figure.title, loc="left", size=9, weight="bold", color=INK, pad=18, parse_math=False)
    if ticks:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(few_ticks())
            axis.set_major_formatter(short_number)


def _stack(axes: Axes, figure: Stacked) -> None:
    _label(axes, figure, figure.x_label, figure.unit)
    if not len(figure.x):
        say_empty(axes, figure.empty)
        return
    # each step has its width, so that an episode of one step is seen, too
    width = float(figure.x[1] - figure.x[0]) if len(figure.x) > 1 else 1.0
    edges = np.append(figure.x, figure.x[-1] + width)
    above, below = np.zeros(len(figure.x)), np.zeros(len(figure.x))
    for layer in figure.layers:
        y = _finite(layer.y)
        up, down = above + np.maximum(y, 0), below + np.minimum(y, 0)
        for base, top in ((above, up), (below, down)):
            axes.fill_between(
                edges, np.append(base, base[-1]), np.append(top, top[-1]), step="post", linewidth=0,
                color=css_color(layer.color), alpha=0.75,
            )  # fmt: skip
        above, below = up, down
        axes.fill_between([], [], color=css_color(layer.color), alpha=0.75, label=_short(layer.name))
    axes.axhline(0, color=SOFT, linewidth=0.6)
    for line in figure.lines:
        _step_line(axes, edges, line)
    axes.set_xlim(edges[0], edges[-1])
    _legend_beside(axes)


def _step_line(axes: Axes, edges: Floats, line: Layer) -> None:
    axes.plot(
        edges, np.append(line.y, line.y[-1]), drawstyle="steps-post", color=css_color(line.color), linewidth=1.1,
        linestyle=(0, (3, 2)) if line.dashed else "-", label=_short(line.name),
    )  # fmt: skip


def _lines(axes: Axes, figure: LinesFigure) -> None:
    _label(axes, figure, figure.x_label, figure.unit)
    if not len(figure.x) or not figure.lines:
        say_empty(axes, figure.empty)
        return
    for line in figure.lines:
        axes.plot(
            figure.x, line.y, color=css_color(line.color), linewidth=1.2, label=_short(line.name),
            linestyle=(0, (3, 2)) if line.dashed else "-", marker="o" if len(figure.x) < 3 else "", markersize=3,
        )  # fmt: skip
    axes.margins(x=0.01)
    _legend_beside(axes)


def _strips(axes: Axes, figure: Strips) -> None:
    _label(axes, figure, figure.unit, "policy")
    strips = [(label, color, figure.of(label)) for label, color in figure.colors.items()]
    strips = [strip for strip in strips if strip[2].size]
    if not strips:
        say_empty(axes, figure.empty)
        return
    rng = np.random.default_rng(0)  # the same picture for the same values
    for place, (label, color, values) in enumerate(strips):
        y = -place + rng.uniform(-0.16, 0.16, values.size)
        axes.scatter(values, y, s=9, color=css_color(color), alpha=0.55, linewidths=0)
        mean = float(values.mean())
        axes.plot([mean, mean], [-place - 0.27, -place + 0.27], color=css_color(color), linewidth=1.6)
        axes.text(
            0.01, 0.34 - place, f"{_short(label) or 'all'}: mean {mean:.4g}", transform=axes.get_yaxis_transform(),
            size=7, color=css_color(color), va="bottom", parse_math=False,
        )  # fmt: skip
    axes.set_yticks([])
    axes.set_ylim(-len(strips) + 0.55, 0.75)
    axes.margins(x=0.06)


def _bars(axes: Axes, figure: Bars) -> None:
    _label(axes, figure, figure.x_label, figure.unit)
    layers = [layer for layer in figure.layers if layer.y.sum() > 0]
    if not layers:
        say_empty(axes, figure.empty)
        return
    stacked = figure.stacked and not figure.log
    base = np.zeros(len(figure.edges) - 1)
    for layer in layers:
        color = css_color(layer.color)
        top = base + layer.y
        axes.stairs(top, figure.edges, baseline=base, fill=True, color=color, alpha=0.7 if stacked else 0.3, linewidth=0, label=_short(layer.name))  # fmt: skip
        if stacked:
            base = top
        else:
            axes.stairs(top, figure.edges, color=color, linewidth=1.0)
    if figure.log:
        from matplotlib.ticker import LogLocator, NullLocator

        axes.set_yscale("log")
        axes.set_ylim(0.7, 1.6 * max(float(layer.y.max()) for layer in layers))
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(short_number)
        axes.set_ylabel(f"{figure.unit} (logarithmic)", size=7.5, color=SOFT, labelpad=2)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlim(float(figure.edges[0]), float(figure.edges[-1]))
    _legend_inside(axes, len(layers))


def _points(axes: Axes, figure: Points) -> None:
    _label(axes, figure, figure.x_label, figure.y_label)
    good = np.isfinite(figure.x) & np.isfinite(figure.y)
    if not good.any():
        say_empty(axes, figure.empty)
        return
    labels = np.asarray(figure.labels, dtype=object)
    shown = 0
    for label, color in figure.colors.items():
        chosen = good & (labels == label)
        if chosen.any():
            axes.scatter(figure.x[chosen], figure.y[chosen], s=12, color=css_color(color), alpha=0.6, linewidths=0, label=_short(label) or "all")  # fmt: skip
            shown += 1
    _legend_inside(axes, shown)


def _maps(area: Area, figure: HeatMap) -> None:
    """One map for each label, on common axes and one scale of shades."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    most = max(2.0, *(float(counts.max(initial=0)) for counts in figure.counts.values()))
    each = (area.width - LEFT - RIGHT) / len(figure.counts)
    for place, (label, counts) in enumerate(figure.counts.items()):
        right = area.width - LEFT - (place + 1) * each + 0.15
        axes = area.axes(left=LEFT + place * each, right=right, bottom=BOTTOM, top=0.52)
        dress(axes, "", figure.x_label, "" if place else figure.y_label)
        words = f"{_short(label)}: {100 * figure.share(label):.0f} % of the map"
        axes.set_title(words, loc="left", size=7.5, color=INK, pad=3)
        axes.grid(visible=False)
        shades = LinearSegmentedColormap.from_list("shades", [GRID, css_color(figure.colors.get(label, 0))])
        cells = np.ma.masked_less_equal(counts.T, 0)
        axes.pcolormesh(figure.x_edges, figure.y_edges, cells, cmap=shades, norm=LogNorm(1, most))
        axes.xaxis.set_major_locator(few_ticks())
        axes.yaxis.set_major_locator(few_ticks())
        if place:
            axes.set_yticklabels([])
    area.say(figure.title, left=LEFT, down=0.16, size=9, weight="bold", color=INK)
    scale = f"the darker, the more steps in a cell: 1 to {most:,.0f} (logarithmic)"
    words = "; ".join(part for part in (figure.note, scale) if part)
    area.say(words, left=area.width - RIGHT, down=0.16, size=7, color=SOFT, ha="right")


def _legend_beside(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    rest = len(labels) - LEGEND_ROWS
    # what is left out of the legend are terms: the lines, which come last, are always named
    if rest > 0:
        keep = [*range(LEGEND_ROWS - 3), *range(len(labels) - 3, len(labels))]
        handles, labels = [handles[place] for place in keep], [labels[place] for place in keep]
    axes.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.02), fontsize=7, frameon=False, handlelength=1.3,
        labelspacing=0.3, borderaxespad=0, title=f"{rest} more terms are drawn" if rest > 0 else None, title_fontsize=7,
    )  # fmt: skip


def _legend_inside(axes: Axes, count: int) -> None:
    if count > 1:
        axes.legend(
            fontsize=6.5, facecolor="white", framealpha=0.8, edgecolor="none", loc="best", handlelength=1.2,
            labelspacing=0.25, borderaxespad=0.2, borderpad=0.2,
        )  # fmt: skip


def _finite(y: Floats) -> Floats:
    return np.nan_to_num(y, nan=0.0, posinf=0.0, neginf=0.0)


def _short(name: str, most: int = NAME_LENGTH) -> str:
    """Shortens in the middle, where run names differ least; a dollar is no mathematics."""
    short = name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-(most // 2) :]}"
    return short.replace("$", r"\$")


def figure_rows(figures: Sequence[Figure], *, columns: int = 3) -> list[list[Figure]]:
    """Returns figures in rows of a picture: a wide one has a row to itself."""
    rows: list[list[Figure]] = []
    for figure in figures:
        if figure.wide or not rows or rows[-1][0].wide or len(rows[-1]) == columns:
            rows.append([])
        rows[-1].append(figure)
    return rows
