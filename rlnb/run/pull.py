"""Brings a run from its store into a local folder, again and again at the cost of what has changed.

Readers only ever read local folders. A pulled folder is whole at any moment: payload comes before
the manifest that speaks of it, status.json comes last, and a pull that was killed is continued by
the next one. After `what="all"` a run can be resumed from the folder alone.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from rlnb.errors import RunFormatError, RunNotFound, StoreUnreachable, UsageError
from rlnb.run.atomic import is_temporary
from rlnb.run.layout import RunLayout, read_json, write_json
from rlnb.run.parts import APPENDED, Part, chain, whole_parts
from rlnb.run.storage import Entry, Storage, StoreMissing, open_storage

What = Literal["all", "light"]

_PRIVATE = ("local/", "work/")  # a store has no business there
_IMMUTABLE = ("attempts/", "bundle/", "control/", "checkpoints/", "run.yaml")
_RANGE = 8 << 20
_ROUNDS = 5
#: Stores tell the time of a change by the second or worse: what is this fresh is fetched again.
_COARSE = 2.0


def pull(url: str, target: Path | str, *, what: What = "all") -> RunLayout:
    """Brings `target` up to date with the run at `url`.

    Args:
        url: the run's address, `<store>/<id>` (a query stays behind the path).
        target: the local folder; made when missing. Pulls into it wait for each other.
        what: "light" leaves out checkpoint payloads, data and TensorBoard files.

    Returns:
        The layout of `target`.

    Raises:
        RunNotFound: there is no run at `url`.
        StoreError: the store cannot be read.
        RunFormatError: the store holds names that leave the folder.
    """
    if what not in ("all", "light"):
        raise UsageError(f"what={what!r} is unknown; use 'all' or 'light'.")
    storage = open_storage(url)
    try:
        for _ in range(_ROUNDS):
            entries = {e.name: e for e in storage.list() if not e.name.startswith(_PRIVATE)}
            if "run.yaml" not in entries:
                more = " yet: its notebook has not reached promote()" if entries else ""
                raise RunNotFound(f"{storage.url} holds no run.yaml{more}; check the address.")
            layout = RunLayout(target)
            with _alone(layout):
                try:
                    return _Pull(storage, layout, entries).bring(light=what == "light")
                except StoreMissing:
                    continue  # merged or superseded since it was listed: look again
        raise StoreUnreachable(f"{storage.url} changes faster than it can be read; try again.")
    finally:
        storage.close()


class _Pull:
    """One pull with one listing of the store."""

    def __init__(self, storage: Storage, layout: RunLayout, entries: dict[str, Entry]) -> None:
        self.storage, self.layout, self.entries = storage, layout, entries
        self._path = layout.local / "pulled.json"
        saved = read_json(self._path) or {}
        if saved.get("url") != storage.url:
            saved = {}
        self._known: dict[str, list[float]] = dict(saved.get("files") or {})
        self._newest = max((e.modified for e in entries.values()), default=0.0)

    def bring(self, *, light: bool) -> RunLayout:
        try:
            for name in self._ordered(light=light):
                self._bring_file(self.entries[name])
            for name, parts in whole_parts(self.entries.values()).items():
                if not (light and name.startswith("logs/tb/")):
                    self._bring_log(name, parts)
            self._remove_checkpoints()
            for name in ("training.json", "status.json"):
                if name in self.entries:
                    self._fetch(self.entries[name])
        finally:
            write_json(self._path, {"url": self.storage.url, "files": self._known}, durable=False)
        return self.layout

    def _ordered(self, *, light: bool) -> Iterator[str]:
        """Yields the ordinary objects: a checkpoint's manifest after its payload, run.yaml at the end."""
        manifests = []
        for name in sorted(self.entries):
            if name.startswith(APPENDED) or name in ("run.yaml", "status.json", "training.json"):
                continue
            if is_temporary(Path(name)):
                continue
            if name.startswith("checkpoints/") and name.endswith("/manifest.json"):
                manifests.append(name)
            elif not (light and name.startswith(("checkpoints/", "data/"))):
                yield name
        yield from manifests
        yield "run.yaml"

    def _bring_file(self, entry: Entry) -> None:
        path = self.layout.resolve(entry.name)
        try:
            here = os.lstat(path).st_size == entry.size
        except FileNotFoundError:
            here = False
        same = entry.name.startswith(_IMMUTABLE) or self._known.get(entry.name) == [
            entry.size,
            entry.modified,
        ]
        if not (here and same):
            self._fetch(entry)
        elif entry.name not in self._known:
            self._known[entry.name] = [entry.size, entry.modified]

    def _fetch(self, entry: Entry) -> None:
        path = self.layout.resolve(entry.name)
        self._make_folder(path.parent)
        temporary = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex[:8]}.tmp")
        try:
            with open(temporary, "xb") as file:
                while piece := self.storage.read(
                    entry.name, start=file.tell(), end=min(entry.size, file.tell() + _RANGE)
                ):
                    file.write(piece)
                short = file.tell() < entry.size
            if short:
                raise StoreMissing(f"{entry.name} was replaced by a shorter one while it was read.")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        fresh = self._newest - entry.modified < _COARSE
        self._known[entry.name] = [entry.size, -1.0 if fresh else entry.modified]

    def _bring_log(self, name: str, parts: list[Part]) -> None:
        path = self.layout.resolve(name)
        self._make_folder(path.parent)
        end = max((part.end for part in chain(parts)), default=0)
        try:
            size = os.lstat(path).st_size
        except FileNotFoundError:
            size = 0
        if size > end:
            if name not in self._known:
                return  # grown here, not there yet
            path.unlink()  # written anew there
            size = 0
        with open(path, "ab") as file:
            for part in chain(parts, size):
                file.write(self.storage.read(part.object_name, start=size - part.start))
                file.flush()
                size = part.end
        self._known[name] = [size, -1.0]

    def _remove_checkpoints(self) -> None:
        """Removes what was pulled once and has been superseded since, manifest first."""
        gone = [n for n in self._known if n.startswith("checkpoints/") and n not in self.entries]
        for name in sorted(gone, key=lambda n: (not n.endswith("/manifest.json"), n)):
            path = self.layout.resolve(name)
            path.unlink(missing_ok=True)
            del self._known[name]
            try:
                path.parent.rmdir()
            except OSError:
                continue

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunFormatError(
                f"{self.storage.url} has an object in the place of the folder {folder.name!r}; remove one of them."
            ) from None


@contextmanager
def _alone(layout: RunLayout) -> Iterator[None]:
    """One pull at a time into a folder: two would append the same bytes twice."""
    layout.local.mkdir(parents=True, exist_ok=True)
    with open(layout.local / "pull.lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
