"""A store in this process's memory: for tests, since it ends with the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlnb.errors import StoreConflict
from rlnb.run.storage import Entry, StoreAddress, StoreMissing, check_name
from rlnb.run.storages.folder import pieces

_STORES: dict[str, dict[str, tuple[bytes, float]]] = {}
_LOCK = threading.Lock()


class MemoryStorage:
    """Objects in a dictionary that every `memory://` URL of the same name shares.

    Args:
        address: its place names the dictionary, its path is a prefix.
    """

    def __init__(self, address: StoreAddress) -> None:
        self.url = address.url
        self._objects = _STORES.setdefault(address.place, {})
        self._prefix = f"{address.path}/" if address.path else ""

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        try:
            return self._objects[self._prefix + check_name(name)][0][start:end]
        except KeyError:
            raise StoreMissing(f"{self.url} has no {name}.") from None

    def write(self, name: str, data: bytes | Path, *, exclusive: bool = False) -> None:
        with pieces(data) as source:
            content = b"".join(source)
        with _LOCK:
            if exclusive and self._prefix + check_name(name) in self._objects:
                raise StoreConflict(f"{self.url} already has {name}.")
            self._objects[self._prefix + check_name(name)] = content, time.time()

    def list(self, prefix: str = "") -> Iterator[Entry]:
        with _LOCK:
            found = sorted(self._objects.items())
        for name, (content, modified) in found:
            if name.startswith(self._prefix + prefix):
                yield Entry(name[len(self._prefix) :], len(content), modified)

    def remove(self, names: Iterable[str]) -> None:
        with _LOCK:
            for name in names:
                self._objects.pop(self._prefix + check_name(name), None)

    def close(self) -> None:
        """Nothing to release: the objects stay for the next one who opens the URL."""
