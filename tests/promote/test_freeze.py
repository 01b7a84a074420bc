"""The rules of capture: order from the file, source from the last successful run."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.jobs.capture.freeze import Frozen, freeze
from rlnb.jobs.capture.recorder import CellRun
from tests.promote.notebooks import code, notebook

SAVED = 1000.0


def _sources(frozen: Frozen) -> list[str]:
    return [cell.source for cell in frozen.notebook.cells]


def _codes(frozen: Frozen) -> list[str]:
    return [finding.code for finding in frozen.findings]


def test_order_is_the_files_and_source_the_last_successful_run(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", "b = a", "promote(exp)", saved=SAVED)
    runs = [
        CellRun("b = 0", "c2", 1, True),
        CellRun("a = 2", "c1", 2, True),
        CellRun("a = oops", "c1", 3, False),
        CellRun("b = a", "c2", 4, True),
        CellRun("promote(exp)", "c3", 5),
    ]
    frozen = freeze(book, runs)
    assert _sources(frozen) == ["a = 2", "b = a", "promote(exp)"]
    assert frozen.target == "c3"
    assert _codes(frozen) == ["cell_differs"]
    assert "Cell 1 (`a = 2`) was edited since it last ran" in frozen.findings[0].message


def test_a_cell_that_only_failed_is_taken_as_saved_and_said(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", "promote(exp)", "job", saved=SAVED)
    frozen = freeze(book, [CellRun("a = 1/0", "c1", 1, False), CellRun("promote(exp)", "c2", 2)])
    assert _sources(frozen) == ["a = 1", "promote(exp)", "job"]
    assert _codes(frozen) == ["cell_not_run"]
    assert "Cell 1 (`a = 1`) did not run successfully here" in frozen.findings[0].message


def test_unsaved_cells_follow_the_cell_run_before_them(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", "b = 1", "promote(exp)", saved=SAVED)
    runs = [
        CellRun("a = 1", "c1", 900, True),
        CellRun("new = 1", "n1", 1100, True),
        CellRun("newer = 1", "n2", 1101, True),
        CellRun("b = 1", "c2", 1102, True),
        CellRun("promote(exp)", "c3", 1103),
    ]
    frozen = freeze(book, runs)
    assert _sources(frozen) == ["a = 1", "new = 1", "newer = 1", "b = 1", "promote(exp)"]
    assert _codes(frozen) == ["unsaved_cell", "unsaved_cell"]
    assert (
        "`new = 1` is not saved in nb.ipynb; the job runs it after the cell that ran before it"
        in frozen.findings[0].message
    )


def test_an_unsaved_promote_cell_is_the_target(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", saved=SAVED)
    frozen = freeze(book, [CellRun("a = 1", "c1", 900, True), CellRun("promote(exp)", "n1", 1100)])
    assert _sources(frozen) == ["a = 1", "promote(exp)"]
    assert frozen.target == frozen.notebook.cells[1].id


def test_deleted_cells_are_named_and_left_out(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", "promote(exp)", saved=SAVED)
    runs = [
        CellRun("lr = 3\nx = 1", "gone", 500, True),
        CellRun("a = 1", "c1", 501, True),
        CellRun("promote(exp)", "c2", 1100),
    ]
    frozen = freeze(book, runs)
    assert _sources(frozen) == ["a = 1", "promote(exp)"]
    assert _codes(frozen) == ["deleted_cells"]
    assert "`lr = 3`" in frozen.findings[0].message


def test_what_was_typed_into_a_console_is_left_out(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 1", "promote(exp)", saved=SAVED)
    runs = [
        CellRun("a = 1", "c1", 1100, True),
        CellRun("a = 5", None, 1101, True),
        CellRun("promote(exp)", "c2", 1102),
    ]
    frozen = freeze(book, runs)
    assert _sources(frozen) == ["a = 1", "promote(exp)"]
    assert (
        "(deleted, or typed into a console), so the job will not run them: `a = 5`."
        in frozen.findings[0].message
    )


def test_vs_codes_ids_are_resolved_by_source(tmp_path: Path) -> None:
    book = notebook(tmp_path, "a = 2", "promote(exp)", saved=SAVED)
    runs = [
        CellRun("a = 1", "vscode:#W0", 900, True),
        CellRun("a = 2", "vscode:#W0", 901, True),
        CellRun("promote(exp)", "vscode:#W1", 902),
    ]
    frozen = freeze(book, runs)
    assert _sources(frozen) == ["a = 2", "promote(exp)"]
    assert (frozen.target, frozen.findings) == ("c2", ())


def test_papermills_parameters_become_an_injected_cell(tmp_path: Path) -> None:
    book = notebook(tmp_path, code("a = 1", "p", "parameters"), "promote(exp)", saved=SAVED)
    runs = [
        CellRun("a = 1", None, 1100, True),
        CellRun("# Parameters\na = 3\n", None, 1101, True),
        CellRun("promote(exp)", None, 1102),
    ]
    frozen = freeze(book, runs)
    assert [cell.tags for cell in frozen.notebook.cells] == [("parameters",), ("injected-parameters",), ()]
    assert (frozen.target, frozen.findings) == ("c2", ())


def test_without_a_kernel_the_file_counts(tmp_path: Path) -> None:
    frozen = freeze(notebook(tmp_path, "a = 1", "promote(exp)"))
    assert _sources(frozen) == ["a = 1", "promote(exp)"]
    assert (frozen.target, frozen.findings) == (None, ())


@pytest.mark.parametrize(
    "install", ["%pip install x", "!pip install x", "!python -m pip install x", "%conda install x"]
)
def test_installs_and_notebook_only_cells_are_reported(tmp_path: Path, install: str) -> None:
    frozen = freeze(notebook(tmp_path, install, code("display(1)", "v", "notebook-only"), "promote(exp)"))
    assert _codes(frozen) == ["install_skipped", "notebook_only"]
    assert _sources(frozen)[0] == f"# not run in jobs: {install}"
    assert f"`{install}` is not run in the job" in frozen.findings[0].message


def test_an_install_that_was_not_run_here_is_no_reason_to_warn(tmp_path: Path) -> None:
    book = notebook(
        tmp_path, "a = 1", "# once\n%pip install thing", "%pip install thing\nb = 1", "promote(exp)"
    )
    runs = [CellRun("a = 1", "c1", 1.0, True), CellRun("promote(exp)", "c4", 2.0)]
    findings = freeze(book, runs).findings
    assert [finding.code for finding in findings] == ["cell_not_run", "install_skipped", "install_skipped"]
    assert findings[0].message.startswith("Cell 3 (")
