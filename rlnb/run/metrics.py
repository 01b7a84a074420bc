"""Metric rows: one JSON object a line, below `logs/metrics/`.

A row has "step" (environment steps over all attempts), "time" (Unix seconds) and "kind":
"train" (SB3's logger names), "episode" (one finished episode), "checkpoint", and "rewind": after a
resume from step N everything that was written before it with a step above N did not happen.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rlnb.run.appending import read_from, redacted
from rlnb.run.layout import RunLayout

if TYPE_CHECKING:
    import pandas as pd

SEGMENT_BYTES = 16 * 2**20

Row = dict[str, Any]
Cursor = dict[str, int]


class MetricLog(Protocol):
    """Seam: where metric rows go and come from."""

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds one row; it is readable by others at the latest after `flush`.

        Raises:
            OSError: it could not be written (a full disk); it is kept, and `flush` tries again.
        """

    def flush(self) -> None:
        """Hands everything appended to the operating system.

        Raises:
            OSError: it could not be written; nothing is lost, call again.
        """

    def read(self, cursor: Cursor | None = None) -> tuple[list[Row], Cursor]:
        """Returns the whole rows after the cursor, and the cursor after them."""


class JsonlMetricLog:
    """A MetricLog in the run folder; one writer per attempt.

    Args:
        layout: the run folder.
        attempt: the writing attempt; segments of different attempts never share a file.
        segment_bytes: a segment that has grown to this size is closed and the next one begun.
    """

    def __init__(self, layout: RunLayout, attempt: int, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.layout, self.attempt, self.segment_bytes = layout, attempt, segment_bytes
        taken = [sequence for number, sequence, _ in layout.metrics_segments() if number == attempt]
        self._sequence = max(taken, default=-1)
        self._handle: int | None = None
        self._size = 0
        self._owed = b""  # what a full disk has not taken yet
        self._within = False  # whether the file ends within a line
        self._turn = threading.Lock()  # checkpoints are noted by the thread that writes them
        self._reader = MetricReader(layout)

    def append(self, row: Mapping[str, Any]) -> None:
        line = _encode({"time": round(time.time(), 3), **row})
        with self._turn:
            self._owed += line
            self._write()

    def flush(self) -> None:
        with self._turn:
            self._write()

    def _write(self) -> None:
        while self._owed:
            full = self._size + len(self._owed) > self.segment_bytes and not self._within
            if self._handle is None or (full and self._size):
                self._open_next()
            assert self._handle is not None
            written = os.write(self._handle, self._owed)
            self._size += written
            self._owed = self._owed[written:]
            self._within = bool(self._owed)

    def read(self, cursor: Cursor | None = None) -> tuple[list[Row], Cursor]:
        return self._reader.read(cursor)

    def close(self) -> None:
        """Closes the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open_next(self) -> None:
        self.close()
        self._sequence += 1
        path = self.layout.metrics_segment(self.attempt, self._sequence)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o644)
        self._size = 0


class MetricReader:
    """Reads the rows of all attempts in the order in which they were written."""

    def __init__(self, layout: RunLayout) -> None:
        self.layout = layout

    def read(self, cursor: Cursor | None = None) -> tuple[list[Row], Cursor]:
        """Returns the whole rows after the cursor, and the cursor after them."""
        cursor = dict(cursor or {})
        rows: list[Row] = []
        for _, _, path in self.layout.metrics_segments():
            offset = cursor.get(path.name, 0)
            if _size(path) > offset:
                new, cursor[path.name] = read_from(path, offset)
                rows += new
        return rows, cursor


def one_history(rows: Iterable[Row]) -> list[Row]:
    """Drops what later rewinds have undone, so that no step was trained twice.

    Rewind rows themselves are kept: they mark where an attempt began.
    """
    kept: list[Row] = []
    for row in rows:
        if row.get("kind") == "rewind":
            # Rows are nearly, not strictly, in the order of their steps: a checkpoint's row is
            # written when its files are on the disk, while training goes on.
            kept = [earlier for earlier in kept if earlier["step"] <= row["step"]]
        if "step" in row:
            kept.append(row)
    return kept


def frame(layout: RunLayout) -> pd.DataFrame:
    """Returns one history of the run as a DataFrame, one column per key."""
    import pandas as pd

    rows, _ = MetricReader(layout).read()
    return pd.DataFrame.from_records(one_history(rows))


def _encode(row: Mapping[str, Any]) -> bytes:
    try:
        return (redacted(json.dumps(row)) + "\n").encode()
    except TypeError:  # NumPy scalars and the like: pay for the conversion only when there are any
        return (redacted(json.dumps(row, default=_plain)) + "\n").encode()


def _plain(value: Any) -> Any:
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
