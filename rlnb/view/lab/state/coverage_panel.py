"""Where each policy's rollouts have been: maps over two components, or over two principal components."""

from __future__ import annotations

from html import escape

import ipywidgets as w
import numpy as np

from rlnb.design.checks.state.coverage import Coverage, coverage
from rlnb.design.checks.wording import percent
from rlnb.errors import DesignError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.charts.figures import HeatMap
from rlnb.view.lab.charts.plots import PlotsWidget
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.reward.reward_figures import colours_of
from rlnb.view.lab.state.state_look import StateLooks

PCA = "PCA"
_KEY = "coverage"


class CoveragePanel:
    """A map of the state space for each policy.

    Args:
        bench: the model; its notes keep the axes.
        looks: the observations as the state design makes them.

    Attributes:
        widget: what is shown.
        plots: the maps.
    """

    def __init__(self, bench: Workbench, looks: StateLooks) -> None:
        self._bench, self._looks = bench, looks
        self._quiet = False
        self._x = w.Dropdown(layout=w.Layout(width="150px"))
        self._y = w.Dropdown(layout=w.Layout(width="150px"))
        for field in (self._x, self._y):
            field.observe(lambda _: self._choose(), "value")
        self._words = w.HTML()
        self._words.add_class("rlnb-muted")
        self.plots = PlotsWidget(height=200)
        self._axes = w.HBox([w.Label("horizontal"), self._x, w.Label("vertical"), self._y])
        self._axes.add_class("rlnb-memory")
        self.widget = w.VBox(
            [w.HTML('<h4 class="rlnb-group">Where each policy has been</h4>'), self._axes, self._words, self.plots]
        )  # fmt: skip
        self._show()
        bench.listeners.add(self._hear)

    @property
    def words(self) -> str:
        """What is said about the map."""
        return str(self._words.value)

    def _hear(self, event: Event) -> None:
        other_axes = event is Event.NOTES and self._shown != self._bench.notes.axes
        if event in (Event.STATE, Event.EPISODES) or other_axes:
            self._show()

    def _show(self) -> None:
        self._shown = self._bench.notes.axes
        try:
            look = self._looks.after()
            look = look if look.values is not None else self._looks.before()
            if look.values is None or look.batch is None:
                raise DesignError("Pictures have no components to map; derive numbers in a wrapper to see where policies go.")  # fmt: skip
            names = look.names
            axes = self._shown if self._shown and set(self._shown) <= set(names) else None
            found = coverage(look.values, names, look.batch, axes)
        except DesignError as error:
            self._axes.layout.display = "none"
            self._words.value = escape(str(error))
            self.plots.show([])
            return
        self._axes.layout.display = ""
        self._fill(names, axes)
        self._words.value = escape(coverage_words(found))
        note = look.phrase
        if found.dropped:
            note += f", {found.dropped:,} left out that are not finite"
        self.plots.show([coverage_figure(found, self._bench, note)])

    def _fill(self, names: tuple[str, ...], axes: tuple[str, str] | None) -> None:
        self._quiet = True
        options = [PCA, *names]
        for field, value in zip((self._x, self._y), axes or (PCA, PCA), strict=True):
            if list(field.options) != options:
                field.options = options
            field.value = value
        self._quiet = False

    def _choose(self) -> None:
        if self._quiet:
            return
        x, y = self._x.value, self._y.value
        shown = self._shown or (PCA, PCA)
        if PCA in (x, y) and PCA not in shown and shown != (x, y):
            axes = None  # one of them went back to PCA, so both do
        elif x == PCA or y == PCA:
            # the first component that is chosen; the other axis takes the next one
            chosen = y if x == PCA else x
            names = [name for name in self._x.options if name not in (PCA, chosen)]
            if not names:
                axes = None
            else:
                places = list(self._x.options)
                after = [name for name in names if places.index(name) > places.index(chosen)]
                other = (after or names)[0]
                axes = (chosen, other) if y == PCA else (other, chosen)
        else:
            axes = (x, y)
        self._bench.note(axes=axes)


def coverage_figure(found: Coverage, bench: Workbench, note: str) -> HeatMap:
    """Returns the maps of all policies."""
    return HeatMap(
        _KEY,
        "Steps in each cell",
        *found.axes,
        found.x_edges,
        found.y_edges,
        {label or "episodes": counts.astype(np.float64) for label, counts in found.counts.items()},
        {label or "episodes": colour for label, colour in colours_of(bench).items()},
        note=note,
        wide=True,
    )


def coverage_words(found: Coverage) -> str:
    """Returns how much of all visited cells each policy visits, in words."""
    shares = [
        f"{label or 'the episodes'} {percent(share)}" + (f" ({int(alone.sum()):,} only there)" if len(found.counts) > 1 else "")
        for (label, share), alone in zip(found.occupied.items(), found.only.values(), strict=True)
    ]  # fmt: skip
    cells = int(np.any([counts > 0 for counts in found.counts.values()], axis=0).sum())
    every = found.counts[next(iter(found.counts))].size
    return f"Of the {cells:,} cells that any policy visits ({every:,} are on the map): {', '.join(shares)}."
