"""The operations of a state design as ordered rows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import ipywidgets as w

from rlnb.design.operations.operation import Operation
from rlnb.design.operations.standardize import ZScore
from rlnb.design.state import StateSpec
from rlnb.errors import DesignError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.state.operation_kinds import first_operation, measured, offered_kinds, without_pixels
from rlnb.view.lab.state.operation_row import OperationRow
from rlnb.view.lab.state.state_look import stage_values
from rlnb.view.lab.widget_tree import close_tree


class OperationRows:
    """Shows and edits a workbench's state operations.

    Args:
        bench: the model.

    Attributes:
        widget: what is shown.
        rows: the rows, in order.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self.rows: list[OperationRow] = []
        self._box = w.VBox()
        self._none = w.HTML("No operation: the agent sees the environment's observation as it is.")
        self._none.add_class("rlnb-muted")
        self._add = w.Dropdown(layout=w.Layout(width="226px"))
        self._add.observe(lambda event: self._append(event["new"]), "value")
        self._message = w.HTML()
        self._message.add_class("rlnb-row-error")
        self.widget = w.VBox([self._none, self._box, self._add, self._message])
        self._quiet = False
        self.show()
        bench.listeners.add(self._hear)

    @property
    def kinds(self) -> list[str]:
        """The kinds of operations that may be added now."""
        return [kind for _, kind in self._add.options if kind]

    @property
    def message(self) -> str:
        """Why an operation could not be added, as it is shown; "" when nothing is wrong."""
        return str(self._message.value)

    def show(self, *, but: int | None = None) -> None:
        """Brings the rows in line with the design.

        Args:
            but: a row that is right already, in which somebody may be typing.
        """
        operations = self._bench.state.ops
        self._none.layout.display = "none" if operations else ""
        self._message.value = ""
        try:
            stages = [without_pixels(stage) for stage in self._bench.plan.stages]
        except DesignError as error:  # a space without components, and so a design without operations
            self._add.layout.display = "none"
            self._message.value = escape(str(error))
            return
        while len(self.rows) < len(operations):
            self.rows.append(self._row(len(self.rows)))
        gone = self.rows[len(operations) :]
        del self.rows[len(operations) :]
        if len(self._box.children) != len(self.rows):
            self._box.children = [row.widget for row in self.rows]
        for row in gone:
            close_tree(row.widget)
        for place, (row, operation) in enumerate(zip(self.rows, operations, strict=True)):
            if place != but:
                row.show(operation, stages[place], place + 1)
        kinds = offered_kinds(stages[-1])
        self._quiet = True
        options = [("+ Add an operation …", ""), *((words, kind) for kind, words in kinds.items())]
        if list(self._add.options) != options:
            self._add.options = options
        self._add.value = ""
        self._add.layout.display = "" if kinds else "none"
        self._quiet = False

    def _hear(self, event: Event) -> None:
        if event in (Event.STATE, Event.EPISODES):
            self.show()

    def _row(self, place: int) -> OperationRow:
        return OperationRow(
            edit=lambda operation, what, merge: self._edit(place, operation, what, merge),
            act=lambda verb: self._act(place, verb),
            measure=lambda names, good: self._measure(place, names, good),
        )

    def _measure(self, place: int, names: Sequence[str], good: bool) -> ZScore:
        every = self._bench.plan.stages[place].names
        return measured(stage_values(self._bench, place, good=good), every, names)

    def _edit(self, place: int, operation: Operation, what: str, merge: str | None) -> None:
        """Puts a changed operation in its place; its own row, in which somebody is typing, stays as it is."""
        with self._bench.lock:
            operations = list(self._bench.state.ops)
            same_kind = operations[place].kind == operation.kind
            operations[place] = operation
            with self._bench.listeners.without(self._hear):
                self._bench.edit(state=StateSpec(operations), what=what, merge=merge)
            self.show(but=place if same_kind else None)

    def _act(self, place: int, verb: str) -> None:
        with self._bench.lock:
            operations = list(self._bench.state.ops)
            if verb == "remove":
                gone = operations.pop(place)
            else:
                gone = operations[place]
                there = place + (1 if verb == "down" else -1)
                if not 0 <= there < len(operations):
                    return
                operations[place], operations[there] = operations[there], operations[place]
            words = f"remove {gone.kind}" if verb == "remove" else f"move {gone.kind} {verb}"
            self._bench.edit(state=StateSpec(operations), what=words)

    def _append(self, kind: str | None) -> None:
        if self._quiet or not kind:
            return
        with self._bench.lock:
            operations = self._bench.state.ops
            stage = without_pixels(self._bench.plan.stages[-1])
            try:
                made = first_operation(
                    kind, stage, lambda names: self._measure(len(operations), names, False)
                )
                self._bench.edit(state=StateSpec([*operations, made]), what=f"add {kind}")
            except DesignError as error:
                self._quiet = True
                self._add.value = ""
                self._quiet = False
                self._message.value = escape(str(error))
