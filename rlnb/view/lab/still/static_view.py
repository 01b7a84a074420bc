"""A lab without a kernel: the design that counts, what it changes, and what it does, for a document's readers."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import numpy as np

from rlnb.design.design import Design
from rlnb.errors import RlnbError
from rlnb.view.assets import source
from rlnb.view.display import Bundle, image_bundle
from rlnb.view.drawing import INK, SOFT, WIDTH, png_of
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.charts.figures import Figure
from rlnb.view.lab.checks.findings_html import findings_html
from rlnb.view.lab.reward.reward_figures import (
    contribution_figure,
    ranking_figure,
    return_figure,
    step_figure,
)
from rlnb.view.lab.state.space_words import dimensions_words
from rlnb.view.lab.still.static_figures import Area, draw, figure_rows
from rlnb.view.lab.still.static_html import (
    difference_html,
    episodes_html,
    paragraph,
    reward_html,
    section,
    state_html,
)
from rlnb.view.lab.still.static_state import observations_html

_HEAD, _ROW = 0.56, 2.5  # inches


class StaticLab:
    """What a document keeps of a lab.

    Args:
        bench: the episodes.
        design: the design that counts.
        defaults: what the code says.
        title: the environment.
        file_name: the design file's name.
    """

    def __init__(
        self, bench: Workbench, design: Design, defaults: Design, *, title: str, file_name: str
    ) -> None:
        self._bench, self._design, self._defaults = bench, design, defaults
        self._title, self._file_name = title, file_name

    def text(self) -> str:
        """Returns a line for terminals."""
        count = len(self._design.reward.enabled)
        reward = f"{count} reward {'term' if count == 1 else 'terms'}"
        if self._design.reward.is_identity:
            reward = "the environment's reward"
        seen = dimensions_words(self._bench.plan)
        return f"Lab of {self._title} ({self._file_name}): {self._episodes_words()}; {reward}; {seen}"

    @np.errstate(all="ignore")
    def html(self) -> str:
        """Returns design, difference from the code, episodes and findings as one piece of HTML."""
        bench = self._bench
        parts = [
            f'<div style="font-size:1.15em;font-weight:600">Lab of {escape(self._title)}</div>',
            paragraph(
                f"design file {escape(self._file_name)} · {escape(self._episodes_words())}", quiet=True
            ),
            section("Difference from the code", difference_html(self._defaults, self._design)),
            section("Reward", reward_html(self._design.reward)),
            section(
                "State",
                state_html(self._design.state, bench.plan),
                self._looked_at(observations_html, bench),
            ),
            section("Episodes", episodes_html(bench)),
            section("Checks", self._looked_at(_checks_html, bench)),
        ]
        style = f"<style>{source('lab_tables.css', 'lab_static.css')}</style>"
        return f'{style}<div class="rlnb-lab-static" style="line-height:1.45;overflow-x:auto">{"".join(parts)}</div>'

    @np.errstate(all="ignore")  # huge rewards have infinite sums and places
    def png(self) -> bytes:
        """Returns the picture: reward along an episode, returns, reward per step, ranking."""
        return figures_image(
            self._figures(), f"Lab of {self._title}", self._episodes_words(), self._file_name
        )

    def picture(self) -> Bundle:
        """Returns data and metadata of the picture, as a notebook's output."""
        return image_bundle(self.png(), self.text())

    def _figures(self) -> list[Figure]:
        bench = self._bench
        with bench.lock:
            shown = contribution_figure(bench, shown_episode(bench))
            return [shown, return_figure(bench), step_figure(bench), ranking_figure(bench)]

    def _looked_at(self, make: Callable[[Workbench], str], bench: Workbench) -> str:
        """What is made of the episodes; a document, and a job even more, goes on without it."""
        try:
            return make(bench)
        except RlnbError as error:
            return paragraph(escape(str(error)))

    def _episodes_words(self) -> str:
        labels = self._bench.preview.labels
        counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
        said = ", ".join(f"{count} {label or 'unnamed'}" for label, count in counts.items())
        return f"{len(labels)} {'episode' if len(labels) == 1 else 'episodes'} ({said})"


def shown_episode(bench: Workbench) -> int:
    """Returns the episode that is looked at, or the best one while nobody has chosen."""
    returns = bench.preview.returns
    if bench.episode or not np.isfinite(returns).any():
        return bench.episode
    return int(np.nanargmax(np.where(np.isfinite(returns), returns, np.nan)))


def figures_image(figures: list[Figure], title: str, words: str, aside: str) -> bytes:
    """Draws figures below a heading as one PNG of `rlnb.view.drawing.WIDTH`.

    Args:
        figures: the charts; a wide one has a row to itself.
        title: the heading.
        words: said below it; `aside` on the right.
        aside: see `words`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Paper

    rows = figure_rows(figures)
    height = _HEAD + _ROW * len(rows)
    paper = Paper(figsize=(WIDTH / 96, height), facecolor="white")
    canvas = FigureCanvasAgg(paper)
    for inches, text, size, weight, color in (
        (0.2, title, 12, "bold", INK),
        (0.42, words, 8.5, "normal", SOFT),
    ):
        paper.text(0.012, 1 - inches / height, text, size=size, weight=weight, color=color, va="center", parse_math=False)  # fmt: skip
    paper.text(
        0.988, 1 - 0.2 / height, aside, size=8.5, color=SOFT, va="center", ha="right", parse_math=False
    )
    for place, row in enumerate(rows):
        for column, figure in enumerate(row):
            width = WIDTH / 96 / len(row)
            draw(Area(paper, column * width, height - _HEAD - (place + 1) * _ROW, width, _ROW), figure)
    return png_of(canvas)


def _checks_html(bench: Workbench) -> str:
    return findings_html(bench.findings or bench.settle())
