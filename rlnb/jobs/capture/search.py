"""Where the notebook is that runs in this kernel: each front end tells it in its own way, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.errors import CaptureError
from rlnb.jobs.capture.notebook import read_notebook
from rlnb.jobs.capture.recorder import CellRun


def find_notebook(
    explicit: str | Path | None,
    *,
    namespace: Mapping[str, Any],
    runs: Sequence[CellRun],
    environ: Mapping[str, str] | None = None,
) -> Path:
    """Find the file of the notebook that runs here.

    In this order: `explicit`; VS Code's `__vsc_ipynb_file__`; papermill's `PAPERMILL_INPUT_PATH`;
    JupyterLab's `JPY_SESSION_NAME`; and, under plain papermill or nbmake, which say nothing, the
    only notebook of the working directory that has every cell that ran.

    Args:
        explicit: what the user passed as `notebook=`, or None.
        namespace: the user's variables.
        runs: what ran in this kernel; empty outside IPython.
        environ: environment variables; this process's by default.

    Raises:
        CaptureError: none is found, or the one named is not the one that runs here.
    """
    environ = os.environ if environ is None else environ
    if explicit is not None:
        given: object = explicit
        if not isinstance(given, str | Path):
            raise CaptureError(f"notebook={given!r:.80} is no path; pass the path of the .ipynb file.")
        path = Path(explicit).expanduser().absolute()
        if path.suffix != ".ipynb" or not path.is_file():
            raise CaptureError(
                f"notebook={str(explicit)!r} is not an existing .ipynb file; pass the notebook's path."
            )
        return path
    if not runs:
        raise CaptureError(
            "promote() runs outside a notebook; pass notebook='…' with the notebook the job shall run."
        )
    named = (
        namespace.get("__vsc_ipynb_file__")
        or namespace.get("PAPERMILL_INPUT_PATH")
        or environ.get("JPY_SESSION_NAME")
    )
    # Older servers give the path relative to their root, while the kernel runs in the notebook's folder.
    for path in (Path(str(named)).absolute(), Path.cwd() / Path(str(named)).name) if named else ():
        if path.is_file() and knows(path, runs):
            return path
    found = {_executed_from(path) for path in Path.cwd().glob("*.ipynb") if _has_all(path, runs)}
    candidates = sorted(path for path in found if path is not None)
    if len(candidates) == 1:
        return candidates[0]
    if len(candidates) > 1:
        names = ", ".join(path.name for path in candidates)
        raise CaptureError(
            f"Several notebooks hold the cells that ran here ({names}); pass notebook='…' with yours."
        )
    if named:
        raise CaptureError(
            f"The notebook is said to be {str(named)!r}, which is not there or has none of the cells that ran here "
            "(was it renamed or never saved?); save it, or pass notebook='…' with its path."
        )
    raise CaptureError(
        "The notebook's file could not be found from its kernel; pass notebook='…' with its path."
    )


def _sources(path: Path) -> tuple[set[str], set[str]]:
    try:
        notebook = read_notebook(path)
    except CaptureError:
        return set(), set()
    return {cell.source.strip() for cell in notebook.code}, {cell.id for cell in notebook.code}


def knows(path: Path, runs: Sequence[CellRun]) -> bool:
    """Says whether a notebook has any of the cells that ran, or no code yet."""
    sources, ids = _sources(path)
    # A file without code cells may be a new notebook that was not saved since.
    return not sources or any(run.source.strip() in sources or run.cell_id in ids for run in runs)


def _executed_from(path: Path) -> Path | None:
    """The notebook itself, or the one that papermill is executing when this is its output.

    Returns:
        None for an output whose input is gone.
    """
    about = json.loads(path.read_bytes()).get("metadata", {}).get("papermill")
    if not isinstance(about, dict):
        return path
    source = Path(str(about.get("input_path"))).absolute()
    return source if source.is_file() else None


def _has_all(path: Path, runs: Sequence[CellRun]) -> bool:
    sources, _ = _sources(path)
    ran = {run.source.strip() for run in runs if not run.source.startswith("# Parameters\n")}
    return bool(ran) and ran <= sources
