"""Capture in a real kernel: what JupyterLab, papermill and nbmake tell, and what a person does to cells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlnb.jobs.capture.notebook import Notebook
from tests.promote.live import LiveNotebook
from tests.promote.notebooks import code, notebook

#: What promote() does before it writes anything, and what it has found by then.
PROBE = """
import json
from rlnb.promote import _notebook_here
from rlnb.prepare import prepare
source, runs, call = _notebook_here(None)
made = prepare(source, runs, call=call, store="/nowhere")
print(json.dumps({
    "path": str(source.path), "target": [made.target.cell, made.target.call], "parameters": dict(made.parameters),
    "code": [cell.source for cell in made.notebook.code], "findings": [f.code for f in made.findings],
}))
""".strip()


@pytest.fixture
def book(tmp_path: Path) -> Notebook:
    made = notebook(
        tmp_path,
        code("seed = 0", "p", "parameters"),
        code("import rlnb", "i"),
        code("a = 1", "a"),
        code(PROBE, "t"),
    )
    os.utime(made.path, (1e9, 1e9))
    return made


def _found(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return found


def test_jupyterlab(book: Notebook) -> None:
    with LiveNotebook(book) as live:
        found = _found(live.run_all())
        assert found["path"] == str(book.path)
        assert found["target"] == ["t", 1]
        assert found["code"] == ["seed = 0", "import rlnb", "a = 1", PROBE]
        assert found["findings"] == []
        assert _found(live.run(PROBE, "t"))["target"] == ["t", 1], "a cell that runs again counts anew"
        assert _found(live.run(f"{PROBE}\n{PROBE}", "t"))["target"] == ["t", 2]


def test_edits_failures_new_and_deleted_cells(book: Notebook) -> None:
    with LiveNotebook(book) as live:
        live.run("seed = 0", "p")
        live.run("import rlnb", "i")
        live.run("a = 2", "a")
        assert live.run("a = 1 / 0", "a") == "ZeroDivisionError: division by zero"
        live.run("new = 1", "n")
        live.run("gone = 1", "g")
        book.path.write_text(book.path.read_text())  # saved, without the cells that were deleted
        live.run("after_save = 1", "s")
        found = _found(live.run(PROBE, "t"))
    # The cell before the unsaved one is a deleted one; it follows the last one that is there.
    assert found["code"] == ["seed = 0", "import rlnb", "a = 2", "after_save = 1", PROBE]
    assert sorted(found["findings"]) == ["cell_differs", "deleted_cells", "unsaved_cell"]


def test_cells_that_ran_before_the_import_are_known_by_their_source(book: Notebook) -> None:
    with LiveNotebook(book) as live:
        live.run("1 / 0", "x")
        live.run("seed = 0", "p")
        live.run("a = 1", "a")
        live.run("import rlnb", "i")
        found = _found(live.run(PROBE, "t"))
    assert found["code"] == ["seed = 0", "import rlnb", "a = 1", PROBE]
    assert found["findings"] == []


def test_plain_papermill_and_nbmake_tell_nothing(book: Notebook) -> None:
    with LiveNotebook(book, named=False, ids=False) as live:
        live.run("seed = 0")
        live.run("# Parameters\nseed = 5\n")
        live.run("import rlnb")
        live.run("a = 1")
        found = _found(live.run(PROBE))
    assert found["path"] == str(book.path)
    assert found["target"] == ["t", 1]
    assert found["parameters"] == {"seed": 5}
    assert found["code"] == ["seed = 0", "# Parameters\nseed = 5", "import rlnb", "a = 1", PROBE]


def test_a_notebook_that_cannot_be_found_is_said(book: Notebook) -> None:
    with LiveNotebook(book, named=False) as live:
        text = live.run("import rlnb\nsomething = 'else'\n" + PROBE, "zz")
    assert text.startswith(
        "CaptureError: The notebook's file could not be found from its kernel; pass notebook='…'"
    )


def test_the_papermill_command(book: Notebook, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "papermill", "nb.ipynb", "out.ipynb", "-p", "seed", "5", "-k", "python3"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    executed = json.loads((tmp_path / "out.ipynb").read_text())
    found = _found("".join(executed["cells"][-1]["outputs"][0]["text"]).strip())
    assert (found["path"], found["target"], found["parameters"]) == (str(book.path), ["t", 1], {"seed": 5})
