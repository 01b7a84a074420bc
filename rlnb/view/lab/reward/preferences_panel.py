"""Preferences: which of two episodes is better, in a person's eyes, and weights that agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape

import ipywidgets as w
import numpy as np

from rlnb.design.columns import Array
from rlnb.design.preferences import PreferenceFit, fit_preferences, satisfied
from rlnb.errors import DesignError, UsageError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.reward.reward_figures import episode_names


class PreferencesPanel:
    """Two episodes to compare, what has been said so far, and the fit.

    Args:
        bench: the model; what is said is kept in its notes.

    Attributes:
        widget: what is shown, folded at first.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        wide = w.Layout(width="190px")
        self._one = w.Dropdown(layout=wide)
        self._two = w.Dropdown(layout=wide)
        first = w.Button(description="is better than", icon="chevron-right", layout=w.Layout(width="140px"))
        second = w.Button(description="is worse than", icon="chevron-left", layout=w.Layout(width="140px"))
        show = w.Button(
            description="Look at it",
            tooltip="selects the episode on the left",
            icon="eye",
            layout=w.Layout(width="110px"),
        )
        self._fit_button = w.Button(
            description="Fit the weights", icon="magic", layout=w.Layout(width="140px")
        )
        self._forget_button = w.Button(
            description="Forget the last", icon="undo", layout=w.Layout(width="140px")
        )
        self._words = w.HTML()
        self._words.add_class("rlnb-preference-words")
        self._list = w.HTML()
        self._list.add_class("rlnb-muted")
        first.on_click(lambda _: self._guard(lambda: self._prefer(self._one.value, self._two.value)))
        second.on_click(lambda _: self._guard(lambda: self._prefer(self._two.value, self._one.value)))
        show.on_click(lambda _: self._guard(lambda: bench.select(self._one.value)))
        self._fit_button.on_click(lambda _: self._guard(self._fit))
        self._forget_button.on_click(lambda _: self._guard(self._forget))
        asked = w.HBox([self._one, first, second, self._two, show])
        done = w.HBox([self._fit_button, self._forget_button, self._words])
        for line in (asked, done):
            line.add_class("rlnb-total-line")
        intro = w.HTML(
            "Say which of two episodes is better, then let the weights be fitted to what you said "
            "(Bradley-Terry; undo takes them back)."
        )
        self.widget = w.Accordion([w.VBox([intro, asked, done, self._list])], selected_index=None)
        self.widget.set_title(0, "Preferences between episodes")
        self._offer()
        self._say_how_many()
        bench.listeners.add(self._hear)

    def _hear(self, event: Event) -> None:
        if event is Event.EPISODES:
            self._offer()
        if event in (Event.EPISODES, Event.NOTES, Event.SETTLED):
            self._say_how_many()

    def _offer(self) -> None:
        options = [(name, place) for place, name in enumerate(episode_names(self._bench))]
        for field, place in ((self._one, 0), (self._two, min(1, len(options) - 1))):
            kept = field.value if field.value is not None and field.value < len(options) else place
            field.options = options
            field.value = kept

    def _pairs(self) -> Array:
        """Returns what was said about episodes that are here, int64 (k, 2): the better one, the worse one."""
        place = {key: number for number, key in enumerate(self._bench.keys)}
        said = [pair for pair in self._bench.notes.preferences if all(key in place for key in pair)]
        return np.array([[place[key] for key in pair] for pair in said], dtype=np.int64).reshape(-1, 2)

    def _say_how_many(self, fit: PreferenceFit | None = None) -> None:
        pairs = self._pairs()
        count = len(pairs)
        if not count:
            self._words.value = "Nothing has been said yet."
        else:
            held = int(satisfied(self._bench.preview.returns, pairs).sum())
            text = f"The weights agree with {held} of {count} preference{'' if count == 1 else 's'}."
            if fit is not None:
                text += f" Before the fit: {fit.satisfied_before}."
            self._words.value = escape(text)
        self._fit_button.disabled = not count
        self._forget_button.disabled = not self._bench.notes.preferences
        names = episode_names(self._bench)
        shown = "; ".join(f"{names[better]} &gt; {names[worse]}" for better, worse in pairs[-12:])
        self._list.value = f"{'… ' if count > 12 else ''}{shown}"

    def _prefer(self, better: int, worse: int) -> None:
        if better == worse:
            raise UsageError("An episode cannot be better than itself; pick two different ones.")
        keys = self._bench.keys
        said = (keys[better], keys[worse])
        self._bench.note(preferences=(*self._bench.notes.preferences, said))

    def _forget(self) -> None:
        self._bench.note(preferences=self._bench.notes.preferences[:-1])

    def _fit(self) -> None:
        bench = self._bench
        with bench.lock:
            parts = bench.reward.enabled
            # A weight with a schedule has no one value that could be fitted.
            free = np.array([not isinstance(part.weight, str) for part in parts])
            start = np.array([bench.preview.result.weights[part.name] for part in parts])
            fit = fit_preferences(bench.preview.features(), self._pairs(), start=start, free=free)
            fitted = {
                part.name: float(f"{weight:.6g}")
                for part, weight, told in zip(parts, fit.weights, fit.informed, strict=True)
                if told
            }
            terms = [
                replace(part, weight=fitted[part.name]) if part.name in fitted else part
                for part in bench.reward.terms
            ]
            bench.edit(reward=replace(bench.reward, terms=terms), what="weights fitted to preferences")
            self._say_how_many(fit)

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (DesignError, UsageError) as error:
            self._words.value = f'<span class="rlnb-row-error">{escape(str(error))}</span>'
