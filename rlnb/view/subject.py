"""What a live view shows: one run, or (in `rlnb.view.group`) several."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypedDict

from rlnb.run.control import Verb
from rlnb.run.status import State
from rlnb.view.actions import CHOICES, Actions, Answer
from rlnb.view.facts import Facts
from rlnb.view.panels import Panel, panels_of
from rlnb.view.still import still_image
from rlnb.view.text import closing_text, job_text
from rlnb.view.watch import RunWatch

UPLOAD_WAIT = 30.0
"""Seconds that the view of an ended run stays live to see its upload end, so that the last image is final."""


class Button(TypedDict):
    """One button as the browser needs it."""

    verb: str
    label: str
    describe: str
    enabled: bool


class Head(TypedDict):
    """The heading as the browser needs it; all words are made here, so that text and widget agree."""

    title: str
    what: str
    value: str
    state: str
    tone: str
    ended: bool
    fraction: float | None
    progress: str
    left: str
    details: list[str]
    why: str
    answer: str
    buttons: list[Button]


class Subject(Protocol):
    """Seam: what a live view shows. All methods but `perform` are called from one thread."""

    @property
    def key(self) -> str:
        """Names the subject; one live view serves all outputs that show it."""

    @property
    def halted(self) -> str:
        """Changes whenever the subject pauses or ends, and is "" while it goes on."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    @property
    def version(self) -> int:
        """Changes whenever the charts do."""

    def poll(self) -> bool:
        """Reads what is new; returns whether anything changed."""

    def head(self, *, busy: bool, answer: str) -> Head:
        """Returns the heading; `busy` while an action waits for its answer."""

    def panels(self) -> list[Panel]:
        """Returns the charts."""

    def marks(self) -> dict[str, Any]:
        """Returns what is marked on the step axis, see `ChartsWidget.marks`."""

    def still(self) -> bytes:
        """Returns a PNG of the present picture."""

    def text(self) -> str:
        """Returns the picture in words."""

    def closing(self) -> str:
        """Returns what to write below the last image."""

    def perform(self, verb: Verb) -> Answer:
        """Carries out what a button asks; any thread."""


class RunSubject:
    """One run."""

    def __init__(
        self,
        watch: RunWatch,
        actions: Actions,
        *,
        title: str = "",
        failure: Callable[[], str] | None = None,
    ) -> None:
        self.watch, self.actions, self.title = watch, actions, title
        self._failure = failure
        self._final_since: float | None = None

    @property
    def key(self) -> str:
        return str(self.watch.layout.root)

    @property
    def facts(self) -> Facts:
        return self.watch.facts

    @property
    def halted(self) -> str:
        if self.ended:
            return "ended"
        state = self.facts.state
        return str(state) if state.final or state in (State.PAUSED, State.SUSPENDED) else ""

    @property
    def ended(self) -> bool:
        if self._final_since is None:
            return False
        waited = time.monotonic() - self._final_since
        return self.facts.upload_pending == 0 or waited > UPLOAD_WAIT

    @property
    def version(self) -> int:
        return self.watch.history.version

    def poll(self) -> bool:
        changed = self.watch.poll()
        if not self.facts.state.final:
            self._final_since = None
        elif self._final_since is None:
            self._final_since = time.monotonic()
        return changed

    def head(self, *, busy: bool = False, answer: str = "") -> Head:
        facts = self.facts
        buttons: list[Button] = [
            {
                "verb": str(choice.verb),
                "label": choice.label,
                "describe": choice.describe,
                "enabled": not busy and facts.state in choice.states,
            }
            for choice in CHOICES
        ]
        return {
            "title": self.title or facts.name or facts.id,
            "what": facts.what,
            "value": str(facts.state),
            "state": facts.state_words,
            "tone": str(facts.tone),
            "ended": self.ended,
            "fraction": facts.fraction,
            "progress": facts.progress_words,
            "left": facts.left_words,
            "details": facts.details,
            "why": facts.explanation,
            "answer": answer,
            "buttons": buttons,
        }

    def panels(self) -> list[Panel]:
        return panels_of(self.watch.history)

    def marks(self) -> dict[str, Any]:
        history = self.watch.history
        return {
            "attempts": [{"step": mark.step, "label": mark.label} for mark in history.attempts],
            "checkpoints": list(history.checkpoints),
            "last_step": history.last_step,
        }

    def still(self) -> bytes:
        return still_image(self.watch.history, self.facts)

    def text(self) -> str:
        return job_text(self.facts)

    def closing(self) -> str:
        if self._failure is not None and self.facts.state in (State.FAILED, State.LOST):
            return self._failure()
        return closing_text(self.facts)

    def perform(self, verb: Verb) -> Answer:
        return self.actions.perform(verb, self.facts.state)
