"""Pictures of recorded episodes: what a viewer shows beside the numbers, in a Parquet file of their own.

The images are stored as they were compressed (WebP or JPEG), one row each, so the file itself is not
compressed again. Nothing here looks into an image.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlnb.errors import RunFormatError, UsageError

FORMAT: Final = 1
_META: Final = b"rlnb"


@dataclass(frozen=True)
class Frames:
    """Compressed pictures of some steps of some episodes.

    Frame t shows the state that the observation of row t describes; an episode of n steps has the frames 0
    to n at most, and frame n shows where it ended.

    Attributes:
        episode: number of each frame's episode, from 0 in the order of the recording; ascending.
        t: its step within the episode; ascending within one.
        images: the compressed images.
        said: one sentence about frames that are missing, "" when none is.
    """

    episode: Sequence[int] = ()
    t: Sequence[int] = ()
    images: Sequence[bytes] = ()
    said: str = ""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def bytes(self) -> int:
        """Size of all images."""
        return sum(map(len, self.images))


def write_frames(path: Path, frames: Frames, *, id: str) -> None:
    """Writes frames whole.

    Args:
        path: the file.
        frames: at least one.
        id: of the recording that they belong to.

    Raises:
        UsageError: if they are not in order, or of unequal lengths.
    """
    import pyarrow as pa

    from rlnb.run.trajectories import write_table

    places = list(zip(frames.episode, frames.t, strict=False))
    if not len(frames.episode) == len(frames.t) == len(frames.images) or places != sorted(set(places)):
        raise UsageError(
            "frames= needs one episode, t and image each, in order; take them from record_rollouts"
        )
    columns = {
        "episode": pa.array(frames.episode, type=pa.int32()),
        "t": pa.array(frames.t, type=pa.int32()),
        "image": pa.array(frames.images, type=pa.binary()),
    }
    meta = {"format": FORMAT, "recording": id}
    table = pa.table(columns).replace_schema_metadata({_META: json.dumps(meta).encode()})
    write_table(path, table, compression="none")


class FrameReader:
    """Finds frames in one file, which is read once.

    Args:
        path: the file.
        id: of the recording that it has to belong to.

    Raises:
        RunFormatError: if the file is damaged, of a newer format, or belongs to another recording.
    """

    def __init__(self, path: Path, *, id: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
            meta = json.loads((table.schema.metadata or {}).get(_META, b"{}"))
            episode, t = (table.column(name).to_numpy() for name in ("episode", "t"))
            self._images: Any = table.column("image").combine_chunks()
            written = int(meta["format"]), str(meta["recording"])
        except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            lines = str(error).splitlines() or [type(error).__name__]
            raise RunFormatError(f"the frames in {path} cannot be read: {lines[0]}") from error
        if written[0] > FORMAT:
            raise RunFormatError(f"{path} is of format {written[0]}, newer than this rlnb reads; update rlnb")
        if written[1] != id:
            raise RunFormatError(f"{path} holds the frames of another recording; it is left alone")
        numbers, first = np.unique(episode, return_index=True)
        ends = [*first.tolist()[1:], len(episode)]
        self._spans = {
            int(number): (int(start), t[start:end].tolist())
            for number, start, end in zip(numbers, first, ends, strict=True)
        }

    def times(self, episode: int) -> list[int]:
        """Returns the steps of an episode that have a frame, ascending."""
        return list(self._spans.get(episode, (0, []))[1])

    def at(self, episode: int, t: int) -> bytes | None:
        """Returns the nearest frame at or before step t, or None where the episode has none."""
        start, times = self._spans.get(episode, (0, []))
        place = bisect_right(times, t) - 1
        return None if place < 0 else bytes(self._images[start + place].as_py())
