"""Transitions survive Parquet in every byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError, RunFormatError
from rlnb.run.trajectories import read_about, read_transitions, write_transitions


def _batch(obs: np.ndarray, action: np.ndarray, names: tuple[str, ...] = ()) -> Transitions:
    n = len(obs)
    t = np.arange(n, dtype=np.int64) % 3
    return Transitions.from_arrays(
        obs, obs[::-1].copy(), action, reward=np.linspace(-1, 1, n), terminated=t == 2,
        truncated=np.zeros(n, dtype=bool), t=t, names=names, infos=[{"x": i, "ok": True} for i in range(n)],
        signals={"force": np.linspace(0, 1, n)}, labels={0: "random", 1: "mine"},
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_named_columns_come_back_in_their_dtype(tmp_path: Path, dtype: type) -> None:
    batch = _batch(np.arange(12).reshape(6, 2).astype(dtype), np.arange(6), ("x", "vx"))
    write_transitions(tmp_path / "deep" / "demo.parquet", batch)
    back = read_transitions(tmp_path / "deep" / "demo.parquet")
    assert back.meta() == batch.meta()
    for name, values in batch.to_columns().items():
        assert back.to_columns()[name].dtype == values.dtype, name
        np.testing.assert_array_equal(back.to_columns()[name], values)
    assert back.labels == {0: "random", 1: "mine"}
    assert [one.name for one in (tmp_path / "deep").iterdir()] == ["demo.parquet"]


def test_images_and_vector_actions_keep_their_shapes(tmp_path: Path) -> None:
    images = np.arange(6 * 2 * 3, dtype=np.uint8).reshape(6, 2, 3)
    batch = _batch(images, np.ones((6, 2), dtype=np.float32))
    write_transitions(tmp_path / "demo.parquet", batch)
    back = read_transitions(tmp_path / "demo.parquet")
    np.testing.assert_array_equal(back.obs.matrix, images)
    assert back.obs.matrix.dtype == np.uint8
    assert back.action_names == ("a0", "a1")


def test_the_file_is_compressed_with_zstd_and_says_where_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "demo.parquet"
    write_transitions(
        path, _batch(np.zeros((6, 1), np.float32), np.zeros(6), ("x",)), about={"env": "CartPole-v1"}
    )
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    assert read_about(path) == {"env": "CartPole-v1"}


def test_what_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "demo.parquet").write_text("hello")
    with pytest.raises(RunFormatError, match=r"demo\.parquet cannot be read as Parquet: "):
        read_transitions(tmp_path / "demo.parquet")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file of transitions"):
        read_transitions(tmp_path / "demo.parquet")


def test_a_foreign_table_names_the_missing_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [0, 1]}), tmp_path / "demo.parquet")
    with pytest.raises(DesignError, match="needs the column 'terminated'"):
        read_transitions(tmp_path / "demo.parquet")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    table = pa.table({"t": [0]}).replace_schema_metadata({b"rlnb": b'{"format": 2}'})
    pq.write_table(table, tmp_path / "demo.parquet")
    with pytest.raises(RunFormatError, match="is of format 2, newer than this rlnb reads; update rlnb"):
        read_transitions(tmp_path / "demo.parquet")
