"""Figures on the wire: words as JSON, numbers as one run of float32, thinned to what a screen can show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
from rlnb.view.series import MAX_POINTS, decimate

MAX_BINS = 800
"""Steps of a stack that are drawn: a bar narrower than a pixel cannot be seen."""


class Packer:
    """Collects arrays into one buffer; each is known by its offset and its length in numbers."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._end = 0

    def add(self, values: Floats | Sequence[float]) -> list[int]:
        """Appends values, flattened; returns [offset, length]."""
        # Values beyond float32 become infinite, which the browser draws as a gap.
        with np.errstate(over="ignore"):
            flat = np.ascontiguousarray(values, dtype=np.float32).ravel()
        self._parts.append(flat.tobytes())
        self._end += flat.size
        return [self._end - flat.size, flat.size]

    def bytes(self) -> bytes:
        """Returns everything that was added."""
        return b"".join(self._parts)


def pack(figure: Figure, packer: Packer) -> dict[str, Any]:
    """Describes a figure as JSON; its numbers go into `packer`.

    Args:
        figure: what to show.
        packer: receives the numbers.

    Returns:
        The figure's words with [offset, length] in place of each array. A long one is thinned: lines by
        minimum and maximum of each bucket, stacks by means, episodes by even choice along their order;
        `note` says so.
    """
    words: dict[str, Any] = {
        "key": figure.key,
        "title": figure.title,
        "note": figure.note,
        "wide": figure.wide,
        "empty": figure.empty,
    }
    match figure:
        case Stacked():
            words |= _stacked(figure, packer)
        case LinesFigure():
            words |= _lines(figure, packer)
        case Strips():
            words |= _strips(figure, packer)
        case Points():
            words |= _points(figure, packer)
        case Bars():
            words |= _bars(figure, packer)
        case HeatMap():
            words |= _heat_map(figure, packer)
        case _:
            raise TypeError(f"{type(figure).__name__} is no figure that can be drawn")
    thinned = words.pop("thinned", "")
    words["note"] = "; ".join(part for part in (figure.note, thinned) if part)
    unit = words.get("unit", "")
    words["said"] = f"{figure.title}{unit and f', {unit}'}: {figure.headline or figure.empty}"
    return words


def themed(color: Color) -> Color:
    """Returns a palette colour's place, so that a dark theme can show its own shade; others as they are."""
    return PALETTE.index(color) if color in PALETTE else color


def jitter(count: int) -> Floats:
    """Returns offsets in (-0.5, 0.5), shape (count,), that spread dots evenly and are always the same.

    Multiples of the golden ratio modulo one: neighbours in number are far apart, and no two coincide.
    """
    return np.asarray((np.arange(count) * 0.6180339887498949 + 0.5) % 1.0 - 0.5, dtype=np.float64)


