"""What the mirror has sent, over restarts: `local/mirror-sent.json`.

Losing it costs some files being sent twice, never one being missed.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlnb.jobs.mirror.scan import Scan, Stamp
from rlnb.run.layout import RunLayout, read_json, write_json


class Ledger:
    """Stamps of sent files, ends of sent logs, and names of checkpoint files that were here.

    Args:
        layout: the run.
        store: URL it is mirrored to; a ledger of another store is worth nothing.
    """

    def __init__(self, layout: RunLayout, store: str) -> None:
        self._path = layout.local / "mirror-sent.json"
        self._store = store
        saved = read_json(self._path) or {}
        if saved.get("store") != store:
            saved = {}
        self._files = {str(n): Stamp(*map(int, s)) for n, s in (saved.get("files") or {}).items()}
        self._logs = {str(n): int(end) for n, end in (saved.get("logs") or {}).items()}
        self._held = {str(n) for n in saved.get("held") or []}
        pulled = read_json(layout.local / "pulled.json") or {}
        if pulled.get("url") == store:
            # What a resumed copy brought along and has dropped since, perhaps before this look.
            self._held |= {name for name in pulled.get("files") or {} if name.startswith("checkpoints/")}
        self._changed = False

    def stamp(self, name: str) -> Stamp | None:
        """Returns the state in which a file was last sent."""
        return self._files.get(name)

    def note(self, name: str, stamp: Stamp) -> None:
        self._files[name], self._changed = stamp, True

    def log_end(self, name: str) -> int | None:
        """Returns up to which byte a log was sent by this working copy, None when it never was."""
        return self._logs.get(name)

    def note_log(self, name: str, end: int) -> None:
        if self._logs.get(name) != end:
            self._logs[name], self._changed = end, True

    def remember(self, names: Iterable[str]) -> None:
        """Notes checkpoint files that are here, so that their absence later means removal."""
        fresh = set(names) - self._held
        if fresh:
            self._held |= fresh
            self._changed = True

    def knows(self, name: str) -> bool:
        return name in self._held or name in self._files

    def forget(self, name: str) -> None:
        self._held.discard(name)
        self._files.pop(name, None)
        self._changed = True

    def unsent(self, seen: Scan) -> dict[str, int]:
        """Returns what this working copy has not sent yet, with the bytes to send."""
        waiting = {
            n: size - self._logs.get(n, 0) for n, size in seen.logs.items() if size > self._logs.get(n, 0)
        }
        names = [*seen.files, *(n for c in seen.checkpoints for n in (*c.payload, c.manifest))]
        return waiting | {n: seen.stamps[n].size for n in names if self._files.get(n) != seen.stamps[n]}

    def save(self) -> None:
        """Writes what has changed; a full disk is for the caller to bear."""
        if self._changed:
            files = {name: list(stamp) for name, stamp in self._files.items()}
            content = {"store": self._store, "files": files, "logs": self._logs, "held": sorted(self._held)}
            write_json(self._path, content, durable=False)
            self._changed = False
