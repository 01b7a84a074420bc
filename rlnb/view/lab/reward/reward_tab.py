"""The tab Reward: terms as rows, how they are combined, and what they do to the recorded episodes."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from typing import Any

import ipywidgets as w

from rlnb.design.expressions.namespace import plain_names
from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.errors import DesignError, position_of
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.charts.expression_field import ExpressionField, Suggestion
from rlnb.view.lab.charts.plots import PlotsWidget
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.palette import picker_color
from rlnb.view.lab.reward.group_rows import GroupRows
from rlnb.view.lab.reward.names_help import name_suggestions, state_suggestions
from rlnb.view.lab.reward.preferences_panel import PreferencesPanel
from rlnb.view.lab.reward.reward_figures import ranking_figure, reward_figures
from rlnb.view.lab.reward.term_row import Part, TermRow
from rlnb.view.lab.widget_tree import close_tree

_HEADINGS = (
    ("22px", ""), ("30px", ""), ("120px", "term"), ("", "value at each step"), ("136px", "clip low, high"),
    ("150px", "weight"), ("76px", ""), ("140px", ""),
)  # fmt: skip


class RewardTab:
    """Shows and edits a workbench's reward.

    Args:
        bench: the model.

    Attributes:
        widget: what is shown.
        plots: the moving plots; the benchmark of the screen looks at them.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._rows: list[TermRow] = []
        self._box = w.VBox()
        self._message = w.HTML()
        self._message.add_class("rlnb-row-error")
        self._combine = ExpressionField(placeholder="left empty: the weighted sum of all terms")
        self._combine.layout = w.Layout(flex="1 1 200px")
        self._groups = GroupRows(bench)
        self._preferences = PreferencesPanel(bench)
        self.plots = PlotsWidget()
        self.plots.on_select(self._select)
        add = w.Button(description="Add term", icon="plus", layout=w.Layout(width="110px"))
        add.on_click(lambda _: self._add())
        total = w.HBox([w.Label("total ="), self._combine, add, self._groups.add_button])
        total.add_class("rlnb-total-line")
        headings = w.HBox([_heading(width, text) for width, text in _HEADINGS])
        headings.add_class("rlnb-term-headings")
        self.widget = w.VBox(
            [headings, self._box, self._groups.widget, total, self._message, self.plots, self._preferences.widget]
        )  # fmt: skip
        self._combine.observe(lambda change: self._try_combine(change["new"]), "value")
        self._showing = False
        self._show_all()
        bench.listeners.add(self._hear)

    # --- showing

    def _hear(self, event: Event) -> None:
        if event is Event.REWARD:
            self._show_rows()
            self._draw()
        elif event is Event.EPISODES:
            self._show_all()
        elif event is Event.SELECTION:
            self._draw()
        elif event is Event.NOTES:
            for place, (row, part) in enumerate(zip(self._rows, self._bench.reward.terms, strict=True)):
                row.recolour(picker_color(self._bench.notes, part.name, place))
            self._draw()
        elif event is Event.SETTLED:
            self._rank()

    def _show_all(self) -> None:
        self._show_rows()
        self._draw()
        if (
            self._bench.findings
        ):  # it has settled before; else the ranking waits for that, being slow to import
            self._rank()

    def _show_rows(self) -> None:
        """Brings the rows in line with the design; a row that is right already is left as it is."""
        self._showing = True
        try:
            reward = self._bench.reward
            while len(self._rows) < len(reward.terms):
                self._rows.append(self._row(len(self._rows)))
            gone = self._rows[len(reward.terms) :]
            del self._rows[len(reward.terms) :]
            if len(self._box.children) != len(self._rows):
                self._box.children = [row.widget for row in self._rows]
            for row in gone:
                close_tree(row.widget)
            for place, (row, part) in enumerate(zip(self._rows, reward.terms, strict=True)):
                row.show(part, picker_color(self._bench.notes, part.name, place))
            self._combine.suggestions = [
                Suggestion(name, "term") for name in (*_free_names(reward), *(g.name for g in reward.groups))
            ]
            self._combine.value = reward.combine or ""
            self._combine.clear_error()
            self._message.value = ""
        finally:
            self._showing = False

    def _draw(self) -> None:
        # The ranking stays beside them as it was; it follows when the slider is let go.
        self.plots.show(reward_figures(self._bench), partly=True)

    def _rank(self) -> None:
        self.plots.show([ranking_figure(self._bench)], partly=True)

    def _select(self, _key: str, index: int) -> None:
        self._bench.select(index)

    # --- editing

    def _row(self, place: int) -> TermRow:
        return TermRow(
            edit=lambda part, what, merge: self._edit_part(place, part, what, merge),
            act=lambda verb: self._act(place, verb),
            recolour=lambda colour: self._recolour(place, colour),
            suggestions=self._suggestions,
            functions=lambda: list(self._bench.functions),
            groups=lambda: [group.name for group in self._bench.reward.groups],
        )

    def _suggestions(self, part: Part) -> list[Suggestion]:
        names = plain_names(self._bench.batch.namespace)
        if isinstance(part, Shaping):
            return state_suggestions(self._bench.batch.obs.names)
        return name_suggestions(names, self._bench.batch)

    def _edit_part(self, place: int, part: Part, what: str, merge: str | None) -> None:
        """Puts a changed part in its place; only the plots and the other rows' help follow, not the row itself,
        in which somebody is typing."""
        terms = list(self._bench.reward.terms)
        old, terms[place] = terms[place], part
        reward = self._bench.reward
        combine = reward.combine
        if old.name != part.name and combine is not None:
            combine = re.sub(rf"\b{re.escape(old.name)}\b", part.name, combine)
        groups = self._groups.with_group(part.group)
        with self._bench.lock:
            if old.name == part.name and old.group == part.group and type(old) is type(part):
                with self._bench.listeners.without(self._hear):
                    self._bench.edit(reward=replace(reward, terms=terms), what=what, merge=merge)
                self._message.value = ""
                self._draw()
            else:
                changed = replace(reward, terms=terms, combine=combine, groups=groups)
                self._bench.edit(reward=changed, what=what, merge=merge)

    def _act(self, place: int, verb: str) -> None:
        with self._bench.lock:
            terms = list(self._bench.reward.terms)
            part = terms[place]
            if verb == "copy":
                terms.insert(place + 1, replace(part, name=_fresh_name(part.name, self._taken())))
            elif verb == "remove":
                del terms[place]
            else:
                there = place + (1 if verb == "down" else -1)
                if not 0 <= there < len(terms):
                    return
                terms[place], terms[there] = terms[there], terms[place]
            self._change(f"{verb} {part.name}", terms=terms)

    def _add(self) -> None:
        with self._bench.lock:
            name = _fresh_name("term", self._taken())
            self._change(f"add {name}", terms=[*self._bench.reward.terms, Term(name, "0.0")])

    def _try_combine(self, text: str) -> None:
        if self._showing:
            return
        try:
            with self._bench.listeners.without(self._hear):
                reward = replace(self._bench.reward, combine=text.strip() or None)
                self._bench.edit(reward=reward, what="combination", merge="combine")
        except DesignError as error:
            self._combine.show_error(str(error), position_of(error))
        else:
            self._combine.clear_error()
            self._draw()

    def _change(self, what: str, **changes: Any) -> None:
        try:
            self._bench.edit(reward=replace(self._bench.reward, **changes), what=what)
        except DesignError as error:
            self._message.value = escape(str(error))

    def _recolour(self, place: int, colour: str) -> None:
        name = self._bench.reward.terms[place].name
        self._bench.note(colours={**self._bench.notes.colours, name: colour})

    def _taken(self) -> set[str]:
        reward = self._bench.reward
        return {part.name for part in reward.terms} | {group.name for group in reward.groups}


def _heading(width: str, text: str) -> w.Label:
    layout = w.Layout(width=width) if width else w.Layout(flex="1 1 160px", min_width="120px")
    return w.Label(text, layout=layout)


def _free_names(reward: RewardSpec) -> list[str]:
    return [part.name for part in reward.terms if part.group is None]


def _fresh_name(name: str, taken: set[str]) -> str:
    """Returns `name` with the lowest number behind it that makes it free."""
    stem = re.sub(r"_?\d+$", "", name) or name
    number = 2
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}" if name in taken else name
