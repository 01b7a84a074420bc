"""Groups of terms, for rewards with several objectives: a weight for each, and how its terms are combined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ipywidgets as w

from rlnb.design.groups import TermGroup
from rlnb.errors import DesignError, position_of
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.charts.expression_field import ExpressionField, Suggestion
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.reward.term_row import button
from rlnb.view.lab.reward.weight_field import WeightField
from rlnb.view.lab.widget_tree import close_tree


class GroupRows:
    """Rows of the groups; nothing is shown while a reward has none.

    Args:
        bench: the model.

    Attributes:
        widget: the rows.
        add_button: makes a group.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._rows: list[_GroupRow] = []
        self._box = w.VBox()
        self.widget = w.VBox([w.HTML("<b>Groups</b>: a term joins one by its ⋯ menu."), self._box])
        self.add_button = w.Button(
            description="Add group", icon="object-group", layout=w.Layout(width="120px")
        )
        self.add_button.tooltip = "terms of one objective, weighted together"
        self.add_button.on_click(lambda _: self._add())
        self._show()
        bench.listeners.add(self._hear)

    def with_group(self, name: str | None) -> list[TermGroup]:
        """Returns the reward's groups, with a new one of that name if there is none yet."""
        groups = list(self._bench.reward.groups)
        if name and name not in [group.name for group in groups]:
            groups.append(TermGroup(name))
        return groups

    def _hear(self, event: Event) -> None:
        if event is Event.REWARD:
            self._show()

    def _show(self) -> None:
        groups = self._bench.reward.groups
        self.widget.layout.display = "" if groups else "none"
        while len(self._rows) < len(groups):
            self._rows.append(_GroupRow(self._bench, len(self._rows)))
        gone = self._rows[len(groups) :]
        del self._rows[len(groups) :]
        if len(self._box.children) != len(self._rows):
            self._box.children = [row.widget for row in self._rows]
        for row in gone:
            close_tree(row.widget)
        for row, group in zip(self._rows, groups, strict=True):
            members = [part.name for part in self._bench.reward.terms if part.group == group.name]
            row.show(group, members)

    def _add(self) -> None:
        with self._bench.lock:
            reward = self._bench.reward
            taken = {part.name for part in reward.terms} | {group.name for group in reward.groups}
            number = next(n for n in range(1, len(taken) + 2) if f"objective_{n}" not in taken)
            group = TermGroup(f"objective_{number}")
            self._bench.edit(
                reward=replace(reward, groups=[*reward.groups, group]), what=f"add group {group.name}"
            )


class _GroupRow:
    def __init__(self, bench: Workbench, place: int) -> None:
        self._bench, self._place = bench, place
        self._quiet = True
        self._on = w.Checkbox(indent=False, layout=w.Layout(width="22px"))
        self._name = w.Text(continuous_update=False, layout=w.Layout(width="120px"))
        self._combine = ExpressionField(placeholder="the weighted sum of its terms")
        self._combine.layout = w.Layout(flex="1 1 160px", min_width="120px")
        self._members = w.HTML(layout=w.Layout(width="180px"))
        self._members.add_class("rlnb-muted")
        self._weight = WeightField(lambda weight: self._try("weight", weight=weight))
        self.widget = w.HBox(
            [
                self._on, self._name, self._combine, self._members, self._weight.slider, self._weight.exact,
                button("trash", "remove the group; its terms stay", self._remove),
            ]
        )  # fmt: skip
        self.widget.add_class("rlnb-term-line")
        self._on.observe(lambda c: self._try("on/off", enabled=c["new"]), "value")
        self._name.observe(lambda c: self._rename(c["new"].strip()), "value")
        self._combine.observe(lambda c: self._try("combination", combine=c["new"].strip() or None), "value")
        self._quiet = False

    def show(self, group: TermGroup, members: list[str]) -> None:
        self._quiet = True
        self._group = group
        self._on.value, self._name.value = group.enabled, group.name
        self._members.value = ", ".join(members) or "no terms yet"
        self._combine.suggestions = [Suggestion(name, "term") for name in members]
        self._combine.value = group.combine or ""
        self._combine.clear_error()
        self._weight.show(group.weight)
        self._quiet = False

    def _try(self, what: str, **changes: Any) -> bool:
        if self._quiet:
            return False
        reward = self._bench.reward
        groups = list(reward.groups)
        old = groups[self._place]
        try:
            groups[self._place] = replace(old, **changes)
            self._bench.edit(
                reward=replace(reward, groups=groups), what=f"{old.name}: {what}", merge=f"{what} {old.name}"
            )
        except DesignError as error:
            self._combine.show_error(str(error), position_of(error))
        else:
            self._combine.clear_error()
            return True
        return False

    def _rename(self, name: str) -> None:
        if self._quiet:
            return
        reward = self._bench.reward
        old = reward.groups[self._place].name
        terms = [replace(part, group=name) if part.group == old else part for part in reward.terms]
        groups = [replace(group, name=name) if group.name == old else group for group in reward.groups]
        try:
            self._bench.edit(reward=replace(reward, terms=terms, groups=groups), what=f"rename {old}")
        except DesignError as error:
            self._combine.show_error(str(error), None)

    def _remove(self) -> None:
        reward = self._bench.reward
        old = reward.groups[self._place].name
        terms = [replace(part, group=None) if part.group == old else part for part in reward.terms]
        groups = [group for group in reward.groups if group.name != old]
        try:
            self._bench.edit(reward=replace(reward, terms=terms, groups=groups), what=f"remove group {old}")
        except DesignError as error:
            self._combine.show_error(str(error), None)
