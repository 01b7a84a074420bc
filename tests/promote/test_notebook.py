"""Reading notebooks, finding the one that runs here, and leaving installs out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlnb.errors import CaptureError
from rlnb.jobs.capture.notebook import read_notebook, without_installs
from rlnb.jobs.capture.recorder import CellRun
from rlnb.jobs.capture.search import find_notebook
from tests.promote.notebooks import code, notebook


def test_round_trip_drops_outputs_and_keeps_ids_tags_and_kernel(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "id": "x1", "metadata": {"tags": ["parameters"], "k": 1}, "source": ["a = 1\n", "b = 2"],
            "outputs": [{"output_type": "stream"}], "execution_count": 3}  # fmt: skip
    content = {
        "cells": [cell],
        "metadata": {"kernelspec": {"name": "python3", "language": "python"}, "widgets": {}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(content))
    written = json.loads(read_notebook(path).to_json())
    assert written["cells"] == [{**cell, "outputs": [], "execution_count": None}]
    assert written["metadata"] == {
        "kernelspec": {"name": "python3", "language": "python"},
        "language_info": {"name": "python"},
    }


def test_cells_without_ids_get_them_by_position(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    cells = [
        {"cell_type": "code", "metadata": {}, "source": "a"},
        {"cell_type": "markdown", "metadata": {}, "source": "b"},
    ]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 2}))
    assert [cell.id for cell in read_notebook(path).cells] == ["cell-1", "cell-2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{torn",
            r"is no notebook: it is no JSON \(Expecting .*\); give the path of an \.ipynb file that Jupyter has saved",
        ),
        ("", r"is no notebook: it is no JSON"),
        ("[]", r"is no notebook: it lacks 'nbformat' or 'cells'; give the path"),
        ('{"nbformat": 4}', r"is no notebook: it lacks 'nbformat' or 'cells'"),
        (
            '{"nbformat": 3, "worksheets": []}',
            "has notebook format 3; open it in JupyterLab and save it as format 4",
        ),
        (
            '{"nbformat": 4, "cells": [], "metadata": {"kernelspec": {"language": "R"}}}',
            "is a notebook for R; rlnb runs Python",
        ),
    ],
)
def test_unreadable_notebooks_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(CaptureError, match=message):
        read_notebook(tmp_path / "a.ipynb")


RUNS = [CellRun("a = 1", ok=True), CellRun("promote(exp)")]


def test_explicit_notebook_wins(tmp_path: Path) -> None:
    book = notebook(tmp_path, "x")
    assert find_notebook(book.path, namespace={}, runs=[], environ={}) == book.path
    with pytest.raises(CaptureError, match=r"notebook='nope.ipynb' is not an existing .ipynb file"):
        find_notebook("nope.ipynb", namespace={}, runs=RUNS, environ={})


def test_plain_script_needs_notebook() -> None:
    with pytest.raises(CaptureError, match=r"runs outside a notebook; pass notebook='…'"):
        find_notebook(None, namespace={}, runs=[], environ={})


def test_jupyterlab_names_it(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", "promote(exp)")
    assert (
        find_notebook(None, namespace={}, runs=RUNS, environ={"JPY_SESSION_NAME": str(book.path)})
        == book.path
    )


def test_an_older_server_names_it_relative_to_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = notebook(tmp_path, "a = 1", "promote(exp)")
    monkeypatch.chdir(tmp_path)
    assert (
        find_notebook(None, namespace={}, runs=RUNS, environ={"JPY_SESSION_NAME": "sub/nb.ipynb"})
        == book.path
    )


def test_vs_code_names_it(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", "promote(exp)")
    assert (
        find_notebook(None, namespace={"__vsc_ipynb_file__": str(book.path)}, runs=RUNS, environ={})
        == book.path
    )


def test_papermill_and_nbmake_are_recognised_by_the_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = notebook(tmp_path, "a = 1", "promote(exp)")
    notebook(tmp_path, "b = 1", name="other.ipynb")
    monkeypatch.chdir(tmp_path)
    runs = [CellRun("# Parameters\na = 3\n", ok=True), *RUNS]
    stale = {"JPY_SESSION_NAME": str(tmp_path / "other.ipynb")}
    assert find_notebook(None, namespace={}, runs=runs, environ=stale) == book.path
    notebook(tmp_path, "a = 1", "promote(exp)", name="copy.ipynb")
    with pytest.raises(
        CaptureError, match=r"Several notebooks hold the cells that ran here \(copy.ipynb, nb.ipynb\)"
    ):
        find_notebook(None, namespace={}, runs=runs, environ={})


def test_a_renamed_notebook_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaptureError, match=r"said to be '/gone/old.ipynb', .*was it renamed or never saved"):
        find_notebook(None, namespace={}, runs=RUNS, environ={"JPY_SESSION_NAME": "/gone/old.ipynb"})
    with pytest.raises(CaptureError, match=r"could not be found from its kernel; pass notebook='…'"):
        find_notebook(None, namespace={}, runs=RUNS, environ={})


def test_installs_become_comments_and_lines_stay() -> None:
    source, removed = without_installs(
        "%pip install a\n!pip install b\nimport x\nif x:\n    !pip install c\ny = 1"
    )
    assert removed == ["%pip install a", "!pip install b", "!pip install c"]
    assert source.split("\n")[2] == "import x"
    assert source.split("\n")[4] == "    pass  # not run in jobs: !pip install c"
    assert len(source.split("\n")) == 6
    assert without_installs("pip = 1\n!ls")[1] == []


def test_notebook_only_cells_are_not_in_the_job() -> None:
    assert not code("x", "a", "notebook-only").in_job
    assert code("x", "a").in_job
    assert not code("  ", "a").in_job
