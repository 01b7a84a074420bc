"""Append-only JSON lines: one write per line, and readers that tolerate a torn tail."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_redact: Callable[[str], str] | None = None


def redact_with(redact: Callable[[str], str] | None) -> None:
    """Has everything that this process appends pass through `redact`; None ends it.

    The kernel of a job calls it: messages and metric names may quote whatever the notebook's code
    has put into them, a secret that the user let in included.
    """
    global _redact
    _redact = redact


def redacted(text: str) -> str:
    """Returns text as this process may append it."""
    return text if _redact is None else _redact(text)


def append_lines(path: Path, text: str) -> None:
    """Appends whole lines in one write, so that concurrent writers never mix within a line.

    If the last writer was killed within a line, its torn tail is closed with a newline first: the
    next line must not be glued to it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        data = (("\n" if torn else "") + redacted(text)).encode()
        written = os.write(handle, data)
        while written < len(data):  # only on a nearly full disk
            written += os.write(handle, data[written:])
    finally:
        os.close(handle)


def parse_lines(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Parses the whole lines in `data`.

    Returns:
        The JSON objects, and the number of bytes consumed: a tail without a newline is left for
        the next read. Lines that are not JSON objects (a torn line that was closed) are skipped.
    """
    end = data.rfind(b"\n") + 1
    rows = []
    for line in data[:end].splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            rows.append(value)
    return rows, end


def read_from(path: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    """Reads whole lines from a byte offset; returns the rows and the next offset."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            rows, used = parse_lines(file.read())
    except FileNotFoundError:
        return [], offset
    return rows, offset + used
