"""The browser's part of the widgets, as text: scripts and style sheets in `static/`."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"


def source(*names: str) -> str:
    """Joins files of `static/` into one module or one style sheet.

    A module is built from several files because a widget carries a single one: names at the top of a file
    are seen by those that follow it, and the last one exports.

    Args:
        names: file names, in order.
    """
    return "\n".join((STATIC / name).read_text(encoding="utf-8") for name in names)
