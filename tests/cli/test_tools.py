from __future__ import annotations

import json

import nbformat
import pytest

from rlnb.cli.promotion import parse_parameter
from rlnb.errors import ParameterError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("seed=3", 3),
        ("learning_rate=1e-3", 1e-3),
        ("name=text", "text"),
        ("name='3'", "3"),
        ("sizes=[1, 2]", [1, 2]),
        ("flag=true", True),
        ("flag=False", False),
        ("nothing=null", None),
        ("limit=inf", float("inf")),
        ("path=a=b", "a=b"),
        ("empty=", ""),
    ],
)
def test_parameters_are_python_literals_or_text(text, value):
    assert parse_parameter(text) == (text.split("=")[0], value)
    assert type(parse_parameter(text)[1]) is type(value)


@pytest.mark.parametrize("text", ["seed", "=3", "2x=3", "a b=1"])
def test_a_parameter_without_a_name_is_refused(text):
    with pytest.raises(ParameterError, match=r"is not NAME=VALUE; write for example -p seed=3"):
        parse_parameter(text)


def test_new_writes_a_valid_notebook_once(rlnb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = rlnb("new", "walker")
    assert code == 0
    assert "rlnb promote walker.ipynb --wait" in out
    notebook = nbformat.read(tmp_path / "walker.ipynb", as_version=4)
    nbformat.validate(notebook)
    sources = "\n".join(cell.source for cell in notebook.cells)
    assert 'design="walker.yaml"' in sources
    assert 'name="walker"' in sources
    assert "RLNB_NAME" not in sources
    assert [cell.metadata.tags for cell in notebook.cells if "tags" in cell.metadata] == [["parameters"]]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            compile(cell.source, "cell", "exec")
    code, _, err = rlnb("new", "walker.ipynb")
    assert code == 2
    assert "exists; choose another name" in err


def test_new_refuses_names_and_folders_that_cannot_be(rlnb, tmp_path):
    assert "cannot name an experiment" in rlnb("new", "a b")[2]
    assert "does not exist; make it first" in rlnb("new", str(tmp_path / "missing" / "a"))[2]


def test_index_rebuild_counts_runs(rlnb, make_run):
    make_run()
    assert rlnb("index", "rebuild")[1] == "The index lists 1 run.\n"
    assert json.loads(rlnb("index", "rebuild", "--json")[1]) == {"runs": 1}
    assert rlnb("index", "rebuild", "/no/such/folder")[0] == 2


def test_reconcile_with_nothing_to_do_says_so(rlnb, make_run):
    run = make_run()
    run.begin()
    run.end()
    assert rlnb("reconcile")[1] == "Every run has its supervisor or has ended; nothing to do.\n"
    assert rlnb("reconcile", "--json")[1] == "[]\n"


def test_doctor_looks_at_everything_and_leaves_nothing(rlnb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = rlnb("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)}
    assert code == 0
    wanted = {
        "interpreter",
        "package torch",
        "kernel",
        "JupyterLab extension",
        "disk",
        "store ./runs",
        "Node",
    }
    assert set(checks) >= wanted
    assert checks["store ./runs"]["verdict"] == "ok"
    assert list(tmp_path.iterdir()) == []


def test_doctor_names_a_store_that_cannot_be_written(rlnb, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, _ = rlnb("doctor", "--store", str(tmp_path / "file" / "store"))
    assert code == 2
    assert f"fail store {tmp_path}/file/store: " in out
