"""Transitions as Parquet files with zstd, one column per component, readable by anything that reads Parquet.

What the columns do not say (names, row shapes, where the file came from) stands as JSON in the schema's
metadata under `rlnb`. Nothing is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rlnb.design.transitions import Transitions
from rlnb.errors import RunFormatError
from rlnb.run.atomic import replacing

FORMAT: Final = 1
_META: Final = b"rlnb"


def write_transitions(
    path: str | Path, transitions: Transitions, *, about: Mapping[str, Any] | None = None
) -> None:
    """Writes a batch whole: the file appears under its name only when it is complete.

    Args:
        path: the file; its folder is made.
        transitions: the batch.
        about: where it comes from, JSON-able; `read_about` returns it.
    """
    columns = transitions.to_columns()
    table = pa.table({name: _array(values) for name, values in columns.items()})
    meta = {"format": FORMAT, "columns": transitions.meta(), "about": dict(about or {})}
    table = table.replace_schema_metadata({_META: json.dumps(meta).encode()})
    write_table(path, table, compression="zstd")


def write_table(path: str | Path, table: pa.Table, *, compression: str) -> None:
    """Writes an Arrow table as Parquet; a reader sees all of it or nothing, also after a power cut."""
    with replacing(Path(path)) as file:
        pq.write_table(table, file, compression=compression)


def read_transitions(path: str | Path) -> Transitions:
    """Reads a batch back, equal in every byte.

    Raises:
        RunFormatError: if the file is no Parquet file, lacks a column, or is of a newer format.
        FileNotFoundError: if there is no such file.
    """
    table, meta = _read(path)
    columns = {name: _values(table.column(name)) for name in table.column_names}
    return Transitions.from_columns(columns, meta.get("columns"))


def read_about(path: str | Path) -> dict[str, Any]:
    """Returns what the writer said about the file; {} for a file of another tool."""
    _, meta = _read(path, columns=[])
    return dict(meta.get("about", {}))


@dataclass(frozen=True)
class Footer:
    """What a file of transitions says of itself; read without touching its rows.

    Attributes:
        rows: number of transitions.
        types: Arrow's type of each column, as text.
        columns: what `Transitions.meta` returned when it was written.
        about: see `read_about`.
    """

    rows: int
    types: dict[str, str]
    columns: dict[str, Any]
    about: dict[str, Any]


def read_footer(path: str | Path) -> Footer:
    """Returns what a file says of itself.

    Raises:
        RunFormatError: if the file is no Parquet file, or is of a newer format.
        FileNotFoundError: if there is no such file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file of transitions {str(path)!r}")
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        meta = _meta(schema, path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    types = {field.name: str(field.type) for field in schema}
    return Footer(rows, types, dict(meta.get("columns") or {}), dict(meta.get("about") or {}))


def _meta(schema: pa.Schema, path: str | Path) -> dict[str, Any]:
    """Returns what stands in the metadata, {} for a file of another tool."""
    meta = json.loads((schema.metadata or {}).get(_META, b"{}"))
    if not isinstance(meta, dict):
        raise ValueError("its metadata is no mapping")
    if meta.get("format", FORMAT) > FORMAT:
        raise RunFormatError(f"{path} is of format {meta['format']}, newer than this rlnb reads; update rlnb")
    return meta


def _unreadable(path: str | Path, error: Exception) -> RunFormatError:
    lines = str(error).splitlines()
    return RunFormatError(f"{path} cannot be read as Parquet: {lines[0] if lines else type(error).__name__}")


def _read(path: str | Path, columns: list[str] | None = None) -> tuple[pa.Table, dict[str, Any]]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file of transitions {str(path)!r}")
    try:
        table = pq.read_table(path, columns=columns)
        meta = _meta(table.schema, path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return table, meta


def _array(values: np.ndarray[Any, Any]) -> pa.Array:
    if values.ndim == 1:
        return pa.array(values, type=pa.string() if values.dtype == object else None)
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _values(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    array = column.combine_chunks()
    if isinstance(
        array, pa.ChunkedArray
    ):  # pragma: no cover - an older pyarrow keeps an empty column chunked
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_fixed_size_list(array.type):
        width = array.type.list_size
        return np.asarray(array.flatten().to_numpy(zero_copy_only=False)).reshape(len(array), width)
    if pa.types.is_string(array.type):
        return np.asarray(array.to_pylist(), dtype=object)
    return np.asarray(array.to_numpy(zero_copy_only=False))
