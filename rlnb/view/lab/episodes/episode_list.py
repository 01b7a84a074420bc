"""The list of episodes: a table in the browser, in which one row is chosen by a click or an arrow key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets as t

from rlnb.view.assets import source
from rlnb.view.facts import number
from rlnb.view.lab.charts.packing import themed
from rlnb.view.lab.episodes.episode_data import EpisodeRow

#: attribute of `EpisodeRow` that a column shows → its heading and what is said when it is pointed at
COLUMNS = {
    "label": ("episode", "policy and number; click to sort by policy"),
    "length": ("steps", "length of the episode"),
    "designed": ("designed return", "sum of the designed reward"),
    "environment": ("environment's", "sum of the environment's own reward"),
    "ending": ("ended", "terminated, or cut off by the time limit"),
}


class EpisodeList(anywidget.AnyWidget):
    """A table of episodes. What is chosen and how rows are sorted is decided in Python.

    Attributes:
        columns: [{"key", "text", "tip"}], the headings.
        rows: [{"place", "cells", "color", "group"}] in the order shown; `group` heads the first row of a policy.
        sort: key of the column that rows are sorted by, and `descending` its direction.
        selected: place of the episode that is looked at.
    """

    _esm = source("drawing.js", "lab_list.js")
    _css = source("theme.css", "lab_list.css")

    columns: t.List[Any] = t.List().tag(sync=True)
    rows: t.List[Any] = t.List().tag(sync=True)
    sort = t.Unicode("label").tag(sync=True)
    descending = t.Bool(False).tag(sync=True)
    selected = t.Int(0).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        # Without a width it would shrink to nothing in a row of widgets.
        super().__init__(**{"layout": {"width": "100%"}, **traits})
        self.columns = [{"key": key, "text": text, "tip": tip} for key, (text, tip) in COLUMNS.items()]

    def show(self, rows: Sequence[EpisodeRow], selected: int) -> None:
        """Shows episodes in the order given."""
        groups = _headings(rows) if self.sort == "label" else {}
        with self.hold_sync():
            self.rows = [
                {
                    "place": row.place,
                    "cells": [
                        row.name, f"{row.length:,}", _number(row.designed), _number(row.environment),
                        row.ending or "–",
                    ],
                    "color": themed(row.color),
                    "group": groups.get(row.place, ""),
                }
                for row in rows
            ]  # fmt: skip
            self.selected = selected

    def on_select(self, handle: Callable[[int], None]) -> None:
        """Calls `handle` with the place of the episode that was clicked or gone to."""
        self._on("select", int, handle)

    def on_sort(self, handle: Callable[[str], None]) -> None:
        """Calls `handle` with the key of the heading that was clicked."""
        self._on("sort", str, handle)

    def _on(self, word: str, kind: type, handle: Callable[[Any], None]) -> None:
        def receive(_widget: object, content: Any, _buffers: object) -> None:
            if isinstance(content, dict) and isinstance(content.get(word), kind):
                handle(content[word])

        self.on_msg(receive)


def _headings(rows: Sequence[EpisodeRow]) -> dict[int, str]:
    """Returns, for the first episode of each policy, how many there are and their mean return."""
    groups: dict[str, list[EpisodeRow]] = {}
    for row in rows:
        groups.setdefault(row.label, []).append(row)
    return {
        group[
            0
        ].place: f"{label or 'no policy named'}: {len(group):,} episode{'' if len(group) == 1 else 's'}, "
        f"mean designed return {_number(float(np.mean([row.designed for row in group])))}"
        for label, group in groups.items()
    }


def _number(value: float) -> str:
    return number(value).replace("-", "−") if np.isfinite(value) else "–"
