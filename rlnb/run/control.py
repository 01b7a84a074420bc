"""Requests to a running job, as files: whoever can write the folder can ask, the supervisor answers.

A request is written once under a name that sorts by time; the supervisor writes the
acknowledgement beside it. Nothing is overwritten, so a request survives any crash and is answered
at most once.
"""

from __future__ import annotations

import errno
import time
import uuid
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from rlnb.errors import RunError
from rlnb.run.host import hostname, utc_now
from rlnb.run.layout import RunLayout, read_json, write_json

_ACK = ".ack.json"


class Verb(StrEnum):
    """Everything that can be asked of a job."""

    PAUSE = "pause"
    SUSPEND = "suspend"
    RESUME = "resume"
    STOP = "stop"
    INSPECTED = "inspected"
    NOTE = "note"


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        id: the file's stem, `<time>-<uuid>`; sorts by time.
        verb: what is asked.
        args: the verb's arguments, JSON.
        host: where it was asked.
        time: ISO 8601, UTC.
    """

    id: str
    verb: Verb
    args: dict[str, Any] = field(default_factory=dict)
    host: str = ""
    time: str = ""


@dataclass(frozen=True)
class Acknowledgement:
    """The supervisor's answer to one request."""

    ok: bool
    message: str
    time: str = ""


def request(layout: RunLayout, verb: Verb, **args: Any) -> str:
    """Asks; returns the request's id, for `await_acknowledgement`.

    Raises:
        RunError: the request cannot be written (a full disk, somebody else's folder, a folder that is gone).
    """
    request_id = f"{time.time_ns():020d}-{uuid.uuid4().hex[:12]}"
    asked = {"verb": str(verb), "args": args, "host": hostname(), "time": utc_now()}
    try:
        if not layout.root.is_dir():  # or making control/ would bring back a folder that was removed
            raise FileNotFoundError(errno.ENOENT, "the run folder is gone")
        write_json(layout.control / f"{request_id}.json", asked)
    except OSError as error:
        raise RunError(f"{str(verb)!r} cannot be asked: {error.strerror} ({layout.root}).") from None
    return request_id


def requests(layout: RunLayout) -> list[Request]:
    """Returns all requests, oldest first; files that are no requests are passed over."""
    found = []
    for path in _request_files(layout):
        data = read_json(path)
        if data and data.get("verb") in list(Verb):
            found.append(
                Request(
                    path.stem, Verb(data["verb"]), dict(data.get("args") or {}),
                    str(data.get("host", "")), str(data.get("time", "")),
                )
            )  # fmt: skip
    return found


def pending(layout: RunLayout) -> list[Request]:
    """Returns the requests that have no answer yet, oldest first."""
    return [r for r in requests(layout) if not (layout.control / f"{r.id}{_ACK}").exists()]


def acknowledge(layout: RunLayout, asked: Request, *, ok: bool, message: str) -> None:
    """Answers a request."""
    write_json(layout.control / f"{asked.id}{_ACK}", {"ok": ok, "message": message, "time": utc_now()})


def acknowledgement(layout: RunLayout, request_id: str) -> Acknowledgement | None:
    """Returns the answer to a request, or None while there is none."""
    data = read_json(layout.control / f"{request_id}{_ACK}")
    if data is None:
        return None
    return Acknowledgement(bool(data.get("ok")), str(data.get("message", "")), str(data.get("time", "")))


def await_acknowledgement(
    layout: RunLayout, request_id: str, *, timeout: float = 10.0
) -> Acknowledgement | None:
    """Waits for the answer to a request; None when none came within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        answer = acknowledgement(layout, request_id)
        if answer is not None or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)


def _request_files(layout: RunLayout) -> list[Path]:
    try:
        names = sorted(p for p in layout.control.iterdir() if p.suffix == ".json")
    except FileNotFoundError:
        return []
    return [p for p in names if not p.name.endswith(_ACK) and not p.name.startswith(".")]
