"""The mirror process: brings a run's working copy to its store, whatever the store is up to.

    python -m rlnb.jobs.mirror ROOT --attempt N

The only process that holds store credentials. It never stops training: while the store fails it
waits, tries again with growing pauses, and says so in `local/mirror.json`. It ends by itself when
the run has ended and everything has arrived. SIGTERM and SIGKILL are safe at any moment.

Exit codes: 0 everything has arrived, or a newer attempt of this machine has its own mirror;
2 bad usage; 3 somebody else runs a newer attempt, nothing more was published.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from pathlib import Path
from typing import IO, Any

from rlnb import settings
from rlnb.errors import RlnbError, RunError, StoreError, Superseded, UsageError
from rlnb.jobs.mirror.claim import Replaced, StoreClaim
from rlnb.jobs.mirror.ledger import Ledger
from rlnb.jobs.mirror.publish import Publisher
from rlnb.jobs.mirror.report import Condition, MirrorReport
from rlnb.jobs.mirror.scan import Scan, scan
from rlnb.jobs.mirror.spool import drop_superseded
from rlnb.run.claims import attempt_owner, latest_attempt
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.record import read_record
from rlnb.run.status import State
from rlnb.run.storage import Storage, StoreAddress, open_storage
from rlnb.run.writing import complain

DONE, BAD_USAGE, SUPERSEDED = 0, 2, 3
_LONGEST_PAUSE = 60.0


class Mirror:
    """One run's mirror.

    Args:
        layout: the working copy.
        attempt: the attempt for which it publishes.

    Raises:
        UsageError: the run has no usable store, or no such attempt was claimed here.
    """

    def __init__(self, layout: RunLayout, attempt: int) -> None:
        self.layout, self.attempt = layout, attempt
        record = read_record(layout)
        address = StoreAddress.parse(str(record.store.get("url") or "")).below(layout.id)
        if address.scheme == "file" and os.path.realpath(address.path) == os.path.realpath(layout.root):
            raise UsageError(
                f"The store of {layout.id} is its working copy itself; promote to another folder."
            )
        if attempt_owner(layout, attempt) is None:
            raise UsageError(
                f"Attempt {attempt} of {layout.root} was never claimed; a supervisor does that first."
            )
        self.url = address.url
        self._exclusive = record.store.get("exclusive")
        self._report = MirrorReport(layout, attempt)
        self._ledger = Ledger(layout, self.url)
        self._storage: Storage | None = None
        self._publisher: Publisher | None = None
        self._failures = 0
        self._queued = 0  # the most files that waited during the present outage

    def run(self) -> int:
        """Mirrors until the run has ended and all has arrived; returns the exit code."""
        next_try = time.monotonic()
        while True:
            began = time.monotonic()
            status = read_json(self.layout.status)
            ended = self._has_ended(status)
            seen = scan(self.layout)
            self._mention(seen)
            before = self._report.condition
            if began >= next_try:
                try:
                    self._publish(seen, status, ended=ended)
                except Replaced:
                    return DONE
                except Superseded as error:
                    self._report.change(Condition.SUPERSEDED, str(error))
                    self._report.write(pending_bytes=0, pending_files=0)
                    return SUPERSEDED
                except StoreError as error:
                    next_try = time.monotonic() + self._note_failure(error, Condition.of(error), seen)
                except OSError as error:  # this machine's disk, full perhaps
                    next_try = time.monotonic() + self._note_failure(error, Condition.LOCAL, seen)
            seen = scan(self.layout) if ended else seen
            waiting = self._waiting(seen, ended=ended)
            self._report.write(pending_bytes=sum(waiting.values()), pending_files=len(waiting))
            # An event about the store's return was written after the look at the logs: one more round.
            if ended and not waiting and before is self._report.condition is Condition.OK:
                return DONE
            if latest_attempt(self.layout) > self.attempt:
                return DONE
            beat = settings.heartbeat()
            # A slow store is not asked all the time, but it hears of the supervisor's life often enough.
            pause = min(max(beat, time.monotonic() - began), 2 * beat)
            time.sleep(max(0.05, min(pause, 0.5) if ended else pause))

    def _publish(self, seen: Scan, status: dict[str, Any] | None, *, ended: bool) -> None:
        try:
            if self._storage is None:
                self._storage = open_storage(self.url)
            if self._publisher is None:
                claim = StoreClaim(self.layout, self._storage, self.attempt, exclusive=self._exclusive)
                claim.check()
                self._publisher = Publisher(self.layout, self._storage, claim, self._ledger)
            self._publisher.publish(seen, status=status, ended=ended)
        finally:
            try:
                self._ledger.save()
            except OSError as error:
                complain(f"the mirror's ledger cannot be written: {error}")
        self._failures = 0
        self._report.change(Condition.OK, waiting=self._queued)
        self._queued = 0

    def _note_failure(self, error: Exception, condition: Condition, seen: Scan) -> float:
        """Returns the seconds to wait before the next try."""
        self._failures += 1
        self._queued = max(self._queued, len(self._waiting(seen, ended=False)))
        self._report.change(condition, str(error), waiting=self._queued)
        # What the store holds now is unknown: look again, with credentials read again.
        self._publisher = None
        storage, self._storage = self._storage, None
        if storage is not None:
            storage.close()
        return min(_LONGEST_PAUSE, settings.backoff() * 2.0 ** min(self._failures - 1, 10))

    def _waiting(self, seen: Scan, *, ended: bool) -> dict[str, int]:
        """Returns what is not in the store yet, after dropping what is over the spool's bound.

        Without a connection nobody knows what the store has; then what this copy sent counts.
        """
        if self._publisher is not None:
            waiting, published = self._publisher.unsent(seen, ended=ended), self._publisher.is_published
        else:
            waiting = self._ledger.unsent(seen)

            def published(checkpoint: Any) -> bool:
                return self._ledger.stamp(checkpoint.manifest) is not None

        drop_superseded(self.layout, seen, waiting, self._report, published)
        return waiting

    def _has_ended(self, status: dict[str, Any] | None) -> bool:
        """Says whether nobody will add to the run: it ended, or the supervisor of this attempt is gone."""
        if status is not None and int(status.get("attempt") or 0) >= self.attempt:
            try:
                if not State(str(status.get("state"))).living:
                    return True
            except ValueError:
                pass  # a state of a newer rlnb
        owner = ProcessIdentity.from_dict(attempt_owner(self.layout, self.attempt) or {})
        return owner.this_boot and not owner.alive

    def _mention(self, seen: Scan) -> None:
        for name, reason in seen.skipped.items():
            self._report.tell("not_mirrored", f"{name} is not mirrored: {reason}.", once=name)
        for name, reason in seen.damaged.items():
            self._report.tell("checkpoint_damaged", reason, once=name)


def _lock(layout: RunLayout) -> IO[bytes]:
    """Waits until the mirror of an earlier attempt has ended: one mirror a working copy."""
    layout.local.mkdir(parents=True, exist_ok=True)
    file = open(layout.local / "mirror.lock", "ab")  # noqa: SIM115 - held until the process ends
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def main(arguments: list[str] | None = None) -> int:
    """Runs the mirror; returns its exit code."""
    parser = argparse.ArgumentParser(prog="rlnb.jobs.mirror", description="Mirror a run to its store.")
    parser.add_argument("root", type=Path, help="the run's working copy")
    parser.add_argument("--attempt", type=int, required=True, help="the attempt to publish for")
    asked = parser.parse_args(arguments)
    layout = RunLayout(asked.root)
    try:
        mirror = Mirror(layout, asked.attempt)
        with _lock(layout):
            return mirror.run()
    except (UsageError, RunError) as error:
        return _refuse(layout, asked.attempt, error)


def _refuse(layout: RunLayout, attempt: int, error: RlnbError) -> int:
    print(f"mirror: {error}", file=sys.stderr, flush=True)
    if layout.root.is_dir():
        report = MirrorReport(layout, attempt)
        report.change(Condition.DENIED, str(error))
        report.write(pending_bytes=0, pending_files=0)
    return BAD_USAGE
