"""Immutable pieces that several checkpoints share, named by the sha256 of their content.

A replay buffer is kept as chunks of the rows that were added; a checkpoint's manifest lists those it needs.
A chunk is never changed, so a copy of it elsewhere is right or absent, and it goes when no manifest needs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from rlnb.run.atomic import is_temporary, write_atomic
from rlnb.run.layout import RunLayout

BLOCK = 1 << 20


def write_chunk(layout: RunLayout, data: bytes, *, extension: str) -> str:
    """Stores a chunk and returns its name relative to `checkpoints/`.

    Args:
        layout: the run folder.
        data: the content.
        extension: of the file's name, e.g. "npz".
    """
    path = layout.chunks / f"{hashlib.sha256(data).hexdigest()}.{extension}"
    if not path.exists():
        write_atomic(path, data)
    return f"{layout.chunks.name}/{path.name}"


def collect_chunks(layout: RunLayout, *, needed: Iterable[str]) -> list[str]:
    """Removes the chunks that no manifest needs, and what a killed writer left behind.

    Only the attempt that owns the run may call it, and only between two checkpoints.

    Args:
        layout: the run folder.
        needed: names relative to `checkpoints/`, of all manifests.

    Returns:
        The names that were removed.
    """
    keep = set(needed)
    removed = []
    if not layout.chunks.is_dir():
        return []
    for path in sorted(layout.chunks.iterdir()):
        name = f"{layout.chunks.name}/{path.name}"
        if name not in keep or is_temporary(path):
            path.unlink(missing_ok=True)
            removed.append(name)
    return removed


def file_sha256(path: Path) -> str:
    """Returns a file's sha256 in hex, read in blocks."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
