"""The notebook as a file: its cells, and which of them a job runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlnb.errors import CaptureError

#: Cells with this tag belong to the prototype and are not run in jobs.
NOTEBOOK_ONLY = "notebook-only"
PARAMETERS = "parameters"
INJECTED = "injected-parameters"

_KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
_CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INSTALL = re.compile(r"^\s*(?:[%!]{1,2}\s*(?:\S*python\S*\s+-m\s+)?(?:pip3?|conda|mamba|uv\s+pip|uv)\s)")


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        id: unique in the notebook.
        kind: "code", "markdown" or "raw".
        source: its text.
        tags: of its metadata.
        metadata: the rest of its metadata, kept as it is.
    """

    id: str
    kind: str
    source: str
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def in_job(self) -> bool:
        """Whether a job runs the cell."""
        return self.kind == "code" and NOTEBOOK_ONLY not in self.tags and bool(self.source.strip())


@dataclass(frozen=True)
class Notebook:
    """The content of a notebook without its outputs."""

    path: Path
    cells: tuple[Cell, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def saved(self) -> float:
        """When the file was last written, in seconds since the epoch; 0 when it is gone."""
        return self.path.stat().st_mtime if self.path.exists() else 0.0

    @property
    def code(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.kind == "code")

    def number(self, cell_id: str) -> int:
        """The 1-based position of a cell, as people count cells; 0 when it is not there."""
        return next((n for n, cell in enumerate(self.cells, start=1) if cell.id == cell_id), 0)

    def with_cells(self, cells: Iterable[Cell]) -> Notebook:
        return replace(self, cells=tuple(cells))

    def to_json(self) -> str:
        """The notebook as a file of format 4.5, without outputs and widget state."""
        cells = []
        for cell in self.cells:
            about = {**cell.metadata, **({"tags": list(cell.tags)} if cell.tags else {})}
            code: dict[str, Any] = {"execution_count": None, "outputs": []} if cell.kind == "code" else {}
            lines = cell.source.splitlines(keepends=True)
            cells.append({"cell_type": cell.kind, "id": cell.id, "metadata": about, "source": lines, **code})
        # papermill refuses a notebook that does not say its language.
        metadata = {"kernelspec": _KERNELSPEC, "language_info": {"name": "python"}, **self.metadata}
        content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read_notebook(path: Path) -> Notebook:
    """Read an .ipynb file.

    Raises:
        CaptureError: it is missing, torn, not a notebook, or not in Python.
    """
    if not path.is_file():
        raise CaptureError(
            f"There is no notebook {path}; pass notebook='…' with the path of the .ipynb file."
        )
    try:
        content = json.loads(path.read_bytes())
        version = content["nbformat"]
        cells = content["cells"] if version >= 4 else []
        metadata = content.get("metadata", {})
    except ValueError as error:
        raise CaptureError(
            f"{path} is no notebook: it is no JSON ({error}); give the path of an .ipynb file that Jupyter has saved."
        ) from None
    except (KeyError, TypeError, AttributeError):
        raise CaptureError(
            f"{path} is no notebook: it lacks 'nbformat' or 'cells'; give the path of an .ipynb file that Jupyter has saved."
        ) from None
    if version != 4:
        raise CaptureError(
            f"{path} has notebook format {version}; open it in JupyterLab and save it as format 4."
        )
    language = metadata.get("kernelspec", {}).get("language") or metadata.get("language_info", {}).get("name")
    if language and str(language).lower() not in ("python", "ipython"):
        raise CaptureError(f"{path} is a notebook for {language}; rlnb runs Python notebooks.")
    kept = {key: metadata[key] for key in ("kernelspec", "language_info") if key in metadata}
    return Notebook(path, _cells(cells), kept)


def _cells(raw: Sequence[Mapping[str, Any]]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    used: set[str] = set()
    for position, entry in enumerate(raw):
        metadata = dict(entry.get("metadata", {}))
        tags = tuple(str(tag) for tag in metadata.pop("tags", ()))
        cell_id = str(entry.get("id", ""))
        if not _CELL_ID.fullmatch(cell_id) or cell_id in used:
            cell_id = f"cell-{position + 1}"  # formats before 4.5 have no ids
        used.add(cell_id)
        source = entry.get("source", "")
        text = source if isinstance(source, str) else "".join(source)
        cells.append(Cell(cell_id, str(entry.get("cell_type", "raw")), text, tags, metadata))
    return tuple(cells)


def without_installs(source: str) -> tuple[str, list[str]]:
    """Turn `%pip`, `!pip` and their like into comments, because jobs do not install packages.

    Line numbers stay the same, so that a job's tracebacks point at the right line.

    Returns:
        The source, and the lines that were taken out.
    """
    lines = source.split("\n")
    removed = [line.strip() for line in lines if _INSTALL.match(line)]
    kept = [f"# not run in jobs: {line.strip()}" if _INSTALL.match(line) else line for line in lines]
    if removed and all(not line.strip() or line.lstrip().startswith("#") for line in kept):
        return "\n".join(kept), removed
    # An install that is the only statement of a block must leave a statement behind.
    blocks = [
        f"{line[: len(line) - len(line.lstrip())]}pass  {new}" if new != line and line[:1].isspace() else new
        for line, new in zip(lines, kept, strict=True)
    ]
    return "\n".join(blocks), removed
