"""From a notebook to what a run needs: target, key, store, secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.errors import CaptureError, ParameterError, SecretError, UsageError
from rlnb.jobs.capture.recorder import CellRun
from rlnb.prepare import Prepared, prepare, resolve_store
from rlnb.run.record import Target
from tests.promote.notebooks import code, notebook

CELLS = (
    code("seed = 0", "p", "parameters"),
    code("exp = make('d.yaml', seed)", "e"),
    code("promote(exp)", "c3"),
    code("job", "j"),
)


def _prepared(folder: Path, *cells: object, runs: list[CellRun] | None = None, **more: object) -> Prepared:
    book = notebook(folder, *(cells or CELLS))  # type: ignore[arg-type]
    target = None if runs else Target("c3", 1)
    return prepare(book, runs or (), target=target, store=str(folder / "runs"), **more)  # type: ignore[arg-type]


def test_the_target_is_the_running_cell_and_the_nth_call(tmp_path: Path) -> None:
    runs = [CellRun("promote(exp)", "c3", 1.0)]
    assert _prepared(tmp_path, runs=runs, call=2).target == Target("c3", 2)


def test_parameters_are_injected_once(tmp_path: Path) -> None:
    made = _prepared(tmp_path).with_parameters({"seed": 3}).with_parameters({"seed": 4})
    assert [cell.source for cell in made.notebook.code][:2] == ["seed = 0", "# Parameters\nseed = 4"]
    assert made.parameters == {"seed": 4}
    with pytest.raises(ParameterError, match="Did you mean 'seed'"):
        made.with_parameters({"sed": 1})


def test_plain_papermills_parameters_are_kept(tmp_path: Path) -> None:
    runs = [
        CellRun("seed = 0", None, 9e9, True),
        CellRun("# Parameters\nseed = 7\n", None, 9e9, True),
        CellRun("promote(exp)", None, 9e9),
    ]
    made = _prepared(tmp_path, runs=runs)
    assert made.parameters == {"seed": 7}
    assert made.target == Target("c3", 1)


def test_the_key_follows_what_training_depends_on(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text("a: 1")
    key = _prepared(tmp_path).key
    assert _prepared(tmp_path).key == key
    assert _prepared(tmp_path, *CELLS, code("look(job)", "l")).key == key, (
        "a cell after promote() is no other run"
    )
    assert _prepared(tmp_path, code("display()", "v", "notebook-only"), *CELLS).key == key
    assert _prepared(tmp_path).with_parameters({"seed": 1}).key != key
    assert _prepared(tmp_path, code("x = 1", "x"), *CELLS).key != key
    (tmp_path / "d.yaml").write_text("a: 2")
    assert _prepared(tmp_path).key != key


def test_variables_that_override_the_experiment_make_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {_prepared(tmp_path).key}
    for seed in ("1", "2"):
        monkeypatch.setenv("RLNB_TRAINING__SEED", seed)
        keys.add(_prepared(tmp_path).key)
    assert len(keys) == 3


def test_the_key_is_the_same_with_and_without_a_kernel(tmp_path: Path) -> None:
    runs = [CellRun("promote(exp)", "c3", 1.0)]
    assert _prepared(tmp_path, runs=runs).key == _prepared(tmp_path).key


def test_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"Cell 1 calls `input\(\)`, which nobody can answer in a job"):
        _prepared(tmp_path, "name = input()", "promote(exp)")


def test_a_secret_in_the_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "abcd-efgh-1")
    with pytest.raises(SecretError, match=r"Cell 2 of the notebook holds the value of MY_API_KEY"):
        _prepared(tmp_path, "a = 1", "login('abcd-efgh-1')")


def test_a_secret_that_only_the_source_knows_is_refused(tmp_path: Path) -> None:
    message = (
        r"^Cell 1 of the notebook writes out a value for WANDB_API_KEY, .*; set the environment variable WANDB_API_KEY "
        r"before Jupyter starts, read os\.environ\['WANDB_API_KEY'\], and pass env_vars=\['WANDB_API_KEY'\]\.$"
    )
    with pytest.raises(SecretError, match=message):
        _prepared(tmp_path, "WANDB_API_KEY = 'aBc123XyZ'", "promote(exp)")
    (tmp_path / "helper.py").write_text("password = 'hunter2hunter2'")
    with pytest.raises(
        SecretError, match=r"The file helper\.py writes out a value for password, .*os\.environ\['PASSWORD'\]"
    ):
        _prepared(tmp_path, "import helper", "promote(exp)")


def test_a_password_in_a_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="Cell 1 of the notebook holds a URL with a password in it"):
        _prepared(tmp_path, "db = connect('postgres://me:hunter2@host/db')")
    _prepared(tmp_path, "db = connect(f'postgres://me:{password}@host/db')")


def test_what_looks_like_a_secret_is_a_warning(tmp_path: Path) -> None:
    [finding] = _prepared(tmp_path, "login('ghp_" + "aB3d" * 9 + "')").findings
    assert finding.message.startswith("Cell 1 holds what looks like a GitHub token")


def test_a_named_folder_is_reported_and_the_store_is_not(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "data").mkdir()
    [finding] = _prepared(tmp_path, "x = './runs', 'data'").findings
    assert finding.message == "The folder 'data' stays here; include=['data'] takes it along."


def test_a_withheld_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("")
    [finding] = _prepared(tmp_path, "load_dotenv('.env')").findings
    assert finding.message.startswith("The file '.env' stays here, since such files hold secrets")


@pytest.mark.parametrize(
    ("store", "resolved"),
    [
        ("./runs", "/base/runs"),
        (Path("../x"), "/x"),
        ("/abs/runs/", "/abs/runs"),
        ("file:///abs/r", "/abs/r"),
        ("s3://bucket/prefix?endpoint=http://127.0.0.1:1", "s3://bucket/prefix?endpoint=http://127.0.0.1:1"),
        ("obs://bucket/p?region=cn-north-4", "obs://bucket/p?region=cn-north-4"),
    ],
)
def test_stores_are_made_absolute(store: str | Path, resolved: str) -> None:
    assert resolve_store(store, base=Path("/base")) == resolved


@pytest.mark.parametrize(
    ("store", "error", "message"),
    [
        (
            "memory://x",
            UsageError,
            "'memory://…' ends with the process that holds it; use a folder, s3:// or obs://",
        ),
        (
            "s4://bucket",
            UsageError,
            r"unknown scheme 's4'; use a path, file://, s3://, obs://",
        ),
        ("file://relative/x", UsageError, "names the host 'relative'; a folder is written file:///path"),
        ("s3:///", UsageError, "has no valid bucket name"),
        ("obs://bucket/p", UsageError, "does not say where the bucket is; add \\?region="),
        ("s3://key:sec@ret@host/b", SecretError, "carries credentials, and run.yaml would keep them"),
        ("s3://keyonly@host/b", SecretError, "carries credentials"),
        ("s3://b/p?endpoint=http://h&secret_key=x", SecretError, "carries credentials"),
    ],
)
def test_bad_stores(store: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        resolve_store(store, base=Path("/base"))