def bin_means(x: Floats, ys: Floats, bins: int = MAX_BINS) -> tuple[Floats, Floats, int]:
    """Averages neighbouring steps until at most `bins` are left.

    Args:
        x: shape (n,).
        ys: shape (rows, n).
        bins: the most to return.

    Returns:
        The first x of each bin, the means of shape (rows, m) with NaN left out, and the steps of a bin.
    """
    size = -(-x.size // bins) if x.size else 1
    if size <= 1:
        return x, ys, 1
    starts = np.arange(0, x.size, size)
    known = np.isfinite(ys)
    count = np.add.reduceat(known, starts, axis=1, dtype=np.int64)
    total = np.add.reduceat(np.where(known, ys, 0.0), starts, axis=1)
    means = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return x[starts], means, size


def choose(values: Floats, most: int = MAX_POINTS) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Returns the places of at most `most` finite values, evenly along their order, both ends included."""
    order = np.argsort(values, kind="stable")[: np.isfinite(values).sum()]
    if order.size > most:
        order = order[np.linspace(0, order.size - 1, most).round().astype(np.intp)]
    return np.sort(order)


def _stacked(figure: Stacked, packer: Packer) -> dict[str, Any]:
    both = [*figure.layers, *figure.lines]
    x, ys, size = bin_means(figure.x, _rows(both, figure.x))
    cut = len(figure.layers)
    step = float(figure.x[1] - figure.x[0]) * size if figure.x.size > 1 else 1.0
    return {
        "kind": "stacked",
        "unit": figure.unit,
        "x_label": figure.x_label,
        "x": packer.add(x),
        "end": float(x[-1]) + step if x.size else 1.0,
        "cursor": figure.cursor,
        "layers": _layers(figure.layers, ys[:cut], packer),
        "lines": _layers(figure.lines, ys[cut:], packer),
        "thinned": f"mean of every {size} steps" if size > 1 else "",
    }


def _lines(figure: LinesFigure, packer: Packer) -> dict[str, Any]:
    x, ys = decimate(figure.x, _rows(figure.lines, figure.x))
    return {
        "kind": "lines",
        "unit": figure.unit,
        "x_label": figure.x_label,
        "x": packer.add(x),
        "end": float(x[-1]) if x.size else 1.0,
        "cursor": figure.cursor,
        "lines": _layers(figure.lines, ys, packer),
    }


def _strips(figure: Strips, packer: Packer) -> dict[str, Any]:
    groups, offsets, left_out = [], jitter(len(figure.values)), 0
    for label, color in figure.colors.items():
        places = np.flatnonzero(np.asarray(figure.labels, dtype=str) == label)
        chosen = places[choose(figure.values[places])]
        values = figure.of(label)
        left_out += values.size - chosen.size
        quartiles = np.percentile(values, [25, 75]).tolist() if values.size else []
        groups.append(
            {
                "name": label,
                "color": themed(color),
                "index": packer.add(chosen),
                "x": packer.add(figure.values[chosen]),
                "offset": packer.add(offsets[chosen]),
                "mean": float(values.mean()) if values.size else None,
                "quartiles": quartiles,
                "count": int(values.size),
                "names": [figure.names[i] for i in chosen],
            }
        )
    return {"kind": "strips", "unit": figure.unit, "groups": groups, "thinned": _some(left_out)}


def _points(figure: Points, packer: Packer) -> dict[str, Any]:
    known = np.where(np.isfinite(figure.y), figure.x, np.nan)
    chosen = choose(known)
    groups = []
    for label, color in figure.colors.items():
        places = [int(i) for i in chosen if figure.labels[i] == label]
        groups.append(
            {
                "name": label,
                "color": themed(color),
                "index": packer.add(places),
                "x": packer.add(figure.x[places]),
                "y": packer.add(figure.y[places]),
                "names": [figure.names[i] for i in places],
            }
        )
    return {
        "kind": "points",
        "x_label": figure.x_label,
        "y_label": figure.y_label,
        "groups": groups,
        "thinned": _some(int(np.isfinite(known).sum()) - chosen.size),
    }


def _bars(figure: Bars, packer: Packer) -> dict[str, Any]:
    return {
        "kind": "bars",
        "unit": figure.unit,
        "x_label": figure.x_label,
        "edges": packer.add(figure.edges),
        "stacked": figure.stacked and not figure.log,
        "log": figure.log,
        "layers": _layers(figure.layers, _rows(figure.layers, figure.edges[1:]), packer),
    }


def _heat_map(figure: HeatMap, packer: Packer) -> dict[str, Any]:
    most = max((float(counts.max()) for counts in figure.counts.values() if counts.size), default=0.0)
    maps = [
        {
            "name": label,
            "color": themed(figure.colors[label]),
            "counts": packer.add(counts),
            "share": f"{100 * figure.share(label):.0f} % of the map",
        }
        for label, counts in figure.counts.items()
    ]
    return {
        "kind": "heat",
        "x_label": figure.x_label,
        "y_label": figure.y_label,
        "x_edges": packer.add(figure.x_edges),
        "y_edges": packer.add(figure.y_edges),
        "most": most,
        "maps": maps,
        "thinned": f"full shade: {most:,.0f} steps in a cell; shades are logarithmic" if most else "",
    }


def _rows(layers: Sequence[Layer], x: Floats) -> Floats:
    return np.stack([layer.y for layer in layers]) if layers else np.empty((0, x.size))


def _layers(layers: Sequence[Layer], ys: Floats, packer: Packer) -> list[dict[str, Any]]:
    return [
        {"name": layer.name, "color": themed(layer.color), "dashed": layer.dashed, "y": packer.add(y)}
        for layer, y in zip(layers, ys, strict=True)
    ]


def _some(left_out: int) -> str:
    return f"{left_out:,} episodes are not drawn" if left_out > 0 else ""
