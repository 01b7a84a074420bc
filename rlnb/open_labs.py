"""The labs that are open in this process, one of each design file: running a lab's cell again replaces it.

A notebook keeps what its cells have shown (`Out`), and ipywidgets keep every widget that is not closed. So a
lab that is replaced ends its widget and lets go what is large.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.run.recording_match import content_digest
from rlnb.run.recordings import Recorded

if TYPE_CHECKING:
    from rlnb.lab import Lab

_open: dict[Path, Lab] = {}


def save_former(path: Path) -> None:
    """Saves what the lab of a design file has not saved, before the file is read.

    Where somebody else has changed the file meanwhile, theirs counts from here on, and this lab's design is
    kept as a version.

    Raises:
        UsageError: it cannot be saved; it stays open.
    """
    if path in _open:
        _open[path].flush(yields=True)


def same_episodes(path: Path, recorded: Recorded) -> Recorded:
    """Returns the former lab's episodes if they are the same, so that they are in memory once."""
    former = _open[path].bench.recorded if path in _open else None
    if former is None or former.batch is None or recorded.batch is None or former.keys != recorded.keys:
        return recorded
    if former.batch.labels != recorded.batch.labels:
        return recorded
    same = content_digest(former.batch) == content_digest(recorded.batch)
    return former if same else recorded


def enter(path: Path, lab: Lab) -> None:
    """Makes a lab the one of its design file; the former one ends."""
    former, _open[path] = _open.get(path), lab
    if former is not None:
        former.end()
