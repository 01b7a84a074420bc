from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlnb.errors import RunFormatError
from rlnb.run.atomic import is_temporary, write_atomic
from rlnb.run.layout import RunLayout, read_json, safe_join, write_json


def test_names_are_those_of_the_design(tmp_path):
    layout = RunLayout(tmp_path / "exp-2026-11-30-lander-7f3a")
    assert layout.id == "exp-2026-11-30-lander-7f3a"
    names = [
        layout.run_yaml, layout.bundle_notebook, layout.attempt(2), layout.status, layout.checkpoint(500, 1),
        layout.metrics_segment(1, 0), layout.events, layout.train_log, layout.stdout_log, layout.output(3),
    ]  # fmt: skip
    assert [layout.relative(p) for p in names] == [
        "run.yaml", "bundle/notebook.ipynb", "attempts/2", "status.json", "checkpoints/500-a1",
        "logs/metrics/1-0.jsonl", "logs/events.jsonl", "logs/train.log", "logs/stdout.log", "output.3.ipynb",
    ]  # fmt: skip


def test_checkpoint_folders_sort_by_number_and_ignore_others(tmp_path):
    layout = RunLayout(tmp_path)
    for name in ("1000-a1", "200-a1", "200-a2", "chunks", "30", "x-a1"):
        (layout.checkpoints / name).mkdir(parents=True)
    os.symlink(layout.checkpoints / "1000-a1", layout.checkpoints / "5000-a1")
    assert [(s, a) for s, a, _ in layout.checkpoint_folders()] == [(200, 1), (200, 2), (1000, 1)]


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\\b", "a/\0"])
def test_foreign_names_cannot_leave_the_folder(tmp_path, name):
    with pytest.raises(RunFormatError, match="not a plain relative name"):
        safe_join(tmp_path, name)


def test_links_are_never_followed(tmp_path):
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    with pytest.raises(RunFormatError, match="symbolic link"):
        RunLayout(tmp_path).resolve("link/file")
    assert RunLayout(tmp_path).resolve("real/file") == tmp_path / "real" / "file"


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False) | st.text() | st.none()))
def test_json_round_trip(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "a.json"
    write_json(path, value)
    assert read_json(path) == value


@given(st.integers(min_value=0, max_value=60))
def test_a_torn_json_file_reads_as_nothing(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "a.json"
    whole = json.dumps({"state": "running", "attempt": 1, "message": "x" * 30}).encode()
    path.write_bytes(whole[:cut])
    assert read_json(path) is None


def test_a_failed_atomic_write_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "a.json"
    write_atomic(path, "old")
    with pytest.raises(TypeError):
        write_atomic(path, 5)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert is_temporary(tmp_path / ".a.json.1234abcd.tmp")
    assert not is_temporary(path)
