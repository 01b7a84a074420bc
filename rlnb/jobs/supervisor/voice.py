"""Speaking for a run: status.json, events, and the record of its processes.

A full disk must not end a job, so what cannot be written now is said at the next heartbeat. What a
superseded supervisor has to say is never written.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from typing import Any

from rlnb import settings
from rlnb.errors import RlnbError
from rlnb.jobs.survivors import record_processes
from rlnb.run.claims import Claim
from rlnb.run.events import EventLog
from rlnb.run.host import ProcessIdentity, utc_now
from rlnb.run.layout import RunLayout
from rlnb.run.status import State, Status, write_status
from rlnb.run.writing import complain, try_to_write

#: Seconds between two updates of the index while the state stays the same.
LISTING = 10.0


class Voice:
    """Writes status.json of one run while this process holds its newest claim."""

    def __init__(self, layout: RunLayout, claim: Claim) -> None:
        self.layout, self.claim = layout, claim
        self.status = Status(State.STARTING, claim.number, ProcessIdentity.of(), started=utc_now())
        self._said: Status | None = None
        self._next_beat = self._next_listing = 0.0
        self._processes: frozenset[int] = frozenset()

    @property
    def events(self) -> EventLog:
        """The run's events, under the current attempt."""
        return EventLog(self.layout, attempt=self.claim.number)

    @property
    def heard(self) -> bool:
        """Whether the state that was said last stands in status.json: a full disk may have kept it out."""
        return self._said is not None and self._said.state is self.status.state

    def take_over(self, claim: Claim) -> None:
        """Speaks for a further attempt from now on."""
        self.claim = claim
        self.status = replace(self.status, attempt=claim.number, started=utc_now())

    def say(self, **changes: Any) -> bool:
        """Changes what is said; written at once when the state or its reason changes.

        Returns:
            Whether it was time for a heartbeat.

        Raises:
            Superseded: a newer attempt has been claimed; nothing was written.
        """
        self.status = replace(self.status, **changes)
        now = time.monotonic()
        beat = now >= self._next_beat
        said = self._said
        news = said is None or (
            (said.state, said.reason, said.attempt, said.evidence, said.retries_used)
            != (self.status.state, self.status.reason, self.status.attempt, self.status.evidence, self.status.retries_used)
        )  # fmt: skip
        if not (beat or news):
            return False
        self.claim.check()
        if beat:
            self.status = replace(self.status, heartbeat=self.status.heartbeat + 1)
            self._next_beat = now + settings.heartbeat()
        if try_to_write(lambda: write_status(self.layout, self.status)):
            self._said = self.status
        if news or now >= self._next_listing:
            self._next_listing = now + LISTING
            self._list()
        return beat

    def say_at_once(self, **changes: Any) -> None:
        """Like `say`, without waiting for the heartbeat: for the last word before this process ends."""
        self._next_beat = 0.0
        self.say(**changes)

    def _list(self) -> None:
        """Brings the index up to date; a listing is a convenience, so its failure is only logged."""
        from rlnb.run.index import Index

        said = self.status
        try:
            Index().upsert(
                self.layout.id,
                state=said.state,
                attempt=said.attempt,
                step=said.step,
                return_mean=said.return_mean,
            )
        except (RlnbError, sqlite3.Error, OSError) as error:
            complain(f"The index was not updated: {error}")

    def tell(self, kind: str, message: str, **data: Any) -> None:
        """Appends an event."""
        self.claim.check()
        try_to_write(lambda: self.events.append(kind, message, **data))

    def record(self, pids: dict[int, str]) -> None:
        """Records the run's processes, when they have changed."""
        if frozenset(pids) != self._processes and try_to_write(lambda: record_processes(self.layout, pids)):
            self._processes = frozenset(pids)
