"""Who is told when a workbench changes, and of what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum


class Event(StrEnum):
    """What a listener is told."""

    REWARD = "reward"  # the reward changed
    STATE = "state"  # the state changed
    EPISODES = "episodes"  # episodes came or went
    SELECTION = "selection"  # another episode is looked at
    NOTES = "notes"  # colours, preferences, which policies are good
    SETTLED = "settled"  # no edit for a moment: findings are up to date, the file is saved
    FILE = "file"  # what is to be said about the design file


def changes(reward: bool, state: bool) -> list[Event]:
    """Returns what is told when a design changes."""
    return [event for event, is_so in ((Event.REWARD, reward), (Event.STATE, state)) if is_so]


Listener = Callable[[Event], None]


class Listeners:
    """Tabs, the keeper and the heading, in the order in which they came."""

    def __init__(self) -> None:
        self._all: list[Listener] = []

    def add(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` after each change; returns what ends that."""
        self._all.append(listener)
        return lambda: self._all.remove(listener)

    @contextmanager
    def without(self, listener: Listener) -> Iterator[None]:
        """Within it `listener` is not called: for a tab that makes the change itself."""
        place = self._all.index(listener)
        del self._all[place]
        try:
            yield
        finally:
            self._all.insert(place, listener)

    def tell(self, *events: Event) -> None:
        """Calls every listener with each event; if some fail, the first error is raised once all have been told."""
        errors: list[Exception] = []
        for event in events:
            for listener in tuple(self._all):
                try:
                    listener(event)
                except Exception as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def clear(self) -> None:
        """Forgets everybody."""
        self._all.clear()
