"""The look of a lab's controls: one stylesheet, carried by a widget without a face."""

from __future__ import annotations

from pathlib import Path

import ipywidgets as w

_CSS = Path(__file__).parents[1] / "static" / "lab_controls.css"


def style() -> w.HTML:
    """Returns the widget that brings the stylesheet into the page."""
    made = w.HTML(f"<style>{_CSS.read_text(encoding='utf-8')}</style>")
    made.layout.display = "none"
    return made
