"""The look of a lab's controls and tables, carried by a widget without a face."""

from __future__ import annotations

import ipywidgets as w

from rlnb.view.assets import source


def table_css() -> str:
    """Returns the stylesheet of tables, pictures and findings, for documents without the Lab's widgets."""
    return source("lab_tables.css")


def style() -> w.HTML:
    """Returns the widget that brings the stylesheet into the page."""
    made = w.HTML(f"<style>{source('lab_controls.css')}\n{table_css()}</style>")
    made.layout.display = "none"
    return made
