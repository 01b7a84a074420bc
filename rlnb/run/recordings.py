"""The episodes of a lab: labelled recordings in one folder, each a Parquet file with its frames beside it.

    lander.lab/episodes/001-random.parquet
                        001-random.frames.parquet

Frames are written first and the transitions last, so that a recording is whole once it can be seen. A number
is taken with an exclusive create, so that two labs that record into the same folder never meet. What a
recording is known by is a random id in its metadata: a number may be used again, an id never is, and what
refers to an episode (`"<id>:<place>"`) survives renaming, copying and another machine.
"""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rlnb.design.transitions import Transitions
from rlnb.errors import RlnbError, UsageError, did_you_mean
from rlnb.run.env_reference import EnvReference
from rlnb.run.frame_files import FrameReader, Frames, write_frames
from rlnb.run.host import utc_now
from rlnb.run.recording_entry import OWN, Entry, left_out, open_source, read_entry
from rlnb.run.recording_match import Match, content_digest, relabelled
from rlnb.run.recording_names import RecordingNames, slug
from rlnb.run.trajectories import Footer, read_about, read_footer, read_transitions, write_transitions

_READERS: Final = 8
"""Recordings whose frames are held in memory."""


@dataclass(frozen=True)
class Recorded:
    """All recordings of a folder.

    Attributes:
        batch: their episodes one after the other, or None where there is none.
        keys: for each episode "<entry id>:<place in its entry>".
    """

    batch: Transitions | None
    keys: tuple[str, ...] = ()


