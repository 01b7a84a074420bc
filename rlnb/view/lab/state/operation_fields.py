"""The fields of a state operation: what can be changed about each kind."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets as w

from rlnb.design.operations.images import MAX_SIDE
from rlnb.design.operations.stack import MAX_FRAMES
from rlnb.design.operations.standardize import ZScore
from rlnb.design.plan import Stage
from rlnb.errors import DesignError, ExpressionError
from rlnb.view.lab.charts.expression_field import ExpressionField
from rlnb.view.lab.reward.names_help import state_suggestions
from rlnb.view.lab.state.names_picker import NamesPicker
from rlnb.view.lab.state.number_text import parse_number
from rlnb.view.lab.state.operation_kinds import statistics_words

Change = Callable[[dict[str, Any]], bool]
"""Takes changed attributes of the operation; returns whether it works."""

Measured = Callable[[tuple[str, ...] | None, bool], bool]
"""Takes the statistics of components anew (None: all), of good episodes only or of all."""


class Field:
    """One attribute of an operation, or a few that belong together.

    Attributes:
        widgets: stand in the row.
        below: stands under it, or None.
    """

    widgets: list[w.Widget]
    below: w.Widget | None = None

    def show(self, operation: Any, stage: Stage) -> None:
        """Shows the operation as it stands in the design, on what there is in front of it."""

    def say(self, error: DesignError) -> bool:
        """Shows what is wrong beside its place; False where this field is not the place."""
        return False


class _Quiet:
    """Within it a field shows what is there; nobody has typed."""

    def __init__(self) -> None:
        self.on = False

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False


class TextField(Field):
    """A name, or a number where `empty` is given: what an empty field stands for."""

    def __init__(
        self, attribute: str, label: str, change: Change, *, empty: Any = "", numbers: bool = True, hint: str = ""
    ) -> None:  # fmt: skip
        self._attribute, self._empty, self._quiet = attribute, empty, _Quiet()
        width = "66px" if numbers else "130px"
        self._text = w.Text(continuous_update=False, placeholder=hint, layout=w.Layout(width=width))
        self.widgets = [w.Label(label), self._text]

        def take(event: Any) -> None:
            text = event["new"].strip()
            if not self._quiet.on:
                change({attribute: (parse_number(text) if text else empty) if numbers else text})

        self._text.observe(take, "value")

    def show(self, operation: Any, stage: Stage) -> None:
        value = getattr(operation, self._attribute)
        with self._quiet:
            if value == self._empty:
                self._text.value = ""
            else:
                self._text.value = value if isinstance(value, str) else f"{value:.10g}"


class CountField(Field):
    """A whole number within bounds."""

    def __init__(self, attribute: str, label: str, low: int, high: int, change: Change) -> None:
        self._attribute, self._quiet = attribute, _Quiet()
        self._count = w.BoundedIntText(value=low, min=low, max=high, layout=w.Layout(width="64px"))
        self.widgets = [w.Label(label), self._count]
        self._count.observe(
            lambda event: None if self._quiet.on else change({attribute: event["new"]}), "value"
        )

    def show(self, operation: Any, stage: Stage) -> None:
        with self._quiet:
            self._count.value = getattr(operation, self._attribute)


class NamesField(Field):
    """Which components the operation works on; nothing to choose of a picture.

    Args:
        every: the operation needs the names themselves, also of all.
    """

    def __init__(self, change: Callable[[tuple[str, ...] | None], bool], *, every: bool = False) -> None:
        self._names: tuple[str, ...] = ()
        self._picker = NamesPicker(lambda chosen: change(self._names if every and chosen is None else chosen))
        self.widgets, self.below = [self._picker.widget], self._picker.box
        self._every = every

    def show(self, operation: Any, stage: Stage) -> None:
        self._names = stage.names
        self._picker.widget.layout.display = "" if stage.names else "none"
        chosen = operation.names
        complete = self._every and chosen is not None and tuple(chosen) == stage.names
        self._picker.show(stage.names, None if complete else chosen)


class FormulaField(Field):
    """The expression of a derived component, with help for the names that are known at that point."""

    def __init__(self, change: Change) -> None:
        self._quiet = _Quiet()
        self._field = ExpressionField(placeholder="e.g. hypot(vx, vy)")
        self._field.layout = w.Layout(flex="1 1 180px", min_width="140px")
        self.widgets = [w.Label("="), self._field]

        def take(event: Any) -> None:
            if not self._quiet.on and change({"expression": event["new"]}):
                self._field.clear_error()

        self._field.observe(take, "value")

    def show(self, operation: Any, stage: Stage) -> None:
        with self._quiet:
            self._field.suggestions = state_suggestions(stage.names)
            self._field.value = operation.expression
            self._field.clear_error()

    def say(self, error: DesignError) -> bool:
        if isinstance(error, ExpressionError):
            self._field.show_error(str(error), error.position)
            return True
        return False


class StatisticsField(Field):
    """Stored mean and spread of a z-score, and the button that takes them from the episodes."""

    def __init__(self, measured: Measured) -> None:
        self._source = w.Dropdown(
            options=[("all episodes", False), ("good episodes", True)], layout=w.Layout(width="124px")
        )
        self._source.tooltip = "which policies are good is chosen in the tab Checks"
        take = w.Button(description="Take from the episodes", layout=w.Layout(width="auto"))
        take.tooltip = "take mean and standard deviation anew from the recorded episodes"
        self._words = w.HTML(layout=w.Layout(flex="1 1 120px", min_width="120px"))
        self._words.add_class("rlnb-muted")
        self._picker = NamesPicker(lambda chosen: measured(chosen, self._source.value))
        self._operation: ZScore | None = None
        take.on_click(
            lambda _: measured(self._operation.names if self._operation else None, self._source.value)
        )
        self.widgets = [self._picker.widget, take, self._source, self._words]
        self.below = self._picker.box

    def show(self, operation: Any, stage: Stage) -> None:
        self._operation = operation
        every = operation.names is not None and tuple(operation.names) == stage.names
        self._picker.show(stage.names, None if every else operation.names)
        self._words.value = escape(statistics_words(operation, stage.names))


def fields_of(kind: str, change: Change, measured: Measured) -> list[Field]:
    """Returns the fields of an operation, in their order.

    Args:
        kind: of the operation.
        change: tries changed attributes.
        measured: takes statistics anew.
    """

    def names(*, every: bool = False) -> NamesField:
        return NamesField(lambda chosen: change({"names": chosen}), every=every)

    def number(attribute: str, label: str, **more: Any) -> TextField:
        return TextField(attribute, label, change, **more)

    infinity = float("inf")
    made: dict[str, Callable[[], list[Field]]] = {
        "select": lambda: [names(every=True)],
        "derive": lambda: [
            number("name", "name", numbers=False), FormulaField(change),
            number("low", "low", empty=None, hint="−∞"), number("high", "high", empty=None, hint="∞"),
        ],
        "zscore": lambda: [StatisticsField(measured)],
        "running_zscore": lambda: [names(), number("clip", "clip at ±")],
        "clip": lambda: [
            names(), number("low", "low", empty=-infinity, hint="−∞"), number("high", "high", empty=infinity, hint="∞"),
        ],
        "delta": lambda: [names()],
        "scale": lambda: [names(), number("factor", "times"), number("offset", "plus")],
        "stack": lambda: [CountField("frames", "how many", 2, MAX_FRAMES, change), names()],
        "resize": lambda: [
            CountField("height", "height", 1, MAX_SIDE, change), CountField("width", "width", 1, MAX_SIDE, change),
        ],
    }  # fmt: skip
    return made[kind]() if kind in made else []
