"""Publishing what grows: each log as byte-range parts, of which there never are many."""

from __future__ import annotations

import os

from rlnb.jobs.mirror.claim import StoreClaim
from rlnb.jobs.mirror.ledger import Ledger
from rlnb.jobs.mirror.scan import Scan
from rlnb.run.layout import RunLayout
from rlnb.run.parts import Part, chain, parse_part, whole_parts
from rlnb.run.storage import Entry, Storage

#: No part is larger, so that neither writer nor reader needs much memory.
LARGEST = 4 << 20
#: So many small parts in a row are replaced by one.
MERGE_COUNT = 16
_SMALL = LARGEST // MERGE_COUNT


class LogPublisher:
    """Publishes growth.

    Args:
        layout, storage, claim, ledger: as the Publisher's.
        remote: names and sizes in the store; kept up to date.
    """

    def __init__(
        self, layout: RunLayout, storage: Storage, claim: StoreClaim, ledger: Ledger, remote: dict[str, int]
    ) -> None:
        self.layout, self.storage, self.claim, self.ledger, self.remote = (
            layout,
            storage,
            claim,
            ledger,
            remote,
        )
        entries = [Entry(name, size, 0.0) for name, size in remote.items()]
        self._chains = {name: chain(parts) for name, parts in whole_parts(entries).items()}
        self._agreed: set[str] = set()

    def unsent(self, scan: Scan) -> dict[str, int]:
        """Returns the logs that have grown (or must be sent anew), with the bytes to send."""
        return {name: size - self._end(name) for name, size in scan.logs.items() if size > self._end(name)}

    def publish(self, scan: Scan, *, grown: bool = False) -> None:
        """Sends what has grown.

        Args:
            scan: the sizes to send up to.
            grown: look at the sizes again: the scan is old.
        """
        for name, seen in scan.logs.items():
            path = self.layout.root / name
            try:
                size = os.lstat(path).st_size if grown else seen
                self._agree(name, size)
                while (start := self._end(name)) < size:
                    end = min(size, start + LARGEST)
                    self._send(Part(name, start, end))
                self._merge(name)
            except FileNotFoundError:
                continue  # a library cleaned up after itself; what was sent stays
            self.ledger.note_log(name, self._end(name))

    def _end(self, name: str) -> int:
        parts = self._chains.get(name)
        return parts[-1].end if parts else 0

    def _agree(self, name: str, size: int) -> None:
        """Makes sure, once, that the store's bytes are the beginning of ours; else starts anew.

        They are not when another machine appended after this copy was pulled, or when a library
        wrote its log from the start again.
        """
        end = self._end(name)
        if name in self._agreed and end <= size:
            return
        known = self.ledger.log_end(name)
        same = end <= size and (known is not None or self._tail_agrees(name))
        keep = {part.object_name for part in self._chains.get(name, [])} if same else set()
        useless = [
            other
            for other in self.remote
            if other not in keep and (part := parse_part(other)) is not None and part.name == name
        ]
        self._remove(useless)
        if not same:
            self._chains[name] = []
        self._agreed.add(name)

    def _tail_agrees(self, name: str) -> bool:
        parts = self._chains.get(name)
        if not parts:
            return True
        last = parts[-1]
        start = max(last.start, last.end - LARGEST)
        theirs = self.storage.read(last.object_name, start=start - last.start)
        return theirs == self._bytes(name, start, last.end)

    def _send(self, part: Part) -> None:
        content = self._bytes(part.name, part.start, part.end)
        if len(content) != part.size:
            raise FileNotFoundError(part.name)  # it shrank; the next look starts anew
        self.claim.check()
        self.storage.write(part.object_name, content)
        self.remote[part.object_name] = part.size
        self._chains.setdefault(part.name, []).append(part)

    def _merge(self, name: str) -> None:
        parts = self._chains.get(name, [])
        small = 0
        while small < len(parts) and parts[-1 - small].size < _SMALL:
            small += 1
        if small < MERGE_COUNT:
            return
        old = parts[-small:]
        del parts[-small:]
        self._send(Part(name, old[0].start, old[-1].end))
        self._remove([part.object_name for part in old])

    def _remove(self, names: list[str]) -> None:
        if names:
            self.claim.check()
            self.storage.remove(names)
            for name in names:
                self.remote.pop(name, None)

    def _bytes(self, name: str, start: int, end: int) -> bytes:
        handle = os.open(self.layout.root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            file.seek(start)
            return file.read(end - start)
