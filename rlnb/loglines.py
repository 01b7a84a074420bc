"""The run's logs as lines, whole or followed.

`logs/train.log` is structured (what training says), `logs/stdout.log` is what the notebook's cells
printed, `logs/events.jsonl` is what happened to the run, `local/supervisor.log` exists only on the machine
that runs it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from rlnb.errors import UsageError
from rlnb.run.layout import RunLayout

LOOK_EVERY = 0.3  # seconds between two looks while following


class Log(StrEnum):
    """Which log."""

    ALL = "all"  # train, stdout and events
    TRAIN = "train"
    STDOUT = "stdout"
    EVENTS = "events"
    SUPERVISOR = "supervisor"


Line = tuple[str, str]


def named_log(name: str) -> Log:
    """Returns the log of this name.

    Raises:
        UsageError: there is none.
    """
    if name not in list(Log):
        raise UsageError(f"There is no log {name!r}; there are {', '.join(Log)}.")
    return Log(name)


def log_files(layout: RunLayout, which: Log) -> dict[str, Path]:
    """Returns the files that make up a log, by the name shown for each."""
    files = {
        "events": layout.events,
        "stdout": layout.stdout_log,
        "train": layout.train_log,
        "supervisor": layout.supervisor_log,
    }
    if which is Log.ALL:
        del files["supervisor"]
        return files
    return {which.value: files[which.value]}


def read_lines(layout: RunLayout, which: Log = Log.ALL, *, last: int | None = None) -> list[Line]:
    """Returns (log's name, line) pairs, one log after the other; `last` keeps that many of each."""
    found: list[Line] = []
    for name, path in log_files(layout, which).items():
        lines, _ = _lines_from(name, path, 0, whole=False)
        found += lines[-last:] if last else lines
    return found


def follow_lines(
    layout: RunLayout,
    which: Log,
    *,
    refresh: Callable[[], None],
    ended: Callable[[], bool],
    last: int | None = None,
) -> Iterator[Line]:
    """Yields what is there and then what is added, until the run rests.

    Args:
        layout: the run folder.
        which: the log.
        refresh: brings the folder up to date.
        ended: says whether the run rests, so that nothing more will come.
        last: begin with that many lines of each log; None begins at the start.
    """
    files = log_files(layout, which)
    offsets = dict.fromkeys(files, 0)
    first = True
    while True:
        # Asked before reading: what was written before the end is then certainly read after it.
        done = ended()
        refresh()
        for name, path in files.items():
            lines, offsets[name] = _lines_from(name, path, offsets[name], whole=not done)
            yield from (lines[-last:] if first and last else lines)
        first = False
        if done:
            return
        time.sleep(LOOK_EVERY)


def _lines_from(name: str, path: Path, offset: int, *, whole: bool) -> tuple[list[Line], int]:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return [], offset
    end = data.rfind(b"\n") + 1 if whole else len(data)
    texts = data[:end].decode("utf-8", "replace").splitlines()
    if tell := _TELL.get(name):
        texts = [tell(text) for text in texts]
    return [(name, text) for text in texts], offset + end


def _event_text(line: str) -> str:
    try:
        event = json.loads(line)
        step = "" if event.get("step") is None else f" at step {event['step']:,}"
        return f"{event['time']} {event['kind']}{step}: {event['message']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return line  # a torn line is shown as it is


def _train_text(line: str) -> str:
    """A line of train.log for a person; long values (versions, the record) are left to who reads the file."""
    try:
        said = json.loads(line)
        plain = {
            key: value
            for key, value in said.items()
            if isinstance(value, str | int | float) and key not in _SHOWN
        }
        more = ", ".join(f"{key} {value}" for key, value in plain.items())
        return f"{said['time']} {said['message']}" + (f" ({more})" if more else "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return line


_SHOWN = frozenset({"time", "message", "level"})
_TELL = {"events": _event_text, "train": _train_text}


class Logs(str):
    """Log lines as one string; a notebook shows them as lines rather than as a quoted string."""

    def __repr__(self) -> str:
        return str(self)