class EpisodeStore:
    """Labelled recordings in one folder.

    Args:
        folder: made when the first recording is added.
        env: the environment that recordings have to be of; None takes any.
        names: the components' names that recordings have to have; None takes any.
        signals: names of the signals that are loaded, which every recording has to have; None takes any.

    Attributes:
        problems: one sentence for each file that the last look left out.
        unreadable: for each recording whose frames could not be read, why.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        env: EnvReference | Mapping[str, Any] | None = None,
        names: Sequence[str] | None = None,
        signals: Iterable[str] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.problems: tuple[str, ...] = ()
        self.unreadable: dict[str, str] = {}
        self._match = Match(env, names, signals)
        self._names = RecordingNames(self.folder)
        self._readers: OrderedDict[str, FrameReader | None] = OrderedDict()

    def __repr__(self) -> str:
        return f"EpisodeStore({str(self.folder)!r})"

    def add(
        self,
        batch: Transitions,
        *,
        label: str | None = None,
        about: Mapping[str, Any] | None = None,
        frames: Frames | None = None,
    ) -> Entry:
        """Keeps a recording; it is there whole or, if this process dies, not at all.

        Args:
            batch: whole episodes.
            label: policy label for all episodes; None keeps the batch's own, "demo" where it has none.
            about: where it comes from, JSON-able, e.g. `Rollouts.about`.
            frames: pictures, numbered like the batch's episodes.

        Raises:
            UsageError: if there are no episodes, the label is no text, or the folder cannot be written.
            EnvError: if it is of another environment, or has other components.
        """
        if not len(batch):
            raise UsageError("there is no whole episode to keep; record at least one")
        self._match.require(batch, about or {}, "the recording")
        batch, label = relabelled(batch, label)
        own: dict[str, Any] = {
            "id": secrets.token_hex(4), "label": label, "episodes": len(batch.starts), "created": utc_now(),
            "digest": content_digest(batch), "frames_said": "" if frames is None else frames.said,
        }  # fmt: skip
        try:
            with self._names.number() as number:
                name = f"{number:03d}-{slug(label)}"
                if frames:
                    write_frames(self._names.frames(name), frames, id=own["id"])
                path = self._names.transitions(name)
                write_transitions(path, batch, about={**(about or {}), OWN: own})
        except OSError as error:
            raise UsageError(f"{self.folder} cannot be written ({error}); give another place") from error
        return self._entry_of(path)

    def import_recording(self, source: str | Path | Transitions, *, label: str | None = None) -> Entry:
        """Takes in a recording made elsewhere; one that is here already is not copied again.

        A file that has changed since it was taken in replaces what was taken from it.

        Args:
            source: a file that `rlnb.record(to=…)` wrote, or transitions.
            label: as in `add`.

        Raises:
            UsageError: if there is no such file, or it is no recording.
            EnvError: if it is of another environment, or has other components.
        """
        batch, about = open_source(source)
        origin = None if isinstance(source, Transitions) else os.path.relpath(source, self.folder)
        self._match.require(batch, about, "the recording" if origin is None else str(source))
        digest, outdated = content_digest(batch), list[str]()
        for entry in self.entries():
            if entry.digest == digest:
                return entry
            if origin is not None and entry.about.get("imported") == origin:
                outdated.append(entry.id)
        added = self.add(batch, label=label, about=about | ({"imported": origin} if origin else {}))
        for id in outdated:
            self.remove(id)
        return added

    def entries(self) -> list[Entry]:
        """Lists the recordings by number, from their footers; what cannot be used is named in `problems`."""
        problems: list[str] = []
        found: dict[str, Entry] = {}
        frames = self._names.frames_by_number()
        for path in self._names.all_transitions():
            try:
                entry = read_entry(path, frames.get(self._names.number_of(path)), self._match)
            except FileNotFoundError:
                continue  # another lab has just removed or renamed it
            except (RlnbError, OSError) as error:
                problems.append(left_out(path, error))
                continue
            if entry.id in found:
                problems.append(f"{path.name} is left out: it is a copy of {found[entry.id].path.name}.")
            else:
                found[entry.id] = entry
        self.problems = tuple(problems)
        return list(found.values())

    def load(self, *, without: str = "") -> Recorded:
        """Returns the episodes of all recordings; what cannot be used is named in `problems`.

        Args:
            without: id of a recording that is left out.
        """
        entries = [entry for entry in self.entries() if entry.id != without]
        problems, keys = list(self.problems), list[str]()
        parts: list[Transitions] = []
        first: Footer | None = None
        for entry in entries:
            try:
                footer = read_footer(entry.path)
                if first is not None:
                    self._match.require_alike(footer, first)
                parts.append(self._match.trimmed(read_transitions(entry.path)))
            except FileNotFoundError:
                continue
            except (RlnbError, OSError) as error:
                problems.append(left_out(entry.path, error))
                continue
            first = first or footer
            keys += [f"{entry.id}:{place}" for place in range(len(parts[-1].starts))]
        self.problems = tuple(problems)
        return Recorded(Transitions.concat(parts) if parts else None, tuple(keys))

    def frame(self, key: str, t: int) -> bytes | None:
        """Returns the nearest frame at or before step t, as a compressed image; None where there is none.

        Args:
            key: of the episode, from `Recorded.keys`.
            t: the step; the episode's length is its end.
        """
        reader, place = self._reader(key)
        return None if reader is None else reader.at(place, t)

    def frame_times(self, key: str) -> list[int]:
        """Returns the steps of an episode that have a frame, ascending."""
        reader, place = self._reader(key)
        return [] if reader is None else reader.times(place)

    def next_seed(self, label: str) -> int:
        """Returns the first seed that no recording of this label has begun an episode from.

        Labels share their seeds, so that policies are compared from equal starts.
        """
        ends = [0]
        for entry in self.entries():
            seed = entry.about.get("seed")
            if entry.label == label and isinstance(seed, int):
                ends.append(seed + entry.episodes)
        return max(ends)

    def rename(self, id: str, label: str) -> Entry:
        """Gives a recording and its episodes another label; its id and keys stay.

        Raises:
            UsageError: if there is no such recording, or the label is no text.
        """
        entry = self._entry(id)
        batch, label = relabelled(read_transitions(entry.path), label)
        about = read_about(entry.path)
        about[OWN] = {**about[OWN], "label": label}
        # First the content under the old name: from here on the label is the new one, whatever happens.
        write_transitions(entry.path, batch, about=about)
        name = f"{self._names.number_of(entry.path):03d}-{slug(label)}"
        entry.path.rename(path := self._names.transitions(name))
        if entry.frames is not None:
            entry.frames.rename(self._names.frames(name))
        return self._entry_of(path)

    def remove(self, id: str) -> None:
        """Deletes a recording and its frames.

        Raises:
            UsageError: if there is no such recording.
        """
        entry = self._entry(id)
        entry.path.unlink(missing_ok=True)  # first: without it, the frames are nobody's
        if entry.frames is not None:
            entry.frames.unlink(missing_ok=True)
        self._readers.pop(id, None)

    def _reader(self, key: str) -> tuple[FrameReader | None, int]:
        """Returns the frames of the recording that an episode's key names, and the episode's place in it."""
        id, _, place = key.rpartition(":")
        if not place.isdecimal():
            raise UsageError(f"{key!r} is no episode's key; take one of Recorded.keys")
        if id not in self._readers:
            self._readers[id] = self._open_frames(id)
        self._readers.move_to_end(id)
        while len(self._readers) > _READERS:
            self._readers.popitem(last=False)
        return self._readers[id], int(place)

    def _open_frames(self, id: str) -> FrameReader | None:
        path = next((entry.frames for entry in self.entries() if entry.id == id), None)
        try:
            return None if path is None else FrameReader(path, id=id)
        except RlnbError as error:
            self.problems = (*self.problems, f"{error}.")
            self.unreadable[id] = f"{error}."
            return None

    def _entry_of(self, path: Path) -> Entry:
        frames = self._names.frames_by_number()
        return read_entry(path, frames.get(self._names.number_of(path)), self._match)

    def _entry(self, id: str) -> Entry:
        known = {entry.id: entry for entry in self.entries()}
        if id not in known:
            raise UsageError(
                f"there is no recording {id!r} in {self.folder}.{did_you_mean(id, known)} It has: "
                f"{', '.join(known) or 'none'}"
            )
        return known[id]
