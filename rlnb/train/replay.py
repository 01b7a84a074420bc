"""Replay buffers in pieces: only filled rows, only what was added, in chunks that are never changed.

A buffer is a ring. Rows are kept in the order in which they were added; the newest lies just before `pos`.
A checkpoint lists the chunks that hold its rows, and how many rows of the first chunk have been overwritten.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer

from rlnb.errors import CheckpointError
from rlnb.train.codec import decode_tree, encode_tree

PIECE_BYTES = 64 << 20
"""Rows are cut into chunks of about this size, so that writing one needs little memory."""

_APPENDING = (ReplayBuffer, DictReplayBuffer, NStepReplayBuffer)
"""Classes whose rows never change once added; others (hindsight replay) are written whole each time."""

Columns = dict[str, Any]


@dataclass
class ReplayPart:
    """What one checkpoint adds.

    Attributes:
        rows: copies of the new rows, (count, n_envs, ...) by column.
        count: how many.
        whole: whether they replace everything that was written before.
        pos, full, filled, size, steps: of the buffer at that moment.
        edge: the row at `pos`, which a memory-saving buffer uses for the newest next observation.
        other: the buffer's arrays and numbers that are no columns.
    """

    rows: Columns
    count: int
    whole: bool
    pos: int
    full: bool
    filled: int
    size: int
    steps: int
    edge: Columns
    other: dict[str, Any]


@dataclass
class ReplayLog:
    """Which rows stand in which chunks; carried from checkpoint to checkpoint and across attempts.

    Attributes:
        chunks: (name, rows), oldest first; None before anything was written.
        pos: the buffer's position at the last checkpoint.
        steps: calls of `add` until then.
    """

    chunks: list[tuple[str, int]] | None = None
    pos: int = 0
    steps: int = 0
    skip: int = field(default=0)

    def capture(self, buffer: Any, *, steps: int) -> ReplayPart:
        """Copies what was added since the last commit.

        Args:
            buffer: the replay buffer.
            steps: calls of `add` so far, i.e. vector steps done.
        """
        size, pos = int(buffer.buffer_size), int(buffer.pos)
        filled = size if buffer.full else pos
        added, asserted = (pos - self.pos) % size, steps - self.steps
        # Whatever does not fit together (a callback that adds rows of its own, a full turn of the ring) is
        # written whole: more bytes, never wrong ones.
        whole = (
            self.chunks is None
            or type(buffer) not in _APPENDING
            or asserted >= size
            or asserted % size != added
        )
        count = filled if whole else added
        columns = ring_columns(buffer)
        rows = {name: _cut(array, pos, count) for name, array in columns.items()} if count else {}
        edge = {
            name: array[pos : pos + 1].copy() for name, array in columns.items() if not array.dtype.hasobject
        }
        return ReplayPart(
            rows, count, whole, pos, bool(buffer.full), filled, size, steps, edge, _others(buffer)
        )

    def commit(self, part: ReplayPart, write: Callable[[bytes], str]) -> dict[str, Any]:
        """Writes the new rows and returns what the checkpoint has to say about its buffer.

        Args:
            part: from `capture`, of the same log.
            write: stores one chunk and returns its name.
        """
        chunks, skip = ([], 0) if part.whole else (list(self.chunks or []), self.skip)
        for start, stop in _pieces(part.rows, part.count):
            piece = {name: array[start:stop] for name, array in part.rows.items()}
            chunks.append((write(encode_tree(piece)), stop - start))
        surplus = sum(rows for _, rows in chunks) - part.filled
        while chunks and surplus >= chunks[0][1]:
            surplus -= chunks.pop(0)[1]
        skip = surplus
        self.chunks, self.pos, self.steps, self.skip = chunks, part.pos, part.steps, skip
        return {
            "chunks": [list(one) for one in chunks], "skip": skip, "pos": part.pos, "full": part.full,
            "filled": part.filled, "size": part.size, "steps": part.steps, "edge": part.edge, "other": part.other,
        }  # fmt: skip

    def resume(self, header: Mapping[str, Any]) -> None:
        """Goes on from the checkpoint that has been restored, so that its chunks are used again."""
        self.chunks = [(str(name), int(rows)) for name, rows in header["chunks"]]
        self.pos, self.steps, self.skip = int(header["pos"]), int(header["steps"]), int(header["skip"])


def restore_replay(buffer: Any, header: Mapping[str, Any], read: Callable[[str], bytes]) -> bool:
    """Fills a buffer from chunks.

    Args:
        buffer: a buffer of the same spaces; its size may differ (a fork), then the newest rows are kept.
        header: what `commit` returned.
        read: returns a chunk's bytes by name.

    Returns:
        Whether the buffer is now exactly as it was, so that its chunks can be used on.

    Raises:
        CheckpointError: the rows do not fit, e.g. after a change of n_envs.
    """
    size, filled = int(buffer.buffer_size), int(header["filled"])
    same = size == int(header["size"])
    keep = min(filled, size)
    place = (int(header["pos"]) - filled) % size if same else 0
    drop = int(header["skip"]) + filled - keep
    columns = ring_columns(buffer)
    for name, _ in header["chunks"]:
        rows = decode_tree(read(str(name)))
        count = len(next(iter(rows.values())))
        if drop >= count:
            drop -= count
            continue
        _check_fit(columns, rows)
        for key, array in rows.items():
            _paste(columns[key], array[drop:], place)
        place, drop = (place + count - drop) % size, 0
    buffer.pos, buffer.full = (
        (int(header["pos"]), bool(header["full"])) if same else (keep % size, keep == size)
    )
    if same:
        for key, array in header["edge"].items():
            columns[key][buffer.pos : buffer.pos + 1] = array
        for name, value in header["other"].items():
            setattr(buffer, name, value.copy() if isinstance(value, np.ndarray) else value)
    return same


def check_chunks(header: Mapping[str, Any], read: Callable[[str], bytes]) -> None:
    """Reads every chunk once, so that one which cannot be read is found before anything has been restored.

    Raises:
        CheckpointError: a chunk is missing or holds something else, or the header is no header.
    """
    try:
        for name, count in header["chunks"]:
            rows = decode_tree(read(str(name)))
            if {len(array) for array in rows.values()} != {count}:
                raise CheckpointError(
                    f"The replay chunk {name} does not hold {count} rows; choose another checkpoint."
                )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"A checkpoint's replay buffer cannot be read ({error}); choose another one."
        ) from None


def ring_columns(buffer: Any) -> Columns:
    """Returns the buffer's arrays that have one row per transition, dict observations flattened."""
    size = int(buffer.buffer_size)
    columns: Columns = {}
    for name, value in vars(buffer).items():
        if isinstance(value, np.ndarray) and value.ndim >= 2 and len(value) == size:
            # Hindsight replay has a column of dicts, all of them empty unless it is told to copy infos.
            if not value.dtype.hasobject or getattr(buffer, "copy_info_dict", True):
                columns[name] = value
        elif isinstance(value, dict) and value and all(isinstance(one, np.ndarray) for one in value.values()):
            columns |= {f"{name}/{key}": one for key, one in value.items() if len(one) == size}
    return columns


