"""Ends widgets that are shown no more, so that neither the kernel nor the page keeps them."""

from __future__ import annotations

import ipywidgets as w


def close_tree(widget: w.Widget) -> None:
    """Closes a widget and all that is inside it."""
    for child in getattr(widget, "children", ()):
        close_tree(child)
    widget.close()
