"""The image of a run that stays for readers without a kernel: GitHub, nbviewer, an executed notebook."""

from __future__ import annotations

import io
import math
from enum import StrEnum
from typing import TYPE_CHECKING

from rlnb.view.drawing import GRID, INK, SOFT, WIDTH, dress, few_ticks, png_of, say_empty, short_number
from rlnb.view.facts import Facts, Tone, number
from rlnb.view.figures import PALETTE, X_LABEL
from rlnb.view.history import History
from rlnb.view.panels import LineStyle, Panel, panels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3
_TONES = {Tone.BUSY: "#1d63d8", Tone.GOOD: "#16803c", Tone.WAITING: "#9a6200", Tone.BAD: "#c8291f"}


class ImageFormat(StrEnum):
    """What the image is encoded as."""

    PNG = "png"
    SVG = "svg"


def still_image(
    history: History, facts: Facts, *, form: ImageFormat = ImageFormat.PNG, points: int = 600
) -> bytes:
    """Draws the last picture of a run.

    Args:
        history: the run's rows.
        facts: state and progress for the heading.
        form: PNG at more than the screen's resolution, or SVG.
        points: the most points of a line.
    """
    panels = panels_of(history, points=points)
    if facts.state.final:
        panels = [panel for panel in panels if len(panel.x)]  # nothing more will come to fill the others
    return panels_image(panels, facts, form=form, history=history)


def panels_image(
    panels: list[Panel],
    facts: Facts,
    *,
    form: ImageFormat = ImageFormat.PNG,
    history: History | None = None,
    state: str | None = None,
    tone: Tone | None = None,
) -> bytes:
    """Draws panels below a heading; see `still_image`.

    Args:
        panels: the charts.
        facts: what the heading says.
        form: PNG or SVG.
        history: where attempts and checkpoints are marked; no marks when None.
        state: the state in words, when it is not that of `facts` (a group).
        tone: likewise.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    head, each = 0.72, 1.9 if columns > 1 else 3.6  # inches
    height = head + each * rows if panels else head
    figure = Figure(figsize=(WIDTH / 96, height), facecolor="white")
    canvas = FigureCanvasAgg(figure)
    _heading(figure, facts, height, state or facts.state_words, _TONES[tone or facts.tone])
    if panels:
        grid = figure.add_gridspec(
            rows, columns, left=0.068, right=0.985, top=1 - (head + 0.25) / height,
            bottom=0.52 / height, hspace=0.58, wspace=0.28,
        )  # fmt: skip
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(grid[place // columns, place % columns])
            _draw(axes, panel, history, first=place == 0, columns=columns)
    if history is not None and panels:
        notes = ["▲ checkpoint"] * bool(history.checkpoints) + ["┆ a new attempt took up the run"] * bool(
            history.attempts
        )
        figure.text(0.988, 0.05 / height, "    ".join(notes), size=7, color=SOFT, ha="right", va="bottom")
    if ImageFormat(form) is ImageFormat.PNG:
        return png_of(canvas)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})  # no date: it would change with every save
    return buffer.getvalue()


def _heading(figure: Figure, facts: Facts, height: float, state: str, color: str) -> None:
    def line(inches: float) -> float:
        return 1 - inches / height

    name = figure.text(
        0.012,
        line(0.2),
        facts.name or facts.id,
        size=12,
        weight="bold",
        color=INK,
        va="center",
        parse_math=False,
    )
    figure.text(0.988, line(0.2), state, size=10, weight="bold", color=color, va="center", ha="right")
    if facts.name:  # the id beside it: below, a long one would run into the progress
        end = name.get_window_extent().x1 / figure.bbox.width
        figure.text(end + 0.012, line(0.2), facts.id, size=8.5, color=SOFT, va="center", parse_math=False)
    figure.text(0.012, line(0.41), facts.what, size=8.5, color=SOFT, va="center", parse_math=False)
    words = " · ".join([facts.progress_words, *facts.details])
    figure.text(0.988, line(0.41), words, size=8.5, color=SOFT, va="center", ha="right", parse_math=False)
    bar = figure.add_axes((0.012, line(0.58), 0.976, 0.055 / height))
    bar.set_axis_off()
    bar.set_xlim(0, 1)
    bar.set_ylim(0, 1)
    bar.axhspan(0, 1, color=GRID)
    if facts.fraction:
        bar.axvspan(0, facts.fraction, color=color)


def _draw(axes: Axes, panel: Panel, history: History | None, *, first: bool, columns: int) -> None:
    solid = sum(line.style is LineStyle.LINE for line in panel.lines)
    pairs = list(zip(panel.lines, panel.ys, panel.last, strict=True))
    for place, (line, y, last) in enumerate(pairs):
        color = PALETTE[line.color % len(PALETTE)]
        if line.style is LineStyle.UPPER:
            axes.fill_between(panel.x, y, pairs[place + 1][1], color=color, alpha=0.18, linewidth=0)
        elif line.style is LineStyle.FAINT:
            axes.plot(panel.x, y, color=color, linewidth=0.5, alpha=0.3)
        elif line.style is LineStyle.LINE:
            label = f"{line.label} {number(last)}" if math.isfinite(last) else line.label
            marker = "o" if len(panel.x) < 3 else ""  # one point alone makes no line
            axes.plot(panel.x, y, color=color, linewidth=1.3, label=label, marker=marker, markersize=3)
    dress(axes, panel.title, X_LABEL, panel.unit)
    if panel.note:
        axes.set_title(panel.note, loc="right", size=7, color=SOFT, pad=4)
    axes.yaxis.set_label_coords(
        -0.17 if columns > 1 else -0.045, 0.5
    )  # the same in all, whatever the width of the tick labels
    axes.xaxis.set_major_formatter(short_number)
    axes.xaxis.set_major_locator(few_ticks(integer=True))
    if history is None:
        axes.set_xlim(left=0)
    else:
        _mark(axes, history, first=first)
    if not len(panel.x):
        say_empty(axes, "no values yet")
    elif solid > 1:
        axes.legend(
            fontsize=6.5, facecolor="white", framealpha=0.85, edgecolor="none", loc="best", handlelength=1.2,
            labelspacing=0.25, borderaxespad=0.2, borderpad=0.2,
        )  # fmt: skip


def _mark(axes: Axes, history: History, *, first: bool) -> None:
    axes.set_xlim(0, max(1, history.last_step))
    steps = _apart(history.checkpoints, history.last_step / 40)
    axes.plot(
        steps,
        [0] * len(steps),
        linestyle="none",
        marker="^",
        markersize=3,
        color=SOFT,
        transform=axes.get_xaxis_transform(),
        clip_on=False,
    )
    for mark in history.attempts:
        axes.axvline(mark.step, color=SOFT, linewidth=0.8, linestyle=(0, (4, 3)))
        if first:
            late = mark.step > 0.75 * history.last_step
            axes.annotate(
                mark.label, (mark.step, 1), xycoords=axes.get_xaxis_transform(), xytext=(-2 if late else 2, -7),
                textcoords="offset points", ha="right" if late else "left", size=6.5, color=SOFT,
            )  # fmt: skip


def _apart(steps: list[int], least: float) -> list[int]:
    """Returns the steps that are far enough from the one before to be told apart."""
    kept: list[int] = []
    for step in steps:
        if not kept or step - kept[-1] >= least:
            kept.append(step)
    return kept
