"""Files that are written whole: a reader sees the old bytes or the new ones, never a mixture."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


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


def sweep(folder: Path, name: str = "*", *, age: float = 3600.0) -> None:
    """Removes what killed writers left of a file; writing one takes seconds.

    Args:
        folder: where it is.
        name: of the file; by default of all files there.
        age: seconds that a temporary file is left alone.
    """
    for left in folder.glob(f".{name}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > age:
                left.unlink()
