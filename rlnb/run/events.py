"""What happened to a run, in words: `logs/events.jsonl`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from rlnb.run.appending import append_lines, read_from
from rlnb.run.host import utc_now
from rlnb.run.layout import RunLayout


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes:
        kind: a short stable word, e.g. "started", "checkpoint_damaged", "store_unreachable".
        message: one sentence for a person.
        time: ISO 8601, UTC.
        step: environment steps at that moment, when known.
        attempt: the attempt it belongs to, when known.
        data: further values, JSON.
    """

    kind: str
    message: str
    time: str = ""
    step: int | None = None
    attempt: int | None = None
    data: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "time": self.time, "kind": self.kind, "message": self.message,
            "step": self.step, "attempt": self.attempt, "data": self.data,
        }  # fmt: skip


class EventLog:
    """Appends events to a run; several processes may do so at once."""

    def __init__(self, layout: RunLayout, *, attempt: int | None = None) -> None:
        self.layout, self.attempt = layout, attempt

    def append(self, kind: str, message: str, *, step: int | None = None, **data: Any) -> Event:
        event = Event(kind, message, utc_now(), step, self.attempt, data)
        append_lines(self.layout.events, json.dumps(event.to_dict(), default=str) + "\n")
        return event


def read_events(layout: RunLayout) -> list[Event]:
    """Returns the events in the order in which they were written."""
    return events_from(layout, 0)[0]


def events_from(layout: RunLayout, offset: int) -> tuple[list[Event], int]:
    """Returns the events from a byte offset on, and the next offset."""
    rows, end = read_from(layout.events, offset)
    events = [
        Event(
            str(row.get("kind", "")), str(row.get("message", "")), str(row.get("time", "")),
            row.get("step"), row.get("attempt"), row.get("data") or {},
        )
        for row in rows
    ]  # fmt: skip
    return events, end
