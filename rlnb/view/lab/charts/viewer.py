"""One episode, step by step: picture, reward terms and observation components, all at one cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anywidget
import numpy as np
import traitlets as t

from rlnb.view.assets import source
from rlnb.view.history import Floats
from rlnb.view.lab.charts.figures import Color, Layer, Stacked
from rlnb.view.lab.charts.packing import Packer, pack, themed

MAX_STEPS = 5000
"""Steps whose values are sent; of a longer episode every second, third, … step is shown, as it was."""

_MOST_FRAMES = 32  # that one message may ask for


@dataclass(frozen=True)
class TermTrack:
    """A reward term along an episode.

    Attributes:
        name: of the term.
        color: see `rlnb.view.lab.figures.Color`.
        values: the term itself at each step, shape (n,).
        contributions: its part in the reward, weighted, shape (n,).
    """

    name: str
    color: Color
    values: Floats
    contributions: Floats


@dataclass(frozen=True)
class ComponentTrack:
    """An observation component along an episode: `values` before each step, shape (n,)."""

    name: str
    values: Floats
    unit: str = ""


@dataclass(frozen=True, eq=False)
class Episode:
    """What the viewer shows.

    Attributes:
        key: names the episode; frames are kept in the browser as long as it stays.
        title: e.g. "random, episode 3".
        total: the designed reward, shape (n,).
        environment: the environment's own, shape (n,).
        terms: what `total` is made of.
        components: of the observation.
        ending: how it ended, e.g. "terminated"; empty when it was cut off by nothing.
        frame_steps: steps that have a picture, increasing.
        frame: returns a step's picture, encoded as PNG, JPEG or WebP; called in the front end's thread.
        no_frames: what is said when there are none.
        rate: steps per second in which it really ran.
    """

    key: str
    title: str
    total: Floats
    environment: Floats
    terms: Sequence[TermTrack] = ()
    components: Sequence[ComponentTrack] = ()
    ending: str = ""
    frame_steps: Sequence[int] = ()
    frame: Callable[[int], bytes] | None = field(default=None, repr=False)
    no_frames: str = "no frames recorded"
    rate: float = 30.0


class EpisodeViewer(anywidget.AnyWidget):
    """Scrubs through an episode. All numbers are in the browser; pictures are asked for as they are needed.

    Attributes:
        words: of the present episode, made by `show`.
        data: its numbers, float64, in the order of `words`.
        figure: words of the reward's chart; `figure_data` are its numbers, float32.
        cursor: the step that is looked at.
        seq: counts episodes shown.
    """

    _esm = source(
        "uPlot.iife.min.js",
        "drawing.js",
        "lab_figure.js",
        "lab_series.js",
        "lab_frames.js",
        "lab_tracks.js",
        "lab_viewer.js",
    )
    _css = source("uPlot.min.css", "theme.css", "lab.css", "lab_viewer.css")

    words = t.Dict().tag(sync=True)
    data = t.Bytes().tag(sync=True)
    figure = t.Dict().tag(sync=True)
    figure_data = t.Bytes().tag(sync=True)
    cursor = t.Int(0).tag(sync=True)
    seq = t.Int().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        # Without a width it would shrink to nothing in a row of widgets.
        super().__init__(**{"layout": {"width": "100%"}, **traits})
        self._episode: Episode | None = None
        self.on_msg(self._answer)

    @np.errstate(all="ignore")  # sums of huge rewards are infinite, and drawn so
    def show(self, episode: Episode) -> None:
        """Shows an episode; the cursor stays where it is if it is the same one with another reward."""
        same = self._episode is not None and self._episode.key == episode.key
        steps = shown_steps(len(episode.total))
        packer = Packer()
        layers = [Layer(term.name, term.color, term.contributions) for term in episode.terms]
        lines = [
            Layer("total", "ink", episode.total),
            Layer("environment", "ink", episode.environment, dashed=True),
        ]
        x = np.arange(len(episode.total), dtype=np.float64)
        chart = Stacked(
            "reward", "Reward of each step", "reward per step", "step of the episode", x, layers, lines
        )
        words = pack(chart, packer)
        self._episode = episode
        with self.hold_sync():
            self.words = _words(episode, steps)
            self.data = _numbers(episode, steps)
            self.figure, self.figure_data = words, packer.bytes()
            if not same:
                self.cursor = 0
            self.seq += 1

    def on_cursor(self, handle: Callable[[int], None]) -> None:
        """Calls `handle` with the step whenever the cursor moves; a few times a second while it plays."""
        self.observe(lambda change: handle(change["new"]), names="cursor")

    def _answer(self, _widget: object, content: Any, _buffers: object) -> None:
        """Sends the pictures that the browser asks for; one that cannot be read is named with its reason."""
        episode = self._episode
        if not isinstance(content, dict) or not isinstance(content.get("want"), list) or episode is None:
            return
        if content.get("episode") != episode.key or episode.frame is None:
            return
        known = set(episode.frame_steps)
        steps, pictures, failed = [], [], {}
        for step in content["want"][:_MOST_FRAMES]:
            if step not in known:
                continue
            try:
                pictures.append(episode.frame(step))
                steps.append(step)
            except (OSError, ValueError, KeyError) as error:
                failed[str(step)] = f"The picture of step {step} could not be read: {error}"
        self.send({"frames": steps, "episode": episode.key, "failed": failed}, pictures)


def shown_steps(length: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the steps that can be looked at: all, or every k-th and the last of a long episode."""
    if length <= MAX_STEPS:
        return np.arange(length, dtype=np.int64)
    steps = np.arange(0, length, -(-length // (MAX_STEPS - 1)), dtype=np.int64)
    return np.union1d(steps, [length - 1])


def _words(episode: Episode, steps: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, Any]:
    length = len(episode.total)
    stride = int(steps[1] - steps[0]) if len(steps) > 1 else 1
    rows = [{"name": term.name, "color": themed(term.color)} for term in episode.terms]
    return {
        "key": episode.key,
        "title": episode.title,
        "length": f"{length:,} step{'' if length == 1 else 's'}",
        "stride": f"every {stride}. step can be looked at" if stride > 1 else "",
        "ending": episode.ending,
        "terms": rows,
        "totals": [{"name": "total"}, {"name": "environment"}],
        "components": [{"name": one.name, "unit": one.unit} for one in episode.components],
        "frame_steps": [int(step) for step in episode.frame_steps] if episode.frame else [],
        "no_frames": episode.no_frames,
        "rate": episode.rate,
        "count": len(steps),
    }


def _numbers(episode: Episode, steps: np.ndarray[Any, np.dtype[np.int64]]) -> bytes:
    """Returns steps, then value, contribution and sum so far of each term, then reward and sum of the totals,
    then the components."""
    rows: list[Floats] = [steps.astype(np.float64)]
    for term in episode.terms:
        rows += [term.values[steps], term.contributions[steps], np.cumsum(term.contributions)[steps]]
    for total in (episode.total, episode.environment):
        rows += [total[steps], np.cumsum(total)[steps]]
    rows += [component.values[steps] for component in episode.components]
    return np.concatenate([np.asarray(row, dtype=np.float64) for row in rows]).tobytes()
