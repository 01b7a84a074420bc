"""A grid of small charts in the browser; see `rlnb.view.lab.charts.figures` for what they can show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets as t

from rlnb.view.assets import source
from rlnb.view.lab.charts.figures import Figure
from rlnb.view.lab.charts.packing import Packer, pack


class PlotsWidget(anywidget.AnyWidget):
    """A grid of charts that are replaced as a whole, in one message.

    Each instance carries the plotting library (50 KB), so one with many figures is better than many.
    Everything drawn is state: a page that is reloaded finds it in the kernel.

    Attributes:
        figures: words of each figure, made by `show`.
        data: for each figure's key its numbers, float32; `figures` holds offset and length of each array.
        cursor: the marked place on the x axis of figures that have a cursor, or None.
        marks: episodes that are ringed in `Strips` and `Points`: [{"index", "text"}], made by `select`.
        columns: the most charts in a row.
        height: of a chart's drawing in CSS pixels.
        measure: after drawing, the browser answers with `on_drawn`.
        stamp: the last update's; comes back with `on_drawn`.
        seq: counts updates.
    """

    _esm = source(
        "uPlot.iife.min.js",
        "drawing.js",
        "lab_figure.js",
        "lab_series.js",
        "lab_counts.js",
        "lab_episodes.js",
        "lab_plots.js",
    )
    _css = source("uPlot.min.css", "theme.css", "lab.css")

    figures: t.List[Any] = t.List().tag(sync=True)
    data: t.Dict[str, Any] = t.Dict().tag(sync=True)
    cursor = t.Float(None, allow_none=True).tag(sync=True)
    marks: t.List[Any] = t.List().tag(sync=True)
    columns = t.Int(3).tag(sync=True)
    height = t.Int(170).tag(sync=True)
    measure = t.Bool(False).tag(sync=True)
    stamp = t.Float(None, allow_none=True).tag(sync=True)
    seq = t.Int().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        # Without a width it would shrink to nothing in a row of widgets.
        super().__init__(**{"layout": {"width": "100%"}, **traits})

    @np.errstate(all="ignore")  # sums of huge rewards are infinite, and drawn so
    def show(self, figures: Sequence[Figure], stamp: float | None = None, *, partly: bool = False) -> None:
        """Shows figures; the browser draws only those whose words or numbers have changed.

        Args:
            figures: the charts in their order; keys must differ.
            stamp: a number that comes back once this update is drawn, see `measure`.
            partly: figures of other keys stay, and those given take the place of the ones with their keys.

        Raises:
            ValueError: Two figures have one key.
        """
        keys = [figure.key for figure in figures]
        if len(set(keys)) < len(keys):
            raise ValueError(f"each figure needs a key of its own, and these were given: {', '.join(keys)}")
        given = {figure.key: _packed(figure) for figure in figures}
        words = {word["key"]: word for word in self.figures}
        for key, (word, numbers) in given.items():
            old = words.get(key)
            word["change"] = old["change"] if old else self.seq + 1
            if word != old or numbers != self.data.get(key):
                word["change"] = self.seq + 1
        all_words = {key: word for key, (word, _) in given.items()}
        data = {key: numbers for key, (_, numbers) in given.items()}
        if partly:
            all_words, data = words | all_words, self.data | data
        with self.hold_sync():
            self.figures = list(all_words.values())
            self.data = data
            self.stamp = stamp
            self.seq += 1

    def select(self, indices: Sequence[int], texts: Sequence[str] | None = None) -> None:
        """Rings episodes in every `Strips` and `Points`.

        Args:
            indices: their places in the figures' arrays.
            texts: a short word beside each ring, e.g. "A"; none when None.
        """
        texts = [""] * len(indices) if texts is None else texts
        self.marks = [{"index": int(index), "text": text} for index, text in zip(indices, texts, strict=True)]

    def on_select(self, handle: Callable[[str, int], None]) -> None:
        """Calls `handle` with a figure's key and the place of the episode that was clicked.

        It is called in whatever thread the front end uses.
        """

        def receive(_widget: object, content: Any, _buffers: object) -> None:
            if isinstance(content, dict) and "select" in content:
                key, index = content["select"], content.get("index")
                if isinstance(key, str) and isinstance(index, int):
                    handle(key, index)

        self.on_msg(receive)

    def on_cursor(self, handle: Callable[[float | None], None]) -> None:
        """Calls `handle` with the cursor's place whenever it moves, by whomever."""
        self.observe(lambda change: handle(change["new"]), names="cursor")

    def on_drawn(self, handle: Callable[[int, float | None, float], None]) -> None:
        """Calls `handle` with each update that is on the screen, while `measure` is on.

        Args:
            handle: takes the update's number, its stamp, and when it was drawn by the browser's clock, in
                seconds since 1970; on one machine that is the clock of `time.time`.
        """

        def receive(_widget: object, content: Any, _buffers: object) -> None:
            if isinstance(content, dict) and isinstance(content.get("drawn"), int):
                handle(content["drawn"], content.get("stamp"), content.get("at", math.nan))

        self.on_msg(receive)


def _packed(figure: Figure) -> tuple[dict[str, Any], bytes]:
    packer = Packer()
    return pack(figure, packer), packer.bytes()
