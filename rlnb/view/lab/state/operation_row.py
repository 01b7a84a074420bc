"""One row of the state design: an operation with its fields.

A row edits a draft. What works goes to the workbench at once; what does not is said in the row, and the
design stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import ipywidgets as w

from rlnb.design.operations.operation import Operation
from rlnb.design.operations.standardize import ZScore
from rlnb.design.plan import Stage
from rlnb.errors import DesignError
from rlnb.view.lab.reward.term_row import button
from rlnb.view.lab.state.operation_fields import Field, fields_of
from rlnb.view.lab.state.operation_kinds import NUMBER_KINDS, PICTURE_KINDS, first_operation, offered_kinds
from rlnb.view.lab.widget_tree import close_tree


class OperationRow:
    """The widgets of one operation.

    Args:
        edit: takes the changed operation, a text for undo and a merge word; raises DesignError if it does not
            work.
        act: takes "up", "down" or "remove"; raises likewise.
        measure: takes names and whether only good episodes count; returns their z-score at this point.

    Attributes:
        widget: what is shown.
    """

    def __init__(
        self,
        *,
        edit: Callable[[Operation, str, str | None], None],
        act: Callable[[str], None],
        measure: Callable[[Sequence[str], bool], ZScore],
    ) -> None:
        self._edit, self._act, self._measure = edit, act, measure
        self._operation: Operation | None = None
        self._stage: Stage | None = None
        self._fields: list[Field] = []
        self._made_for = ""
        self._quiet = False
        self._number = w.Label(layout=w.Layout(width="18px"))
        self._kind = w.Dropdown(layout=w.Layout(width="206px"))
        self._kind.observe(lambda event: self._turn_into(event["new"]), "value")
        self._place = w.HBox(layout=w.Layout(flex="1 1 auto"))
        self._place.add_class("rlnb-operation-fields")
        self._below = w.VBox()
        self._error = w.HTML()
        self._error.add_class("rlnb-row-error")
        line = w.HBox(
            [
                self._number, self._kind, self._place,
                button("arrow-up", "move up", lambda: self._move("up")),
                button("arrow-down", "move down", lambda: self._move("down")),
                button("trash", "remove this operation", lambda: self._move("remove")),
            ]
        )  # fmt: skip
        line.add_class("rlnb-operation-line")
        self.widget = w.VBox([line, self._below, self._error])
        self.widget.add_class("rlnb-operation")

    @property
    def error(self) -> str:
        """What is wrong with the last draft, as it is shown; "" when nothing is."""
        return str(self._error.value)

    def show(self, operation: Operation, stage: Stage, number: int) -> None:
        """Shows an operation as it stands in the design; drafts that differ are gone.

        Args:
            operation: the operation.
            stage: what there is in front of it.
            number: its place, from 1.
        """
        self._accept(operation)
        self._stage = stage
        self._quiet = True
        try:
            self._number.value = f"{number}"
            kinds = offered_kinds(stage)
            kinds.setdefault(
                operation.kind, {**NUMBER_KINDS, **PICTURE_KINDS}.get(operation.kind, operation.kind)
            )
            options = [(words, kind) for kind, words in kinds.items()]
            if list(self._kind.options) != options:
                self._kind.options = options
            self._kind.value = operation.kind
            if self._made_for != operation.kind:
                old = [*self._place.children, *self._below.children]
                self._fields = fields_of(operation.kind, self._try, self._take_statistics)
                self._place.children = [widget for field in self._fields for widget in field.widgets]
                self._below.children = [field.below for field in self._fields if field.below is not None]
                self._made_for = operation.kind
                for widget in old:
                    close_tree(widget)
            for field in self._fields:
                field.show(operation, stage)
        finally:
            self._quiet = False

    def _accept(self, operation: Operation) -> None:
        self._operation = operation
        self._error.value = ""

    def _turn_into(self, kind: str | None) -> None:
        if self._quiet or kind is None or self._stage is None or self._operation is None:
            return
        try:
            made = first_operation(kind, self._stage, lambda names: self._measure(names, False))
            self._edit(made, f"{self._operation.kind}: now {kind}", None)
        except DesignError as error:
            self._quiet = True
            self._kind.value = self._operation.kind
            self._quiet = False
            self.say(error)

    def _try(self, changes: dict[str, Any]) -> bool:
        """Tries an edit; says in the row what is wrong with it."""
        old = self._operation
        if self._quiet or old is None:
            return False
        try:
            operation = replace(old, **changes)  # type: ignore[type-var]
            word = f"state {self._number.value} {' '.join(changes)}"
            self._edit(operation, f"{old.kind}: {', '.join(changes)}", word)
        except DesignError as error:
            self.say(error)
            return False
        self._accept(operation)
        return True

    def _take_statistics(self, names: tuple[str, ...] | None, good: bool) -> bool:
        if self._stage is None:
            return False
        chosen = self._stage.names if names is None else names
        try:
            operation = self._measure(chosen, good)
            self._edit(operation, "zscore: statistics", None)
        except DesignError as error:
            self.say(error)
            return False
        self._accept(operation)
        for field in self._fields:
            field.show(operation, self._stage)
        return True

    def _move(self, verb: str) -> None:
        try:
            self._act(verb)
        except DesignError as error:
            self.say(error)

    def say(self, error: DesignError) -> None:
        """Says in the row what does not work."""
        if not any(field.say(error) for field in self._fields):
            self._error.value = escape(str(error))
