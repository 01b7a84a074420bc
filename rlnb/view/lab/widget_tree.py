"""Ends widgets that are shown no more, so that neither the kernel nor the page keeps them."""

from __future__ import annotations

import ipywidgets as w


def close_tree(widget: w.Widget) -> None:
    """Closes a widget, all that is inside it, and the layout and style that go with each."""
    for child in getattr(widget, "children", ()):
        close_tree(child)
    parts = [getattr(widget, name, None) for name in ("layout", "style")]
    widget.close()
    for part in parts:
        if isinstance(part, w.Widget):
            part.close()
