"""Files that are written whole: a reader sees the old bytes or the new ones, never a mixture."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

LEFTOVER_SECONDS: Final = 3600.0
"""A temporary file is left alone for so long; writing one takes seconds."""


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of `path` once the block has ended without an error.

    Args:
        path: its folder is made when missing.
        durable: flush to the disk before the name is moved, so that a power cut cannot leave an
            empty file; off for what only matters while the machine is up.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Replaces `path` by `data`, text as UTF-8; see `replacing`."""
    with replacing(path, durable=durable) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def is_temporary(path: Path) -> bool:
    """Says whether `path` is what a killed writer left behind."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def sweep(folder: Path, name: str = "*") -> None:
    """Removes what killed writers left of a file, by default of all files of a folder."""
    remove_leftovers(folder.glob(f".{name}.*.tmp"))


def remove_leftovers(paths: Iterable[Path]) -> None:
    """Removes files that have not been touched for `LEFTOVER_SECONDS`; nobody writes them any more."""
    for path in paths:
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
                path.unlink()
