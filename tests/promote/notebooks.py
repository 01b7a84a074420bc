"""Small notebooks, written as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rlnb.jobs.capture.notebook import Cell, Notebook, read_notebook


def code(source: str, cell_id: str = "", *tags: str) -> Cell:
    return Cell(cell_id, "code", source, tags)


def notebook(
    folder: Path, *cells: Cell | str, name: str = "nb.ipynb", saved: float | None = None, **metadata: Any
) -> Notebook:
    """Writes a notebook and reads it back; strings are code cells c1, c2, … by position."""
    made = []
    for number, cell in enumerate(cells, start=1):
        given = code(cell) if isinstance(cell, str) else cell
        made.append(Cell(given.id or f"c{number}", given.kind, given.source, given.tags))
    path = folder / name
    path.write_text(Notebook(path, tuple(made), metadata).to_json())
    if saved is not None:
        os.utime(path, (saved, saved))
    return read_notebook(path)
