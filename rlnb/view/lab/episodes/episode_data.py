"""What is shown of episodes: a row of the list for each, and everything of the one that is looked at.

Plain values out of a workbench; nothing here draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlnb.design.columns import Columns
from rlnb.design.transitions import Transitions
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.charts.figures import Color
from rlnb.view.lab.charts.viewer import ComponentTrack, Episode, TermTrack
from rlnb.view.lab.palette import term_color
from rlnb.view.lab.reward.reward_figures import colours_of, episode_names

FEW: Final = 6
"""Components that are shown without being asked for."""

MOST: Final = 48
"""Components that are shown at all."""

_LOOKED_AT: Final = 20_000  # rows that decide which components vary most


@dataclass(frozen=True)
class EpisodeRow:
    """An episode in the list.

    Attributes:
        place: its number in the batch, from 0.
        name: what it is called.
        label: of its policy.
        color: of that policy.
        length: in steps.
        designed: sum of the designed reward.
        environment: sum of the environment's own.
        ending: "terminated", "time limit", or "" when the recording just stops.
    """

    place: int
    name: str
    label: str
    color: Color
    length: int
    designed: float
    environment: float
    ending: str


@dataclass(frozen=True)
class Pictures:
    """The pictures of an episode.

    Attributes:
        times: steps that have one, ascending; the episode's length is its end.
        frame: returns the one of such a step, compressed.
        said: why there are none.
        rate: steps per second in which the environment really runs.
    """

    times: Sequence[int] = ()
    frame: Callable[[int], bytes] | None = None
    said: str = "recorded without pictures"
    rate: float = 30.0


def ending_of(batch: Transitions, last: int) -> str:
    """Returns how the episode whose last row is `last` ended."""
    return "terminated" if batch.terminated[last] else "time limit" if batch.truncated[last] else ""


def episode_rows(bench: Workbench) -> list[EpisodeRow]:
    """Returns all episodes, those of one policy together, policies in the order of their first episode."""
    preview, batch = bench.preview, bench.batch
    colours = colours_of(bench)
    rows = [
        EpisodeRow(
            place, name, label, colours[label], int(length), float(designed), float(environment),
            ending_of(batch, int(end)),
        )
        for place, (name, label, length, designed, environment, end) in enumerate(
            zip(
                episode_names(bench), preview.labels, preview.lengths, preview.returns, preview.env_returns,
                batch.ends, strict=True,
            )
        )
    ]  # fmt: skip
    groups = list(colours)
    return sorted(rows, key=lambda row: groups.index(row.label))


def ordered(rows: Sequence[EpisodeRow], by: str, *, descending: bool = False) -> list[EpisodeRow]:
    """Returns rows sorted by an attribute of theirs; "label" leaves policies together. Returns that are NaN come last."""
    if by == "label":
        return list(reversed(rows)) if descending else list(rows)

    def key(row: EpisodeRow) -> tuple[bool, float, str]:
        value = getattr(row, by)
        if isinstance(value, str):
            return False, 0.0, value
        return bool(np.isnan(value)), 0.0 if np.isnan(value) else -value if descending else value, ""

    if by == "ending":
        return sorted(rows, key=key, reverse=descending)
    return sorted(rows, key=key)


def by_variation(columns: Columns) -> list[str]:
    """Returns the names of components, the one with the greatest standard deviation first.

    Of a large batch, evenly spaced rows are looked at.
    """
    if not columns.names:
        return []
    matrix = columns.matrix.reshape(len(columns.matrix), -1)
    stride = max(1, len(matrix) // _LOOKED_AT)
    with np.errstate(all="ignore"):
        spread = np.nan_to_num(np.std(matrix[::stride].astype(np.float64), axis=0), nan=0.0, posinf=0.0)
    return [columns.names[place] for place in np.argsort(-spread, kind="stable")]


def first_components(columns: Columns) -> list[str]:
    """Returns the components that are shown until somebody chooses: all of a few, of many those that vary most."""
    names = list(columns.names)
    return names if len(names) <= FEW else by_variation(columns)[:FEW]


def episode_shown(bench: Workbench, place: int, components: Sequence[str], pictures: Pictures) -> Episode:
    """Returns what the viewer shows of an episode.

    Args:
        bench: holds it.
        place: its number in the batch.
        components: names of the observation's components, in the order in which they are shown.
        pictures: what there is to see of it.
    """
    rows = bench.episode_rows(place)
    parts = bench.preview.contributions(place)
    values = bench.preview.result.terms
    places = {part.name: number for number, part in enumerate(bench.reward.terms)}
    ending = ending_of(bench.batch, rows.stop - 1)
    length = rows.stop - rows.start
    steps, frame = _pictures(pictures, length)
    notes = [] if parts.additive else ["terms before they are combined"]
    return Episode(
        bench.keys[place],
        " · ".join([episode_names(bench)[place], *notes]),
        parts.total.astype(np.float64),
        parts.env,
        [
            TermTrack(name, term_color(bench.notes, name, places[name]), values[name][rows], contribution)
            for name, contribution in parts.terms.items()
        ],
        [
            ComponentTrack(name, np.asarray(bench.batch.obs[name][rows], dtype=np.float64))
            for name in components[:MOST]
        ],
        ending=ending,
        frame_steps=steps,
        frame=frame,
        no_frames=pictures.said,
        rate=pictures.rate,
    )


def _pictures(pictures: Pictures, length: int) -> tuple[list[int], Callable[[int], bytes] | None]:
    """Returns the steps with a picture. The end of the episode has no step of its own: where pictures were thinned
    out, its picture stands for that of the last step."""
    frame = pictures.frame
    if frame is None or not pictures.times:
        return [], None
    steps = [t for t in pictures.times if t < length]
    if (steps and steps[-1] == length - 1) or length not in pictures.times:
        return steps, frame
    return [*steps, length - 1], lambda step: frame(length if step == length - 1 else step)
