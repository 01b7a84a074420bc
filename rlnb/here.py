"""What a notebook may ask about the job it is executed by."""

from __future__ import annotations

from pathlib import Path

from rlnb import settings
from rlnb.run.identity import current


def attempt() -> int:
    """Returns which attempt of its run this kernel is: 1, 2, …; 0 outside a job."""
    identity = current()
    return 0 if identity is None else identity.attempt


def run_folder() -> Path:
    """Returns the run folder of the job this kernel is.

    Whatever a library writes below it is mirrored to the store. Outside a job it is a scratch folder, so
    that the same cell works while prototyping.
    """
    identity = current()
    if identity is not None:
        return identity.root
    scratch = settings.home() / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return scratch