def _others(buffer: Any) -> dict[str, Any]:
    columns = ring_columns(buffer)
    return {
        name: value.copy()
        for name, value in vars(buffer).items()
        if isinstance(value, np.ndarray) and name not in columns and not value.dtype.hasobject
    }


def _cut(array: Any, pos: int, count: int) -> Any:
    """Copies the `count` rows before `pos`; rows of objects become lists, which the codec can carry."""
    start = pos - count
    rows = array[start:pos].copy() if start >= 0 else np.concatenate([array[start:], array[:pos]])
    return copy.deepcopy(rows.tolist()) if array.dtype.hasobject else rows


def _paste(array: Any, rows: Any, place: int) -> None:
    if isinstance(rows, list):
        found = np.empty((len(rows), *array.shape[1:]), dtype=object)
        found[:] = rows
        rows = found
    first = min(len(rows), len(array) - place)
    array[place : place + first] = rows[:first]
    if first < len(rows):
        array[: len(rows) - first] = rows[first:]


def _pieces(rows: Columns, count: int) -> Iterator[tuple[int, int]]:
    width = max(1, sum(getattr(array, "nbytes", 0) for array in rows.values()) // max(count, 1))
    step = max(1, PIECE_BYTES // width)
    for start in range(0, count, step):
        yield start, min(count, start + step)


def _check_fit(columns: Columns, rows: Columns) -> None:
    for key, array in rows.items():
        if isinstance(array, list) and key in columns and columns[key].dtype.hasobject:
            continue
        if (
            key not in columns
            or columns[key].shape[1:] != array.shape[1:]
            or columns[key].dtype != array.dtype
        ):
            there = columns[key].shape[1:] if key in columns else "nothing"
            raise CheckpointError(
                f"The checkpoint's replay buffer has {key} of shape {array.shape[1:]}, this experiment's has {there}; "
                "keep n_envs and the observation space, or leave the replay buffer out (init_from without replay)."
            )
