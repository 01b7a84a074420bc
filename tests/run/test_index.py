"""The index lists quickly, survives concurrent writers and damage, and is made again from the folders."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlnb.errors import RunNotFound, UsageError
from rlnb.run.host import ProcessIdentity
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.record import RunRecord, write_record
from rlnb.run.status import State, Status, write_status


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "index.sqlite")


def _record(run_id: str, **more: object) -> RunRecord:
    return RunRecord(
        id=run_id, name="lander", created="2026-11-30T10:00:00.000Z", rlnb="0.1.0", owner={}, notebook={},
        store={"url": "s3://bucket/prefix?region=r"}, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_upsert_keeps_the_columns_it_is_not_given(index: Index) -> None:
    index.upsert("exp-1", name="lander", tags=["a", "b"], created="2026-01-01")
    index.upsert("exp-1", state=State.RUNNING, step=7)
    row = index.get("exp-1")
    assert (row.name, row.tags, row.state, row.step) == ("lander", ("a", "b"), "running", 7)
    assert row.total_timesteps is None
    assert row.updated > "2026"
    assert row.to_dict()["tags"] == ["a", "b"]


def test_unknown_column_names_the_nearest(index: Index) -> None:
    with pytest.raises(UsageError, match="no column 'stat'. Did you mean 'state'"):
        index.upsert("exp-1", stat="x")


def test_rows_are_newest_first_and_filtered(index: Index) -> None:
    for n in range(4):
        index.upsert(
            f"exp-{n}",
            created=f"2026-01-0{n + 1}",
            name="a" if n % 2 else "b",
            tags=["even"][: 1 - n % 2],
            group="g" if n else None,
        )
    assert [row.id for row in index.rows()] == ["exp-3", "exp-2", "exp-1", "exp-0"]
    assert [row.id for row in index.rows(name="a")] == ["exp-3", "exp-1"]
    assert [row.id for row in index.rows(tag="even", group="g")] == ["exp-2"]
    assert [row.id for row in index.rows(limit=1)] == ["exp-3"]
    assert index.rows(state=State.RUNNING) == []


def test_get_by_beginning_end_and_name(index: Index) -> None:
    index.upsert("exp-2026-01-01-lander-7f3a", name="lander", created="1")
    index.upsert("exp-2026-01-02-lander-11bc", name="lander", created="2")
    assert index.get("7f3a").id == "exp-2026-01-01-lander-7f3a"
    assert index.get("exp-2026-01-02").id.endswith("11bc")
    assert index.get("lander").id.endswith("11bc")
    with pytest.raises(UsageError, match=r"'exp-2026' fits 2 runs .*give more of the id"):
        index.get("exp-2026")
    with pytest.raises(
        RunNotFound, match="no run 'landr' here; `rlnb jobs` lists them. Did you mean 'lander'"
    ):
        index.get("landr")


def test_rebuild_from_folders(index: Index, tmp_path: Path) -> None:
    index.upsert("exp-gone", name="gone")
    index.trust("abc")
    layout = RunLayout(tmp_path / "runs" / "exp-2")
    experiment = {"algo": "PPO", "env": {"value": "CartPole-v1"}, "total_timesteps": 100}
    write_record(layout, _record("exp-2", tags=["t"], key="k", experiment=experiment))
    write_status(layout, Status(State.COMPLETED, 2, ProcessIdentity.of(), step=100, return_mean=1.5))
    (tmp_path / "runs" / "no-run").mkdir()
    assert index.rebuild([tmp_path / "runs"]) == 1
    [row] = index.rows()
    assert (row.id, row.url, row.state, row.step) == (
        "exp-2",
        "s3://bucket/prefix/exp-2?region=r",
        "completed",
        100,
    )
    assert (row.algo, row.env, row.total_timesteps, row.tags) == ("PPO", "CartPole-v1", 100, ("t",))
    assert row.folder == str(layout.root)
    assert index.trusted("abc")


def test_trust(index: Index) -> None:
    assert not index.trusted("sha")
    index.trust("sha")
    index.trust("sha")
    assert index.trusted("sha")


def test_a_damaged_index_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"this is not a database, but long enough to be taken for one " * 40)
    index = Index(path)
    index.upsert("exp-1")
    assert [row.id for row in index.rows()] == ["exp-1"]
    assert (tmp_path / "index.sqlite.damaged").exists()


def test_concurrent_processes_lose_nothing(index: Index) -> None:
    code = (
        "import sys; from pathlib import Path; from rlnb.run.index import Index\n"
        "for n in range(50): Index(Path(sys.argv[1])).upsert(f'exp-{sys.argv[2]}-{n}', step=n)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(index.path), str(n)]) for n in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert len(index.rows()) == 150


def test_lists_3500_runs_within_a_fifth_of_a_second(index: Index) -> None:
    index.upsert("exp-0")
    with index._connect() as connection:
        connection.executemany(
            "INSERT INTO runs SELECT ?, url, folder, name, state, attempt, step, total_timesteps, return_mean, ?,"
            ' updated, tags, "group", "key", algo, env FROM runs WHERE id = \'exp-0\'',
            [(f"exp-{n}", f"2026-{n:06d}") for n in range(1, 3500)],
        )
    begin = time.perf_counter()
    rows = index.rows()
    assert len(rows) == 3500
    assert time.perf_counter() - begin < 0.2
