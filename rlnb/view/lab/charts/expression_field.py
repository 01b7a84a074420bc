"""A text field for an expression: it offers names while somebody types and marks the place of an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anywidget
import traitlets as t

from rlnb.view.assets import source

_MOST_NAMES = 2000

_WORD = re.compile(r"[\w.]+")


@dataclass(frozen=True)
class Suggestion:
    """Something an expression may contain.

    Attributes:
        name: how it is written; a function's ends with its opening bracket.
        about: what it is, in a few words.
    """

    name: str
    about: str = ""


class ExpressionField(anywidget.AnyWidget):
    """One line of an expression.

    What is typed arrives in `value` 150 ms after the last key, or at once with Enter or when the field is
    left. Setting `value` replaces the text, but never what was typed since: each text that the browser
    sends has a number, and a text from Python counts only if it answers the newest one.

    Attributes:
        value: the text.
        edit: which text of the browser `value` is or follows.
        names: see `suggestions`.
        placeholder: shown while the field is empty.
        label: what the field is called, for readers who do not see it.
        disabled: nothing can be typed.
        checked: the text that `error` is about, or None while nothing is known: the field then looks pending
            as long as its text differs.
        error: what is wrong with it, or empty.
        error_position: 0-based place of the fault, or None.
        error_length: number of characters that are marked.
    """

    _esm = source("drawing.js", "lab_expression.js")
    _css = source("theme.css", "lab.css")

    value = t.Unicode("").tag(sync=True)
    edit = t.Unicode("").tag(sync=True)
    names: t.List[Any] = t.List().tag(sync=True)
    placeholder = t.Unicode("").tag(sync=True)
    label = t.Unicode("expression").tag(sync=True)
    disabled = t.Bool(False).tag(sync=True)
    checked = t.Unicode(None, allow_none=True).tag(sync=True)
    error = t.Unicode("").tag(sync=True)
    error_position = t.Int(None, allow_none=True).tag(sync=True)
    error_length = t.Int(1).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._changed: list[Callable[[str], None]] = []
        self.on_msg(self._receive)

    @property
    def suggestions(self) -> list[Suggestion]:
        """What is offered while somebody types, in this order."""
        return [Suggestion(name, about) for name, about in self.names]

    @suggestions.setter
    def suggestions(self, suggestions: Sequence[Suggestion]) -> None:
        self.names = [[one.name, one.about] for one in suggestions[:_MOST_NAMES]]

    def on_change(self, handle: Callable[[str], None]) -> None:
        """Calls `handle` with each text that somebody typed; `observe` also tells of texts set in Python."""
        self._changed.append(handle)

    def show_error(self, message: str, position: int | None = None, length: int | None = None) -> None:
        """Shows what is wrong with the present text.

        Args:
            message: one sentence.
            position: 0-based place of the fault in the text, or None if it has none.
            length: number of characters to mark; None: the name or number that begins there.
        """
        if length is None:
            word = _WORD.match(self.value, position or 0)
            length = len(word.group()) if word else 1
        with self.hold_sync():
            self.checked, self.error = self.value, message
            self.error_position, self.error_length = position, max(1, length)

    def clear_error(self) -> None:
        """Shows that the present text works."""
        with self.hold_sync():
            self.checked, self.error, self.error_position = self.value, "", None

    def _receive(self, _widget: object, content: Any, _buffers: object) -> None:
        if not isinstance(content, dict):
            return
        text, edit = content.get("text"), content.get("edit")
        if not isinstance(text, str) or not isinstance(edit, str):
            return
        # One message carries the number and all that the text leads to: an answer without it would be stale.
        with self.hold_sync():
            self.edit = edit
            changed = text != self.value
            self.value = text
            if changed:
                for handle in self._changed:
                    handle(text)
