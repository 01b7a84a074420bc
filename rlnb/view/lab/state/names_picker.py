"""Chooses some of a state's components: a short line that opens a box of names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets as w

from rlnb.view.lab.widget_tree import close_tree

#: names up to this many are check boxes, more are a list
_MOST_BOXES = 48


class NamesPicker:
    """Which components an operation works on.

    Args:
        change: takes the names chosen, None for all; returns whether it worked.
        all_words: how "all" is called, e.g. "all components".

    Attributes:
        widget: the line that says which; a click opens `box`.
        box: the names, hidden at first.
    """

    def __init__(
        self, change: Callable[[tuple[str, ...] | None], bool], all_words: str = "all components"
    ) -> None:
        self._change, self._all_words = change, all_words
        self._names: tuple[str, ...] = ()
        self._chosen: tuple[str, ...] | None = None
        self._quiet = False
        self._boxes: list[w.Checkbox] = []
        self._list: w.SelectMultiple | None = None
        self.widget = w.ToggleButton(icon="caret-down", layout=w.Layout(width="auto", min_width="150px"))
        self.widget.tooltip = "choose components"
        self.widget.add_class("rlnb-names-button")
        self._all = w.Button(description="All", layout=w.Layout(width="auto"))
        self._all.tooltip = f"{all_words}, also those that operations above may add"
        self._all.on_click(lambda _: self._take_all())
        self.box = w.Box([self._all], layout=w.Layout(display="none", flex_flow="row wrap"))
        self.box.add_class("rlnb-names-box")
        self.widget.observe(lambda _: self._open(), "value")

    def show(self, names: Sequence[str], chosen: Sequence[str] | None) -> None:
        """Shows which of the names are chosen; None means all."""
        self._names, self._chosen = tuple(names), None if chosen is None else tuple(chosen)
        self.widget.description = self._words()
        if self.widget.value:
            self._fill()

    def _words(self) -> str:
        if self._chosen is None:
            return self._all_words
        listed = ", ".join(self._chosen[:3])
        more = len(self._chosen) - 3
        return listed + (f" + {more}" if more > 0 else "")

    def _open(self) -> None:
        self.box.layout.display = "flex" if self.widget.value else "none"
        if self.widget.value:
            self._fill()

    def _fill(self) -> None:
        self._quiet = True
        try:
            chosen = set(self._names if self._chosen is None else self._chosen)
            if len(self._names) > _MOST_BOXES:
                self._fill_list(chosen)
            else:
                self._fill_boxes(chosen)
        finally:
            self._quiet = False

    def _fill_boxes(self, chosen: set[str]) -> None:
        if [box.description for box in self._boxes] != list(self._names):
            old = self._boxes
            self._boxes = [
                w.Checkbox(description=name, indent=False, layout=w.Layout(width="auto"))
                for name in self._names
            ]
            for box in self._boxes:
                box.observe(lambda _: self._take(), "value")
            self.box.children = [self._all, *self._boxes]
            for box in old:
                close_tree(box)
        for box in self._boxes:
            box.value = box.description in chosen
        self.box.children = [self._all, *self._boxes]

    def _fill_list(self, chosen: set[str]) -> None:
        if self._list is None:
            self._list = w.SelectMultiple(rows=10, layout=w.Layout(width="320px"))
            self._list.observe(lambda _: self._take(), "value")
        if self._list.options != self._names:
            self._list.options = self._names
        self._list.value = tuple(name for name in self._names if name in chosen)
        self.box.children = [self._all, self._list]

    def _take_all(self) -> None:
        self._try(None)
        if self._chosen is None:
            self._fill()

    def _take(self) -> None:
        if self._quiet:
            return
        listing = self._list is not None and self._list in self.box.children
        ticked = self._list.value if listing and self._list is not None else [
            box.description for box in self._boxes if box.value
        ]  # fmt: skip
        # what was named first stays first: the order is part of the design
        kept = [name for name in self._chosen or self._names if name in ticked]
        self._try((*kept, *(name for name in ticked if name not in kept)))

    def _try(self, chosen: tuple[str, ...] | None) -> None:
        before = self._chosen
        self._chosen = chosen
        if not self._change(chosen):
            # the ticks stay as they are, beside the sentence that says what is wrong
            self._chosen = before
        self.widget.description = self._words()
