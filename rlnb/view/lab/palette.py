"""Colours of terms and policies: the ones a person chose, else those of the live view's charts."""

from __future__ import annotations

from collections.abc import Iterable

from rlnb.run.lab_notes import LabNotes
from rlnb.view.figures import PALETTE
from rlnb.view.lab.charts.figures import Color

#: policies that show nothing of the task are pale, so that the others stand out in both themes
PALE = {"random": "#868686", "idle": "#b08a5c", "sticky": "#7b93a8"}


def term_color(notes: LabNotes, name: str, place: int) -> Color:
    """Returns the colour of a term in charts: chosen, or a place in the palette, which has a set for each theme.

    Args:
        notes: with the colours that were chosen.
        name: of the term.
        place: of the term in its reward.
    """
    return notes.colours.get(name, place % len(PALETTE))


def picker_color(notes: LabNotes, name: str, place: int) -> str:
    """Returns the same as "#rrggbb", for a colour picker."""
    color = term_color(notes, name, place)
    return PALETTE[color] if isinstance(color, int) else color


def label_colors(labels: Iterable[str]) -> dict[str, Color]:
    """Returns the colour of each policy's label."""
    found: dict[str, Color] = {}
    for label in labels:
        coloured = sum(isinstance(color, int) for color in found.values())
        found[label] = PALE.get(label, coloured % len(PALETTE))
    return found
