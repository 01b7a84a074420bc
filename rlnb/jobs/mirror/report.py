"""The mirror's state in words that a person reads: `local/mirror.json`, and an event when it changes."""

from __future__ import annotations

import os
from enum import StrEnum

from rlnb.errors import StoreDenied, StoreError, StoreFull, StoreUnreachable
from rlnb.run.events import EventLog
from rlnb.run.host import utc_now
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.writing import complain


class Condition(StrEnum):
    """How it stands with the store."""

    CONNECTING = "connecting"
    OK = "ok"
    UNREACHABLE = "unreachable"  # tried again by itself
    DENIED = "denied"  # a person must act; tried again nevertheless
    FULL = "full"
    LOCAL = "local_error"  # this machine's own disk fails the mirror
    SUPERSEDED = "superseded"

    @classmethod
    def of(cls, error: StoreError) -> Condition:
        """Returns the condition that an error stands for."""
        if isinstance(error, StoreDenied):
            return cls.DENIED
        if isinstance(error, StoreFull):
            return cls.FULL
        # What is neither (a request that the store does not know) will not mend itself either.
        return cls.UNREACHABLE if isinstance(error, StoreUnreachable) else cls.DENIED


class MirrorReport:
    """Writes mirror.json and events; a full local disk costs the words, not the mirror.

    Args:
        layout: the run.
        attempt: the attempt that is mirrored.
    """

    def __init__(self, layout: RunLayout, attempt: int) -> None:
        self.layout, self.attempt = layout, attempt
        self.condition = Condition.CONNECTING
        self.since = utc_now()
        self.last_error: str | None = None
        self._events = EventLog(layout, attempt=attempt)
        self._told: set[str] = set()
        self._written: dict[str, object] = {}

    def change(self, condition: Condition, message: str = "", *, waiting: int = 0) -> None:
        """Notes the store's condition; a change is an event."""
        self.last_error = message or self.last_error
        before = self.condition
        if condition is before:
            return
        self.condition, self.since = condition, utc_now()
        if condition is Condition.OK:
            if before is not Condition.CONNECTING:
                self.tell("store_ok", f"The store answers again; {waiting} files waited for it.")
        elif condition is Condition.SUPERSEDED:
            self.tell("store_superseded", message)
        else:
            self.tell(f"store_{condition}", f"{message} Training goes on; {waiting} files wait here.")

    def tell(self, kind: str, message: str, *, once: str = "") -> None:
        """Writes an event; with `once`, only the first time that key is used."""
        if once and once in self._told:
            return
        self._told.add(once)
        try:
            self._events.append(kind, message)
        except OSError as error:
            complain(f"{utc_now()} {kind}: {message} (no event: {error})")

    def write(self, *, pending_bytes: int, pending_files: int) -> None:
        """Replaces mirror.json when something in it has changed."""
        content: dict[str, object] = {
            "state": str(self.condition),
            "since": self.since,
            "pending_bytes": pending_bytes,
            "pending_files": pending_files,
            "last_error": self.last_error,
            "superseded": self.condition is Condition.SUPERSEDED,
            "attempt": self.attempt,
            "pid": os.getpid(),
        }
        if content == self._written:
            return
        try:
            write_json(self.layout.mirror_json, {**content, "time": utc_now()}, durable=False)
            self._written = content
        except OSError as error:
            complain(f"{utc_now()} {self.layout.mirror_json} cannot be written: {error}")
