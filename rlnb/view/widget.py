"""The browser's side of the live view, as an anywidget: traits that `static/*.js` draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import numpy as np
import traitlets as t

from rlnb.view.assets import source
from rlnb.view.panels import Panel


class ChartsWidget(anywidget.AnyWidget):
    """A heading with progress and buttons above a grid of charts.

    Each chart's numbers are a trait of their own, so that an update carries only the charts that changed
    and a page that is reloaded finds everything in the kernel. All changes of one update travel in one
    message; `seq` tells the browser that it is whole.

    Attributes:
        head: words and numbers of the heading, see `rlnb.view.subject.Head`.
        panels: what each chart is; its numbers are in `data_<key>`: x, then each line, as float64.
        marks: {"attempts": [{"step", "label"}], "checkpoints": [steps], "last_step": the x axis' end}.
        seq: counts updates.
    """

    _esm = source("uPlot.iife.min.js", "drawing.js", "chart.js", "job.js")
    _css = source("uPlot.min.css", "theme.css", "job.css")

    head = t.Dict().tag(sync=True)
    panels: t.List[Any] = t.List().tag(sync=True)
    marks = t.Dict().tag(sync=True)
    seq = t.Int().tag(sync=True)
    data_return = t.Bytes().tag(sync=True)
    data_length = t.Bytes().tag(sync=True)
    data_terms = t.Bytes().tag(sync=True)
    data_value_loss = t.Bytes().tag(sync=True)
    data_policy_loss = t.Bytes().tag(sync=True)
    data_kl = t.Bytes().tag(sync=True)
    data_entropy = t.Bytes().tag(sync=True)
    data_exploration = t.Bytes().tag(sync=True)
    data_speed = t.Bytes().tag(sync=True)

    def on_verb(self, handle: Callable[[str], None]) -> None:
        """Calls `handle` with the verb of each button that is pressed; in whatever thread the front end uses."""

        def receive(_widget: object, content: Any, _buffers: object) -> None:
            if isinstance(content, dict) and isinstance(content.get("verb"), str):
                handle(content["verb"])

        self.on_msg(receive)

    def show(
        self, head: dict[str, Any], panels: list[Panel] | None = None, marks: dict[str, Any] | None = None
    ) -> None:
        """Sends one update.

        Args:
            head: the heading.
            panels: the charts; None when they are as before.
            marks: attempts and checkpoints; None when they are as before.
        """
        with self.hold_sync():
            self.head = head
            if panels is not None:
                for panel in panels:
                    setattr(self, f"data_{panel.key}", pack(panel))
                self.panels = [describe(panel) for panel in panels]
            if marks is not None:
                self.marks = marks
            self.seq += 1


def pack(panel: Panel) -> bytes:
    """Returns x and then each line of a panel as float64."""
    if not panel.lines:
        return b""
    return np.vstack([panel.x, panel.ys]).astype(np.float64).tobytes()


def describe(panel: Panel) -> dict[str, Any]:
    """Returns a panel without its numbers, as JSON."""
    return {
        "key": panel.key,
        "title": panel.title,
        "unit": panel.unit,
        "note": panel.note,
        "lines": [
            {"label": line.label, "style": str(line.style), "color": line.color} for line in panel.lines
        ],
        # JSON has no NaN.
        "last": [value if np.isfinite(value) else None for value in panel.last],
    }
