"""Colours of terms and policies: the ones a person chose, else those of the live view's charts."""

from __future__ import annotations

from collections.abc import Iterable

from rlnb.run.design_file import LabNotes
from rlnb.view.figures import PALETTE

#: policies that show nothing of the task are grey, so that the others stand out
_GREY = "#7a7a7a"


def colour_of(notes: LabNotes, name: str, place: int) -> str:
    """Returns the colour of a term, "#rrggbb".

    Args:
        notes: with the colours that were chosen.
        name: of the term.
        place: of the term in its reward.
    """
    return notes.colours.get(name, PALETTE[place % len(PALETTE)])


def label_colours(labels: Iterable[str], aimless: Iterable[str]) -> dict[str, str]:
    """Returns the colour of each policy's label."""
    found: dict[str, str] = {}
    for label in labels:
        coloured = len([one for one in found.values() if one != _GREY])
        found[label] = _GREY if label in aimless else PALETTE[coloured % len(PALETTE)]
    return found
