"""Undo and redo over values that never change."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

#: seconds within which edits of one kind count as one: a drag is one step back, not hundreds
MERGE_SECONDS = 1.5
MAX_STEPS = 200


@dataclass(frozen=True)
class Step(Generic[T]):
    """A value and what was done to reach it."""

    value: T
    what: str


class UndoStack(Generic[T]):
    """The values so far.

    Args:
        value: the first one.
        clock: seconds; a test gives its own.
    """

    def __init__(self, value: T, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps = [Step(value, "opened")]
        self._place = 0
        self._clock = clock
        self._merge: tuple[str, float] | None = None

    @property
    def value(self) -> T:
        """The value as it stands."""
        return self._steps[self._place].value

    @property
    def undoes(self) -> str:
        """What `undo` would take back; "" when there is nothing."""
        return self._steps[self._place].what if self._place else ""

    @property
    def redoes(self) -> str:
        """What `redo` would do again; "" when there is nothing."""
        ahead = self._place + 1
        return self._steps[ahead].what if ahead < len(self._steps) else ""

    def push(self, value: T, what: str, *, merge: str | None = None) -> None:
        """Goes on to another value; what was undone before is forgotten.

        Args:
            value: the new value.
            what: in words, for the undo button.
            merge: edits with the same word in quick succession are one step.
        """
        now = self._clock()
        again = merge is not None and self._merge is not None and self._merge[0] == merge
        if again and self._merge is not None and now - self._merge[1] < MERGE_SECONDS and self._place:
            self._place -= 1
        del self._steps[self._place + 1 :]
        self._steps.append(Step(value, what))
        del self._steps[: -MAX_STEPS - 1]
        self._place = len(self._steps) - 1
        self._merge = None if merge is None else (merge, now)

    def undo(self) -> T:
        """Goes one step back, if there is one."""
        self._place = max(0, self._place - 1)
        self._merge = None
        return self.value

    def redo(self) -> T:
        """Goes one step forward again, if there is one."""
        self._place = min(len(self._steps) - 1, self._place + 1)
        self._merge = None
        return self.value

    def replace(self, change: Callable[[T], T]) -> None:
        """Changes every value in place, as when a cell defines a function of theirs anew."""
        self._steps = [Step(change(step.value), step.what) for step in self._steps]
