from __future__ import annotations

import os

from rlnb.jobs.worker.outputs import (
    HEAD,
    LEFT_OUT,
    TAIL,
    OutputFilter,
    append_text,
    copy_raw_output,
    without_colours,
)
from rlnb.run.layout import RunLayout
from rlnb.run.secrets import Redactor

SECRET = "hunter2-hunter2"


def stream(text: str, name: str = "stdout") -> dict:
    return {"msg_type": "stream", "content": {"name": name, "text": text}}


def test_a_secret_across_two_writes_is_found(tmp_path):
    layout = RunLayout(tmp_path)
    outputs = OutputFilter(layout, Redactor({SECRET: "API_TOKEN"}))
    shown = [outputs.redact(stream(part)) for part in (f"token {SECRET[:6]}", f"{SECRET[6:]} end\n")]
    text = "".join(m["content"]["text"] for m in shown if m) + "".join(r["text"] for r in outputs.rest())
    assert text == "token [redacted] end\n"
    assert layout.stdout_log.read_text() == text


def test_a_held_back_end_comes_with_the_end_of_the_cell(tmp_path):
    outputs = OutputFilter(RunLayout(tmp_path), Redactor({SECRET: "API_TOKEN"}))
    first = outputs.redact(stream(f"who is {SECRET[:4]}", "stderr"))
    assert first is not None
    assert first["content"]["text"] == "who is "
    assert list(outputs.rest()) == [{"name": "stderr", "text": SECRET[:4]}]
    assert list(outputs.rest()) == []


def test_errors_displays_and_widgets_are_redacted(tmp_path):
    layout = RunLayout(tmp_path)
    outputs = OutputFilter(layout, Redactor({SECRET: "API_TOKEN"}))
    error = {
        "msg_type": "error",
        "content": {"ename": "E", "evalue": SECRET, "traceback": [f"\x1b[31m{SECRET}\x1b[0m"]},
    }
    shown = outputs.redact(error)
    assert shown is not None
    assert SECRET not in str(shown)
    assert layout.stdout_log.read_text() == "[redacted]\n"
    for kind in ("display_data", "execute_result", "update_display_data", "comm_msg"):
        message = {"msg_type": kind, "content": {"data": {"text/plain": f"<{SECRET}>"}}}
        redacted = outputs.redact(message)
        assert redacted is not None
        assert redacted["content"]["data"]["text/plain"] == "<[redacted]>"


def test_a_progress_bar_stays_one_line():
    text = ""
    for part in ("start\n", "10 %\r", "20 %", "\r30 %", "\r100 %\ndone\n"):
        text = append_text(text, part)
    assert text == "start\n100 %\ndone\n"


def test_a_last_carriage_return_keeps_what_it_shows():
    assert append_text("", "50 %\r") == "50 %\r"
    assert append_text("50 %\r", "60 %\r") == "60 %\r"
    assert append_text("a\r", "\n") == "a\n"


def test_a_long_text_loses_its_middle():
    text = "first" + "." * HEAD
    for _ in range(4):
        text = append_text(text, "x" * (HEAD + TAIL))
    text = append_text(text, "last")
    assert text.startswith("first")
    assert text.endswith("last")
    assert text.count(LEFT_OUT) == 1
    assert len(text) <= 2 * (HEAD + TAIL) + 4


def test_colours_are_removed():
    assert without_colours("\x1b[0;31mError\x1b[0m: x") == "Error: x"


def test_the_process_s_own_output_is_redacted_too(tmp_path):
    layout = RunLayout(tmp_path)
    redactor = Redactor({SECRET: "API_TOKEN"})
    reading, writing = os.pipe()
    os.write(writing, f"Fatal: {SECRET} \xff".encode("latin-1"))
    os.close(writing)
    copy_raw_output(reading, OutputFilter(layout, redactor), redactor)
    os.close(reading)
    assert layout.stdout_log.read_text() == "Fatal: [redacted] \\xff"
