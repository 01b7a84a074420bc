"""One row of the reward table: a term with its expression, clip and weight.

A row edits a draft. What works goes to the workbench at once; what does not is said in the row, beside
the place of the fault, and the design stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import ipywidgets as w

from rlnb.design.reward import Shaping, Term
from rlnb.errors import DesignError, ExpressionError
from rlnb.view.lab.charts.expression_field import ExpressionField, Suggestion
from rlnb.view.lab.reward.weight_field import Weight, WeightField
from rlnb.view.lab.state.number_text import parse_number

Part = Term | Shaping

#: what a term is made of, as the kind selector calls it
EXPRESSION, PYTHON, SHAPING = "expression", "Python function", "potential (shaping)"


def button(icon: str, tip: str, on_click: Callable[[], None]) -> w.Button:
    """Returns a small button that says what it does when pointed at."""
    made = w.Button(icon=icon, tooltip=tip, layout=w.Layout(width="28px"))
    made.add_class("rlnb-icon-button")
    made.on_click(lambda _: on_click())
    return made


class TermRow:
    """The widgets of one term.

    Args:
        edit: takes the changed part, a text for undo and a merge word; raises DesignError if it does not work.
        act: takes "up", "down", "copy" or "remove".
        recolour: takes the new colour.
        functions: names of Python terms there are.
        groups: names of groups there are.

    Attributes:
        widget: what is shown.
    """

    def __init__(
        self,
        *,
        edit: Callable[[Part, str, str | None], None],
        act: Callable[[str], None],
        recolour: Callable[[str], None],
        suggestions: Callable[[Part], list[Suggestion]],
        functions: Callable[[], list[str]],
        groups: Callable[[], list[str]],
    ) -> None:
        self._edit, self._choose_colour = edit, recolour
        self._suggestions, self._functions, self._groups = suggestions, functions, groups
        self._part: Part = Term("term", "0.0")
        self._quiet = True
        narrow = w.Layout(width="66px")
        self._on = w.Checkbox(indent=False, layout=w.Layout(width="22px"))
        self._on.tooltip = "count this term"
        self._colour = w.ColorPicker(concise=True, layout=w.Layout(width="30px"))
        self._name = w.Text(continuous_update=False, layout=w.Layout(width="120px"))
        self._expression = ExpressionField(placeholder="e.g. -abs(x)")
        self._expression.layout = w.Layout(flex="1 1 160px", min_width="120px")
        self._function = w.Dropdown(layout=w.Layout(flex="1 1 160px", min_width="120px"))
        self._low = w.Text(continuous_update=False, placeholder="−∞", layout=narrow)
        self._high = w.Text(continuous_update=False, placeholder="∞", layout=narrow)
        self._weight = WeightField(self._weigh)
        self._kind = w.Dropdown(options=[EXPRESSION, PYTHON, SHAPING], layout=w.Layout(width="170px"))
        self._group = w.Combobox(placeholder="none", continuous_update=False, layout=w.Layout(width="130px"))
        self._gamma = w.Text(continuous_update=False, layout=narrow)
        self._error = w.HTML()
        self._error.add_class("rlnb-row-error")
        more = w.ToggleButton(icon="ellipsis-h", tooltip="kind, group, gamma", layout=w.Layout(width="28px"))
        more.add_class("rlnb-icon-button")
        self._gamma_box = w.HBox([w.Label("gamma"), self._gamma])
        details = w.HBox([w.Label("made of"), self._kind, w.Label("group"), self._group, self._gamma_box])
        details.layout.display = "none"
        details.add_class("rlnb-term-details")
        more.observe(lambda change: setattr(details.layout, "display", "flex" if change["new"] else "none"), "value")  # fmt: skip
        buttons = [
            button("arrow-up", "move up", lambda: act("up")),
            button("arrow-down", "move down", lambda: act("down")),
            button("copy", "copy this term", lambda: act("copy")),
            button("trash", "remove this term", lambda: act("remove")),
        ]
        line = w.HBox(
            [
                self._on, self._colour, self._name, self._expression, self._function, self._low, self._high,
                self._weight.slider, self._weight.exact, w.HBox([more, *buttons]),
            ]
        )  # fmt: skip
        line.add_class("rlnb-term-line")
        self.widget = w.VBox([line, details, self._error])
        self.widget.add_class("rlnb-term")
        self._watch()
        self._quiet = False

    def show(self, part: Part, colour: str) -> None:
        """Shows a term as it stands in the design; drafts that differ are gone."""
        self._quiet = True
        try:
            self._part = part
            self._on.value = part.enabled
            self._colour.value = colour
            self._name.value = part.name
            python = isinstance(part, Term) and part.python is not None
            self._kind.value = SHAPING if isinstance(part, Shaping) else PYTHON if python else EXPRESSION
            self._expression.suggestions = self._suggestions(part)
            self._expression.value = _text(part)
            self._expression.clear_error()
            functions = self._functions()
            if isinstance(part, Term) and part.python is not None:
                self._function.options = list(dict.fromkeys([part.python, *functions]))
                self._function.value = part.python
            self._expression.layout.display = "none" if python else ""
            self._function.layout.display = "" if python else "none"
            for field, place in ((self._low, 0), (self._high, 1)):
                field.value = "" if part.clip is None else f"{part.clip[place]:g}".replace("inf", "∞")
                field.disabled = isinstance(part, Shaping)
            self._group.options = self._groups()
            self._group.value = part.group or ""
            self._gamma.value = f"{part.gamma:g}" if isinstance(part, Shaping) else ""
            self._gamma_box.layout.display = "" if isinstance(part, Shaping) else "none"
            self._weight.show(part.weight)
            self._error.value = ""
        finally:
            self._quiet = False

    def recolour(self, colour: str) -> None:
        """Shows another colour; a draft that is being typed stays."""
        self._quiet = True
        self._colour.value = colour
        self._quiet = False

    def _watch(self) -> None:
        self._on.observe(lambda c: self._try(what="on/off", enabled=c["new"]), "value")
        self._name.observe(lambda c: self._try(what="name", name=c["new"].strip()), "value")
        self._expression.observe(lambda c: self._try_text(c["new"]), "value")
        self._function.observe(lambda c: self._take_function(c["new"]), "value")
        for field in (self._low, self._high):
            field.observe(lambda _: self._try_clip(), "value")
        self._kind.observe(lambda c: self._turn_into(c["new"]), "value")
        self._group.observe(lambda c: self._try(what="group", group=c["new"].strip() or None), "value")
        self._gamma.observe(lambda c: self._try(what="gamma", gamma=parse_number(c["new"])), "value")
        self._colour.observe(lambda c: None if self._quiet else self._choose_colour(c["new"]), "value")

    def _weigh(self, weight: Weight) -> bool:
        return self._try(what="weight", merge=f"weight {self._part.name}", weight=weight)

    def _try_text(self, text: str) -> None:
        key = "potential" if isinstance(self._part, Shaping) else "expression"
        self._try(what=key, merge=f"{key} {self._part.name}", **{key: text})

    def _try_clip(self) -> None:
        low, high = self._low.value.strip(), self._high.value.strip()
        given = bool(low or high)
        clip = (parse_number(low, "-inf"), parse_number(high, "inf")) if given else None
        self._try(what="clip", clip=clip)

    def _take_function(self, name: str | None) -> None:
        if name and isinstance(self._part, Term):
            self._try(what="function", python=name, expression=None, function=None)

    def _turn_into(self, kind: str) -> None:
        if self._quiet:
            return
        part = self._part
        shared: dict[str, Any] = {"name": part.name, "enabled": part.enabled, "group": part.group}
        text = _text(part) or "0.0"
        try:
            if kind == SHAPING:
                weight = part.weight if not isinstance(part.weight, str) else 1.0
                made: Part = Shaping(potential=text, weight=weight, **shared)
            elif kind == PYTHON:
                functions = self._functions()
                if not functions:
                    raise DesignError("There is no Python term yet; run a cell with '@rlnb.reward_term' above 'def name(batch)'.")  # fmt: skip
                self._take_newest(functions, lambda name: Term(python=name, weight=part.weight, clip=part.clip, **shared))  # fmt: skip
                return
            else:
                made = Term(expression=text, weight=part.weight, clip=part.clip, **shared)
            self._edit(made, f"{part.name}: {kind}", None)
        except DesignError as error:
            self._say(error)

    def _take_newest(self, functions: Sequence[str], make: Callable[[str], Term]) -> None:
        """Takes the Python term that was defined last among those that work here; the menu offers the others."""
        errors = []
        for name in reversed(functions):
            try:
                return self._edit(make(name), f"{self._part.name}: {PYTHON}", None)
            except DesignError as error:
                errors.append(error)
        raise errors[0]

    def _try(self, *, what: str, merge: str | None = None, **changes: Any) -> bool:
        """Tries an edit; says in the row what is wrong with it."""
        if self._quiet:
            return False
        try:
            part = replace(self._part, **changes)
            self._edit(part, f"{self._part.name}: {what}", merge)
        except DesignError as error:
            self._say(error)
            return False
        self._part = part
        self._expression.clear_error()
        self._error.value = ""
        return True

    def _say(self, error: DesignError) -> None:
        if isinstance(error, ExpressionError) and self._expression.layout.display != "none":
            self._expression.show_error(str(error), error.position)
        else:
            self._error.value = escape(str(error))


def _text(part: Part) -> str:
    if isinstance(part, Shaping):
        return part.potential
    return part.expression if isinstance(part.expression, str) else ""
