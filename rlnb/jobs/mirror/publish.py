"""Publishing one working copy: payload first, what makes it count last, and the claim before each.

The order within a pass: bundle, run.yaml, answers to requests, growth of the logs, ordinary files,
checkpoints from the newest on (payload, then manifest), removals (manifest, then payload), and
status.json at the very end. A pass may end anywhere and begin again: every step is idempotent.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlnb import settings
from rlnb.errors import RunError
from rlnb.jobs.mirror.claim import StoreClaim
from rlnb.jobs.mirror.ledger import Ledger
from rlnb.jobs.mirror.logs import LogPublisher
from rlnb.jobs.mirror.scan import IMMUTABLE, LocalCheckpoint, Scan, Stamp, atomic
from rlnb.run.atomic import write_atomic
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.record import RunRecord, read_record
from rlnb.run.status import State
from rlnb.run.storage import Storage, StoreMissing

_REQUEST = re.compile(r"control/\d{1,25}-[0-9a-f]{1,32}\.json")
_LONGEST_REQUEST = 64 << 10
#: Up to this size a file is read before it is sent, so that a change meanwhile cannot tear it.
_READ_WHOLE = 4 << 20


class Publisher:
    """Brings the store to the state of the working copy.

    Args:
        layout: the working copy.
        storage: the run's folder in the store.
        claim: the right to publish.
        ledger: what has been sent, over restarts.
    """

    def __init__(self, layout: RunLayout, storage: Storage, claim: StoreClaim, ledger: Ledger) -> None:
        self.layout, self.storage, self.claim, self.ledger = layout, storage, claim, ledger
        self._remote: dict[str, int] = {entry.name: entry.size for entry in storage.list()}
        self._logs = LogPublisher(layout, storage, claim, ledger, self._remote)
        self._before: dict[str, Stamp] = {}
        self._run_seen: Stamp | None = None
        self._status: bytes | None = None
        self._status_at = float("-inf")

    # -- what waits -------------------------------------------------------------------------
    def unsent(self, scan: Scan, *, ended: bool) -> dict[str, int]:
        """Returns the names that are not in the store as they are here, with the bytes to send."""
        waiting = {n: s.size for n, s in scan.files.items() if not self._is_sent(n, s)}
        waiting |= self._logs.unsent(scan)
        for checkpoint in scan.checkpoints:
            for name in (*checkpoint.payload, checkpoint.manifest):
                if not self._is_sent(name, scan.stamps[name]):
                    waiting[name] = scan.stamps[name].size
        run_yaml = scan.stamps.get("run.yaml")
        if run_yaml and "run.yaml" not in self._remote and self._publishable(ended=ended):
            waiting["run.yaml"] = run_yaml.size
        return waiting

    def is_published(self, checkpoint: LocalCheckpoint) -> bool:
        """Says whether a checkpoint counts in the store."""
        return checkpoint.manifest in self._remote

    # -- one pass -----------------------------------------------------------------------------
    def publish(self, scan: Scan, *, status: dict[str, Any] | None, ended: bool) -> None:
        """Sends everything that is whole now.

        Args:
            scan: what is there.
            status: the supervisor's word from before the scan, so that it announces nothing that the
                scan has not seen.
            ended: whether nothing will be added any more.

        Raises:
            Superseded: a newer attempt owns the run.
            StoreError: the store failed; call again later, with a new Publisher.
        """
        self.claim.check()
        self._fetch_requests()
        for name in self._ordinary(scan, early=True):
            self._send(name, scan.files[name])
        if "run.yaml" in scan.stamps:
            self._send_run_yaml(scan.stamps["run.yaml"], ended=ended)
        self._logs.publish(scan)
        for name in self._ordinary(scan, early=False):
            self._send(name, scan.files[name])
        for checkpoint in scan.checkpoints:
            self._send_checkpoint(checkpoint, scan)
        self._remove_superseded(scan)
        self._before = dict(scan.files)
        self._send_status(status, sum(self.unsent(scan, ended=ended).values()))

    def _send_status(self, status: dict[str, Any] | None, waiting: int) -> None:
        """Sends the supervisor's word, in which only the mirror can know what still waits.

        An end is not announced before all that belongs to it has arrived.
        """
        if status is None or (waiting and not _living(status)):
            return
        content = (json.dumps({**status, "upload_pending": waiting}, indent=1) + "\n").encode()
        if content != self._status:
            self._write("status.json", content)
            self._status = content
        self._status_at = time.monotonic()

    # -- files ----------------------------------------------------------------------------------
    def _ordinary(self, scan: Scan, *, early: bool) -> Iterator[str]:
        for name, stamp in sorted(scan.files.items()):
            first = name.startswith(("attempts/", "bundle/", "control/"))
            # A file that a library writes is taken when it has stood still for one round.
            settled = atomic(name) or self._before.get(name) == stamp
            if first == early and settled and not self._is_sent(name, stamp):
                yield name

    def _is_sent(self, name: str, stamp: Stamp) -> bool:
        if self._remote.get(name) != stamp.size:
            return False
        sent = self.ledger.stamp(name)
        # Without a note of our own (a resumed copy, a lost ledger) an equal size tells for what never changes.
        return sent == stamp or (sent is None and name.startswith(IMMUTABLE))

    def _send(self, name: str, stamp: Stamp) -> bool:
        """Sends a file if it is still what was seen; says whether it is in the store now."""
        path = self.layout.root / name
        try:
            if stamp.size <= _READ_WHOLE:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with os.fdopen(handle, "rb") as file:
                    content = file.read(_READ_WHOLE + 1)
                if len(content) != stamp.size or self._stamp(name) != stamp:
                    return False
                self._write(name, content)
            else:
                self._write(name, path, stamp.size)
                if self._stamp(name) != stamp:
                    return False
        except (FileNotFoundError, IsADirectoryError):
            return False  # gone or replaced meanwhile; the next look tells
        self.ledger.note(name, stamp)
        return True

    def _send_run_yaml(self, stamp: Stamp, *, ended: bool) -> None:
        """Once, when nothing in it can change any more.

        Again only where the store's is torn, or is that of a run which had ended before it was complete
        and was resumed.
        """
        if "run.yaml" in self._remote:
            if stamp in (self._run_seen, self.ledger.stamp("run.yaml")):
                return
            self._run_seen = stamp
            try:
                if RunRecord.from_yaml(self.storage.read("run.yaml").decode()).complete:
                    return
            except (RunError, UnicodeDecodeError, TypeError):
                pass  # torn
        if self._publishable(ended=ended):
            self._send("run.yaml", stamp)

    def _publishable(self, *, ended: bool) -> bool:
        try:
            return read_record(self.layout).complete or ended
        except RunError:
            return False

    def _write(self, name: str, data: bytes | Path, size: int = 0) -> None:
        self.claim.check()
        self._remote.pop(name, None)  # until the answer has come nobody knows
        self.storage.write(name, data)
        self._remote[name] = len(data) if isinstance(data, bytes) else size

    def _stamp(self, name: str) -> Stamp | None:
        try:
            seen = os.lstat(self.layout.root / name)
        except FileNotFoundError:
            return None
        return Stamp(seen.st_size, seen.st_mtime_ns)

    # -- checkpoints ------------------------------------------------------------------------------
    def _send_checkpoint(self, checkpoint: LocalCheckpoint, scan: Scan) -> None:
        if self._is_sent(checkpoint.manifest, scan.stamps[checkpoint.manifest]):
            return
        for name in checkpoint.payload:
            if not self._is_sent(name, scan.stamps[name]) and not self._send(name, scan.stamps[name]):
                return
            self._between(scan)
        self._send(checkpoint.manifest, scan.stamps[checkpoint.manifest])

    def _between(self, scan: Scan) -> None:
        """Keeps logs and heartbeat moving while large checkpoints are under way."""
        if time.monotonic() - self._status_at > max(settings.heartbeat(), 1.0):
            self._logs.publish(scan, grown=True)
            self._send_status(
                read_json(self.layout.status), sum(self.unsent(scan, ended=False).values()) or 1
            )

    def _remove_superseded(self, scan: Scan) -> None:
        """Removes from the store what retention has removed here, never the last one there.

        Only what this working copy once held or sent is judged, so a copy that was pulled without
        its checkpoints takes nothing away.
        """
        self.ledger.remember(name for name in scan.stamps if name.startswith("checkpoints/"))
        gone = [
            name
            for name in sorted(self._remote)
            if name.startswith("checkpoints/") and name not in scan.stamps and self.ledger.knows(name)
        ]
        if not gone or not any(self.is_published(checkpoint) for checkpoint in scan.checkpoints):
            return
        manifests = [name for name in gone if name.endswith("/manifest.json")]
        for name in (*manifests, *(name for name in gone if name not in set(manifests))):
            self.claim.check()
            self.storage.remove([name])
            self._remote.pop(name, None)
            self.ledger.forget(name)

    # -- requests ---------------------------------------------------------------------------------
    def _fetch_requests(self) -> None:
        """Brings requests that other machines have put into the store to the supervisor."""
        for entry in self.storage.list("control/"):
            if not _REQUEST.fullmatch(entry.name) or entry.size > _LONGEST_REQUEST:
                continue
            self._remote[entry.name] = entry.size
            if (self.layout.root / entry.name).exists():
                continue
            try:
                content = self.storage.read(entry.name)
                json.loads(content)
            except (StoreMissing, ValueError):
                continue  # withdrawn, or not yet whole
            write_atomic(self.layout.resolve(entry.name), content)


def _living(status: dict[str, Any]) -> bool:
    try:
        return State(str(status.get("state"))).living
    except ValueError:
        return True
