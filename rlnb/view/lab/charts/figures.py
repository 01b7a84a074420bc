"""What the Lab's charts show, as plain values: the browser draws them, and so does a still picture.

A figure says everything in words and numbers; nothing in it knows how it is drawn. An episode is named by
its place in the arrays of `Strips` and `Points`, so that a click can tell which one was meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlnb.view.facts import number
from rlnb.view.history import Floats

Color = int | str
"""A place in the palette, which has a set for each theme; "ink", the colour of text; "var(--name)"; or "#rrggbb"."""


@dataclass(frozen=True, eq=False)
class Figure:
    """One chart.

    Attributes:
        key: a stable word for this chart; events carry it.
        title: what it shows.
        note: how the values were made, e.g. "mean of 20 episodes".
        wide: takes a row of the grid for itself.
        empty: what is said instead when there are no values.
    """

    key: str
    title: str
    note: str = field(default="", kw_only=True)
    wide: bool = field(default=False, kw_only=True)
    empty: str = field(default="no values yet", kw_only=True)

    @property
    def headline(self) -> str:
        """The main numbers in words, for readers who do not see the chart."""
        return ""


@dataclass(frozen=True)
class Layer:
    """One named row of values.

    Attributes:
        name: what the legend calls it.
        color: see `Color`.
        y: shape (n,).
        dashed: a line of dashes.
    """

    name: str
    color: Color
    y: Floats
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class Stacked(Figure):
    """Shares of a sum along a row of steps: what is positive piles up from zero, what is negative down.

    Attributes:
        unit: unit of the y axis, e.g. "reward per step".
        x_label: label of the x axis.
        x: shape (n,), increasing.
        layers: the shares, each of shape (n,).
        lines: drawn on top, e.g. the total and the environment's own reward.
        cursor: shows the widget's cursor and lets a click set it.
    """

    unit: str
    x_label: str
    x: Floats
    layers: Sequence[Layer]
    lines: Sequence[Layer] = ()
    cursor: bool = True

    @property
    def headline(self) -> str:
        return _sums([*self.lines, *self.layers], len(self.x))


@dataclass(frozen=True, eq=False)
class LinesFigure(Figure):
    """Values along a row of steps, such as observation components along an episode.

    Attributes: as of `Stacked`.
    """

    unit: str
    x_label: str
    x: Floats
    lines: Sequence[Layer]
    cursor: bool = True

    @property
    def headline(self) -> str:
        ranges = [(line.name, line.y[np.isfinite(line.y)]) for line in self.lines]
        return ", ".join(
            f"{name} from {number(float(y.min()))} to {number(float(y.max()))}"
            for name, y in ranges
            if y.size
        )


@dataclass(frozen=True, eq=False)
class Strips(Figure):
    """One number per episode, as dots in a strip for each policy label.

    Attributes:
        unit: unit of the numbers, e.g. "reward per episode".
        values: shape (episodes,).
        labels: the policy label of each.
        names: what each episode is called.
        colors: of each label; their order is the strips'.
    """

    unit: str
    values: Floats
    labels: Sequence[str]
    names: Sequence[str]
    colors: Mapping[str, Color]

    def of(self, label: str) -> Floats:
        """Returns the finite values of one label."""
        wanted = np.asarray(self.labels, dtype=str) == label
        found: Floats = self.values[wanted & np.isfinite(self.values)]
        return found

    @property
    def headline(self) -> str:
        strips = [(label, self.of(label)) for label in self.colors]
        return ", ".join(
            f"{label} mean {number(float(v.mean()))} of {v.size}" for label, v in strips if v.size
        )


@dataclass(frozen=True, eq=False)
class Bars(Figure):
    """A histogram with one row of bars for each policy label.

    Attributes:
        unit: unit of the counts, e.g. "steps".
        x_label: what is counted, with its unit.
        edges: shape (bins + 1,), increasing.
        layers: counts, each of shape (bins,).
        stacked: on top of each other instead of over each other.
        log: the counts' axis is logarithmic; bars of different labels are then never stacked.
    """

    unit: str
    x_label: str
    edges: Floats
    layers: Sequence[Layer]
    stacked: bool = False
    log: bool = False

    @property
    def headline(self) -> str:
        parts = []
        for layer in self.layers:
            if layer.y.sum():
                place = int(np.argmax(layer.y))
                middle = float(self.edges[place] + self.edges[place + 1]) / 2
                parts.append(f"{layer.name}: {layer.y.sum():,.0f} {self.unit}, most near {number(middle)}")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Points(Figure):
    """Two numbers per episode, e.g. its return under the design and under the environment's reward.

    Attributes:
        x_label: label of the x axis with its unit; `y_label` likewise.
        x: shape (episodes,); `y` likewise.
        labels: the policy label of each episode.
        names: what each episode is called.
        colors: of each label.
    """

    x_label: str
    y_label: str
    x: Floats
    y: Floats
    labels: Sequence[str]
    names: Sequence[str]
    colors: Mapping[str, Color]

    @property
    def headline(self) -> str:
        counts = [(label, sum(one == label for one in self.labels)) for label in self.colors]
        return ", ".join(f"{count} of {label}" for label, count in counts if count)


@dataclass(frozen=True, eq=False)
class HeatMap(Figure):
    """Where each policy's rollouts have been: one map per label, on common axes and one scale of shades.

    Attributes:
        x_label: label of the x axis with its unit; `y_label` likewise.
        x_edges: shape (columns + 1,); `y_edges` of shape (rows + 1,).
        counts: for each label, steps in each cell, shape (columns, rows) as of `numpy.histogram2d`.
        colors: of each label.
    """

    x_label: str
    y_label: str
    x_edges: Floats
    y_edges: Floats
    counts: Mapping[str, Floats]
    colors: Mapping[str, Color]

    def share(self, label: str) -> float:
        """Returns the share of cells that a label's rollouts have visited."""
        return float(np.mean(self.counts[label] > 0)) if self.counts[label].size else 0.0

    @property
    def headline(self) -> str:
        return ", ".join(f"{label} in {100 * self.share(label):.0f} % of the map" for label in self.counts)


def _sums(layers: Sequence[Layer], steps: int) -> str:
    if not steps:
        return ""
    sums = ", ".join(f"{layer.name} {number(float(np.nansum(layer.y)))}" for layer in layers)
    return f"sums over {steps:,} steps: {sums}"
