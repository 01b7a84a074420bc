from __future__ import annotations

import errno
import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlnb.run.appending import append_lines, parse_lines, redact_with
from rlnb.run.events import EventLog, read_events
from rlnb.run.layout import RunLayout
from rlnb.run.metrics import JsonlMetricLog, MetricReader, frame, one_history
from rlnb.run.secrets import Redactor


def test_rows_come_back_from_a_cursor_over_segments_and_attempts(tmp_path):
    layout = RunLayout(tmp_path)
    log = JsonlMetricLog(layout, 1, segment_bytes=120)
    for step in range(5):
        log.append({"kind": "train", "step": step, "train/loss": np.float32(0.5), "time": 1.0})
    rows, cursor = MetricReader(layout).read()
    assert [r["step"] for r in rows] == [0, 1, 2, 3, 4]
    assert rows[0]["train/loss"] == 0.5
    assert len(layout.metrics_segments()) > 1
    again = JsonlMetricLog(layout, 2)
    again.append({"kind": "rewind", "step": 2, "time": 2.0})
    rows, cursor = again.read(cursor)
    assert [(r["kind"], r["step"]) for r in rows] == [("rewind", 2)]
    assert again.read(cursor)[0] == []


def test_a_rewind_undoes_what_was_written_beyond_it(tmp_path):
    rows = [{"kind": "train", "step": s, "v": "first"} for s in (100, 200, 300, 400)]
    rows.insert(3, {"kind": "checkpoint", "step": 200, "v": "first"})  # written late, in the background
    rows += [{"kind": "rewind", "step": 200}] + [
        {"kind": "train", "step": s, "v": "second"} for s in (300, 400)
    ]
    assert [(r["step"], r.get("v")) for r in one_history(rows)] == [
        (100, "first"), (200, "first"), (200, "first"), (200, None), (300, "second"), (400, "second"),
    ]  # fmt: skip


def test_nan_survives_and_the_frame_has_one_history(tmp_path):
    layout = RunLayout(tmp_path)
    log = JsonlMetricLog(layout, 1)
    log.append({"kind": "train", "step": 10, "train/loss": math.nan})
    log.append({"kind": "train", "step": 20, "train/loss": 1.0})
    log.append({"kind": "rewind", "step": 10})
    assert math.isnan(MetricReader(layout).read()[0][0]["train/loss"])
    assert list(frame(layout)["step"]) == [10, 10]


lines = st.lists(st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), max_size=8)


@given(lines, st.data())
def test_a_torn_tail_is_left_for_later_and_never_glued(tmp_path_factory, objects, data):
    whole = b"".join(json.dumps(o).encode() + b"\n" for o in objects)
    cut = data.draw(st.integers(0, len(whole)))
    rows, used = parse_lines(whole[:cut])
    assert whole[:cut].count(b"\n") == len(rows) == whole[:used].count(b"\n")
    assert rows == objects[: len(rows)]
    path = tmp_path_factory.mktemp("torn") / "a.jsonl"
    path.write_bytes(whole[:cut])
    append_lines(path, '{"after": 1}\n')
    survivors = parse_lines(path.read_bytes())[0]
    assert survivors[-1] == {"after": 1}
    assert survivors[: len(rows)] == rows


def test_events_are_sentences_with_step_and_attempt(tmp_path):
    layout = RunLayout(tmp_path)
    EventLog(layout, attempt=2).append("resumed", "Resumed from step 500.", step=500, checkpoint="500-a1")
    (event,) = read_events(layout)
    assert (event.kind, event.message, event.step, event.attempt) == (
        "resumed",
        "Resumed from step 500.",
        500,
        2,
    )
    assert event.data == {"checkpoint": "500-a1"}
    assert event.time.endswith("Z")


def test_what_a_process_appends_is_redacted(tmp_path):
    layout = RunLayout(tmp_path)
    redact_with(Redactor({"hunter2-hunter2": "DB_PASSWORD"}).redact)
    try:
        EventLog(layout).append("note", "logged in with hunter2-hunter2", token="hunter2-hunter2")
        JsonlMetricLog(layout, 1).append({"kind": "train", "step": 1, "note": "hunter2-hunter2"})
    finally:
        redact_with(None)
    (event,), (row,) = read_events(layout), MetricReader(layout).read()[0]
    assert (event.message, event.data) == ("logged in with [redacted]", {"token": "[redacted]"})
    assert row["note"] == "[redacted]"


def test_a_full_disk_costs_no_row_and_tears_no_line(tmp_path, monkeypatch):
    layout, room = RunLayout(tmp_path), [10**6]
    real = os.write

    def write(handle, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real(handle, data[: room[0]])
        room[0] -= written
        return written

    log = JsonlMetricLog(layout, 1, segment_bytes=100)
    monkeypatch.setattr(os, "write", write)
    log.append({"step": 1, "time": 1.0})
    room[0] = 7  # in the middle of a line, and of a segment that is as good as full
    for step in (2, 3):
        with pytest.raises(OSError, match="No space left"):
            log.append({"step": step, "kind": "train", "time": 1.0, "value": 0.123456789})
    with pytest.raises(OSError, match="No space left"):
        log.flush()
    assert [row["step"] for row in MetricReader(layout).read()[0]] == [1]
    room[0] = 10**6
    log.flush()
    log.append({"step": 4, "time": 1.0})
    assert [row["step"] for row in MetricReader(layout).read()[0]] == [1, 2, 3, 4]
