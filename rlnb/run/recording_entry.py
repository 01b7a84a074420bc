"""One recording as its file describes it, read without touching a row, and recordings that come from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rlnb.design.transitions import Transitions
from rlnb.errors import RlnbError, UsageError
from rlnb.run.recording_match import Match
from rlnb.run.trajectories import read_about, read_footer, read_transitions

OWN: Final = "recording"
"""Key of `about` under which a store writes what it needs itself."""
_NEEDED: Final = {"id", "label", "episodes", "created"}


@dataclass(frozen=True)
class Entry:
    """One recording, as the footer of its file describes it.

    Attributes:
        id: never used for another recording.
        label: what the recording is called; its episodes' labels are their own (`Recorded.batch.labels`).
        episodes: their number.
        steps: transitions in all of them.
        bytes: size of the transitions' file.
        frame_bytes: size of the frames' file, 0 without one.
        created: ISO 8601, UTC.
        about: where it comes from.
        path: the transitions' file.
        frames: the frames' file, or None.
        frames_said: a sentence about frames that are missing.
        digest: of what was recorded.
    """

    id: str
    label: str
    episodes: int
    steps: int
    bytes: int
    frame_bytes: int
    created: str
    about: Mapping[str, Any]
    path: Path
    frames: Path | None = None
    frames_said: str = ""
    digest: str = ""


def read_entry(path: Path, beside: Path | None, match: Match) -> Entry:
    """Reads a recording's footer.

    Args:
        path: the transitions' file.
        beside: the frames' file, if there is one.
        match: what recordings have to be like.

    Raises:
        RunFormatError: if the file cannot be read.
        EnvError: if it does not match.
        UsageError: if no store wrote it.
        FileNotFoundError: if it is gone.
    """
    footer, size = read_footer(path), path.stat().st_size
    about = dict(footer.about)
    own = about.pop(OWN, None)
    if not isinstance(own, dict) or not own.keys() >= _NEEDED:
        raise UsageError("it was not recorded into this folder; take it in with demo='FILE' instead")
    match.require_footer(footer, about)
    try:
        frame_bytes = beside.stat().st_size if beside else 0
    except FileNotFoundError:
        beside, frame_bytes = None, 0
    return Entry(
        str(own["id"]), str(own["label"]), int(own["episodes"]), footer.rows, size, frame_bytes,
        str(own["created"]), about, path, beside, str(own.get("frames_said", "")), str(own.get("digest", "")),
    )  # fmt: skip


def open_source(source: str | Path | Transitions) -> tuple[Transitions, dict[str, Any]]:
    """Returns the rows of a recording made elsewhere, and what it says of itself.

    Raises:
        UsageError: if there is no such file, or it is no recording.
    """
    if isinstance(source, Transitions):
        return source, {}
    if not isinstance(source, str | Path):
        raise UsageError(
            f"demo={source!r:.80} is no recording; give a file that rlnb.record(to=…) wrote, or transitions"
        )
    try:
        about = read_about(source)
        about.pop(OWN, None)
        return read_transitions(source), about
    except (RlnbError, OSError) as error:
        raise UsageError(f"demo={str(source)!r} cannot be taken in: {error}") from error


def left_out(path: Path, error: Exception) -> str:
    """Returns the sentence about a file that cannot be used."""
    return f"{path.name} is left out: {str(error).removeprefix(str(path)).strip()}."
