"""The workbench: the one model behind a lab's tabs.

Widgets of several tabs, cells and a background thread meet here. ipykernel runs a slider's callback in a
thread of its own, also while a cell is busy, so everything happens under one lock, and listeners are
called under it.

What is edited is a value (`Design`), so that undo is going back to another value. An edit that does not
work (an unknown name, a Python term that fails) raises and leaves everything as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlnb.design.checks.design import check_design
from rlnb.design.checks.finding import Finding
from rlnb.design.checks.reward.payments import WEAK_POLICIES
from rlnb.design.design import Design
from rlnb.design.preview.preview import RewardPreview
from rlnb.design.reward import RewardSpec, Term
from rlnb.design.state import StatePlan, StateSpec
from rlnb.design.term import TermFunction, marked_terms
from rlnb.design.transitions import Transitions
from rlnb.envs.make import EnvFactory
from rlnb.errors import DesignError, UsageError
from rlnb.run.lab_notes import LabNotes
from rlnb.run.recordings import Recorded
from rlnb.view.lab.listeners import Event, Listeners, changes
from rlnb.view.lab.undo import UndoStack


@dataclass(frozen=True)
class Subject:
    """What a lab works on.

    Attributes:
        env: makes the environment.
        names: names of the observation's components; () for images.
        functions: Python terms that the lab was given, beside those of cells.
    """

    env: EnvFactory
    names: tuple[str, ...]
    functions: Mapping[str, TermFunction]


class Workbench:
    """A design and the episodes it is looked at with.

    Args:
        subject: the environment.
        recorded: episodes; at least one.
        design: to begin with.
        notes: colours, preferences, good policies.

    Attributes:
        listeners: told of every change, under the lock.
        lock: held by whoever reads several things that belong together.
        episode: number of the one that is looked at, from 0.
        findings: of the last settling, the worst first.
        file_words: what is to be said about the design file, e.g. "saved 12:03:10".
    """

    def __init__(self, subject: Subject, recorded: Recorded, design: Design, notes: LabNotes) -> None:
        self.lock = threading.RLock()
        self.subject = subject
        self.episode = 0
        self.notes = notes
        self.file_words = ""
        self.findings: list[Finding] = []
        self.listeners = Listeners()
        self._cache: dict[Any, Any] = {}
        self._preview: RewardPreview | None = None
        self._undo = UndoStack(design.bind(self.functions))
        self._take(recorded)

    # --- what there is

    @property
    def design(self) -> Design:
        """The design as it stands: always one that works on the episodes."""
        return self._undo.value

    @property
    def reward(self) -> RewardSpec:
        return self.design.reward

    @property
    def state(self) -> StateSpec:
        return self.design.state

    @property
    def preview(self) -> RewardPreview:
        """What the reward would have paid on the episodes."""
        with self.lock:
            if self._preview is None:
                self._preview = RewardPreview(self.batch, self.reward)
            return self._preview

    @property
    def functions(self) -> dict[str, TermFunction]:
        """Python terms by name: those of cells, and those that the lab was given."""
        return {**marked_terms(), **self.subject.functions}

    @property
    def space(self) -> Any:
        """The environment's observation space."""
        return self.subject.env.spaces().observation

    @property
    def good(self) -> set[str]:
        """Labels of the policies that show what the task is."""
        labels = dict.fromkeys(self.batch.labels.values())
        if self.notes.good:
            return {label for label in labels if label in self.notes.good}
        return {label for label in labels if label not in WEAK_POLICIES}

    @property
    def undoes(self) -> str:
        return self._undo.undoes

    @property
    def redoes(self) -> str:
        return self._undo.redoes

    def episode_rows(self, episode: int) -> slice:
        """Returns the rows of the batch that belong to an episode."""
        return slice(int(self.batch.starts[episode]), int(self.batch.ends[episode]) + 1)

    def label_of(self, episode: int) -> str:
        """Returns the label of the policy that made an episode."""
        return self.batch.episode_labels[episode]

    # --- edits

    def edit(
        self,
        *,
        reward: RewardSpec | None = None,
        state: StateSpec | None = None,
        what: str,
        merge: str | None = None,
    ) -> None:
        """Changes the design.

        Args:
            reward: the new reward, if it changes.
            state: the new state, if it changes.
            what: in words, for undo.
            merge: edits with the same word in quick succession are one step of undo.

        Raises:
            DesignError: it does not work on the episodes; everything is as it was.
        """
        with self.lock:
            design = Design(
                reward=self.reward if reward is None else reward.bind(self.functions),
                state=self.state if state is None else state,
            )
            if design == self.design and _functions(design) == _functions(self.design):
                return  # a front end that answers with the value it was given, say
            self._show(design, self.design)
            self._undo.push(design, what, merge=merge)
            self.listeners.tell(*changes(reward is not None, state is not None))

    def undo(self) -> None:
        """Takes the last edit back.

        Raises:
            DesignError: the former design does not work on the episodes that there are now; nothing changes.
        """
        self._go(self._undo.undo, back=self._undo.redo)

    def redo(self) -> None:
        """Does again what was taken back; as `undo`."""
        self._go(self._undo.redo, back=self._undo.undo)

    def rebind(self) -> None:
        """Takes in Python terms that cells have defined anew since.

        Raises:
            DesignError: such a term fails on the episodes; its former function stays.
        """
        with self.lock:
            functions = self.functions
            design = self.design.bind(functions)
            if _functions(design) == _functions(self.design):
                return
            self._show(design, self.design)
            self._undo.replace(lambda value: value.bind(functions))
            self.listeners.tell(Event.REWARD)

    def set_episodes(self, recorded: Recorded) -> None:
        """Takes other episodes; the one that is looked at stays, if it is still there.

        Raises:
            DesignError: the design does not work on them.
        """
        with self.lock:
            key: str = self.keys[self.episode]
            self._take(recorded)
            self.episode = self.keys.index(key) if key in self.keys else 0
            self.listeners.tell(Event.EPISODES)

    def note(self, **changes: Any) -> None:
        """Changes notes: `colours`, `preferences`, `good`, `buffer_size`, `axes`."""
        with self.lock:
            self.notes = replace(self.notes, **changes)
            self.listeners.tell(Event.NOTES)

    def select(self, episode: int) -> None:
        """Looks at another episode, counted from 0.

        Raises:
            UsageError: there is no such episode.
        """
        with self.lock:
            if not 0 <= episode < len(self.keys):
                raise UsageError(
                    f"episode={episode} is not there; the lab has the episodes 0 to {len(self.keys) - 1}"
                )
            self.episode = episode
            self.listeners.tell(Event.SELECTION)

    def say(self, words: str) -> None:
        """Says something about the design file."""
        with self.lock:
            self.file_words = words
            self.listeners.tell(Event.FILE)

    def settle(self) -> list[Finding]:
        """Checks the design as it stands; in whatever thread, and without holding up edits."""
        import scipy.stats  # noqa: F401 - half a second at first, and rankings need it under the lock

        with self.lock:
            batch, design, plan, good, cache = self.batch, self.design, self.plan, self.good, self._cache
            result = self.preview.result
        found = check_design(
            batch, design.reward, plan, result=result, good=good, cache=cache,
            action_space=self.subject.env.spaces().action,
        )  # fmt: skip
        with self.lock:
            if self.batch is batch:  # else they point at episodes that may be gone
                self.findings = found
                self.listeners.tell(Event.SETTLED)
        return found

    def rest(self) -> None:
        """Lets everybody and everything go that can be made again: nobody looks at it any more."""
        with self.lock:
            self.listeners.clear()
            self._preview, self._cache, self.findings = None, {}, []

    # --- inside

    def _take(self, recorded: Recorded) -> None:
        if recorded.batch is None:
            raise UsageError("A lab needs at least one episode; record some.")
        preview = RewardPreview(recorded.batch, self.reward)
        self.plan: StatePlan = self.state.plan(self.space, self.subject.names)
        self.recorded = recorded
        self.batch: Transitions = recorded.batch
        self.keys: tuple[str, ...] = recorded.keys
        self._preview = preview
        self.episode = 0
        self._cache = {}  # a check that is under way fills the former one

    def _show(self, design: Design, before: Design) -> None:
        """Makes preview and plan of a design; both or neither."""
        plan = self.plan
        if design.state != before.state:
            plan = design.state.plan(self.space, self.subject.names)
        self.preview.update(design.reward)
        self.plan = plan

    def _go(self, move: Callable[[], Design], back: Callable[[], Design]) -> None:
        with self.lock:
            before = self.design
            after = move()
            try:
                self._show(after, before)
            except DesignError:
                back()
                raise
            self.listeners.tell(*changes(before.reward != after.reward, before.state != after.state))


def _functions(design: Design) -> list[TermFunction | None]:
    """Returns the Python terms of a design, which do not count when designs are compared."""
    return [part.function for part in design.reward.terms if isinstance(part, Term)]
