"""The recordings of a lab as rows: what they are, how large, and away with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from html import escape

import ipywidgets as w

from rlnb.design.preview.preview import RewardPreview
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError, RlnbError
from rlnb.run.recording_entry import Entry
from rlnb.view.facts import size
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.episodes.episodes import Episodes
from rlnb.view.lab.widget_tree import close_tree

_WIDTHS = ("190px", "84px", "84px", "84px", "110px", "120px")
_HEADINGS = ("policy", "episodes", "steps", "size", "images", "recorded")


class RecordingsList:
    """Shows the recordings on disk and the notebook's own; renames and removes them.

    Args:
        bench: gets the episodes that are left.
        episodes: the recordings.

    Attributes:
        widget: what is shown, folded at first.
        trouble: sentences about recordings that were left out, always shown.
    """

    def __init__(self, bench: Workbench, episodes: Episodes) -> None:
        self._bench, self._episodes = bench, episodes
        self._armed: w.Button | None = None
        self._rows = w.VBox()
        self._rows.add_class("rlnb-recordings")
        self._message = w.HTML()
        self._message.add_class("rlnb-row-error")
        self.trouble = w.HTML()
        self.trouble.add_class("rlnb-row-error")
        self.widget = w.Accordion([w.VBox([self._rows, self._message])], selected_index=None)
        self.widget.observe(lambda _: self.show(), "selected_index")
        self.show()

    def show(self) -> None:
        """Shows what there is; the rows only while they are unfolded."""
        entries = self._episodes.entries()
        total = sum(entry.bytes + entry.frame_bytes for entry in entries)
        count = f"{len(entries)} recording{'' if len(entries) == 1 else 's'}"
        self.widget.set_title(0, f"{count} on disk ({size(total)})")
        self.trouble.value = "<br>".join(map(escape, self._episodes.trouble))
        if self.widget.selected_index is None:
            return
        self._armed = None
        demo = self._episodes.demo
        own = (
            []
            if demo is None
            else [_row(w.Label(_labels(demo)), _facts_of(demo), w.Label("from the notebook"))]
        )
        old = self._rows.children
        self._rows.children = [
            _row(w.Label(_HEADINGS[0]), _HEADINGS[1:], w.Label("")).add_class("rlnb-recordings-head"),
            *own,
            *(self._entry_row(entry) for entry in entries),
        ]
        for row in old:
            close_tree(row)

    def _entry_row(self, entry: Entry) -> w.HBox:
        name = w.Text(value=entry.label, continuous_update=False, tooltip="type another name for this policy")
        name.observe(lambda change: self._rename(entry, change["new"]), "value")
        remove = w.Button(description="Remove", icon="trash", layout=w.Layout(width="104px"))
        remove.tooltip = entry.path.name
        remove.on_click(lambda button: self._remove(entry, button))
        return _row(name, _facts(entry), remove)

    def _rename(self, entry: Entry, label: str) -> None:
        if label.strip() != entry.label:
            self._do(lambda: self._episodes.rename(entry.id, label))

    def _remove(self, entry: Entry, button: w.Button) -> None:
        """Removes at the second click; a click on another row's button asks there."""
        if self._armed is not button:
            if self._armed is not None:
                self._armed.description, self._armed.button_style = "Remove", ""
            self._armed = button
            button.description, button.button_style = "Really?", "danger"
            return
        self._do(lambda: self._take_away(entry))

    def _take_away(self, entry: Entry) -> None:
        """Removes a recording, unless the design needs what only it has, such as an entry of `info`."""
        left = self._episodes.load(without=entry.id)
        if left is not None and left.batch is not None:
            try:
                RewardPreview(left.batch, self._bench.reward)
            except DesignError as error:
                raise DesignError(f"{entry.label} is not removed, as the design needs it: {error}") from error
        self._episodes.remove(entry.id)

    def _do(self, action: Callable[[], None]) -> None:
        try:
            action()
            recorded = self._episodes.load()
            if recorded is not None:
                self._bench.set_episodes(recorded)  # whereupon the rows are shown anew
            self._message.value = ""
        except RlnbError as error:
            self._message.value = escape(str(error))
            self.show()


def _row(name: w.Widget, facts: tuple[str, ...], last: w.Widget) -> w.HBox:
    name.layout.width = _WIDTHS[0]
    cells = [
        w.Label(text, layout=w.Layout(width=width)) for text, width in zip(facts, _WIDTHS[1:], strict=True)
    ]
    made = w.HBox([name, *cells, last])
    made.add_class("rlnb-recording")
    return made


def _facts(entry: Entry) -> tuple[str, ...]:
    images = size(entry.frame_bytes) if entry.frame_bytes else "none"
    return f"{entry.episodes:,}", f"{entry.steps:,}", size(entry.bytes), images, _when(entry.created)


def _facts_of(demo: Transitions) -> tuple[str, ...]:
    return f"{len(demo.starts):,}", f"{len(demo):,}", "–", "none", "–"


def _labels(demo: Transitions) -> str:
    return ", ".join(dict.fromkeys(demo.labels.values())) or "no policy named"


def _when(created: str) -> str:
    """Returns a UTC time in the clock of whoever looks."""
    try:
        return datetime.fromisoformat(created).astimezone().strftime("%d %b %H:%M")
    except ValueError:
        return created
