"""The episodes of a lab: those on disk beside the notebook, and a demonstration that the notebook brings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rlnb.design.transitions import Transitions
from rlnb.envs.frames import FrameBudget
from rlnb.envs.progress import Progress
from rlnb.envs.rate import steps_per_second
from rlnb.envs.rollouts import Rollouts, record_rollouts
from rlnb.errors import UsageError
from rlnb.run.recording_entry import Entry
from rlnb.run.recordings import EpisodeStore, Recorded
from rlnb.view.lab.bench import Subject
from rlnb.view.lab.episodes.episode_data import Pictures

#: the entry under which a notebook's own demonstration stands in episode keys
DEMO = "demo"
_UNKEPT = "unkept"  # those of recordings that are kept in memory only


@dataclass(frozen=True)
class PolicyChoice:
    """Somebody who can act.

    Attributes:
        label: the label its episodes get.
        words: how the menu calls it.
        load: returns the policy, as `rlnb.record` takes it; only then is torch imported.
    """

    label: str
    words: str
    load: Callable[[], Any]


BUILT_IN = (
    PolicyChoice("random", "random: any action, every step", lambda: "random"),
    PolicyChoice("sticky", "sticky: a random action, held for a while", lambda: "sticky"),
    PolicyChoice("idle", "idle: does nothing", lambda: "idle"),
)


class Episodes:
    """What a lab looks at.

    Args:
        subject: the environment.
        store: the episodes beside the notebook.
        demo: the notebook's own; None without one.
        signals: functions of the environment, by name.
        writes: whether new recordings are kept on disk; in a job they are not.
        offered: further policies, asked for when the menu opens: the user's own and trained ones.

    Attributes:
        demo: the notebook's own.
        trouble: sentences about recordings that could not be read.
    """

    def __init__(
        self,
        subject: Subject,
        store: EpisodeStore,
        *,
        demo: Transitions | None = None,
        signals: Any = None,
        writes: bool = True,
        offered: Callable[[], list[PolicyChoice]] = list,
    ) -> None:
        self.subject, self.store, self.writes = subject, store, writes
        self.demo, self._signals, self._offered = demo, signals, offered
        self._ended = threading.Event()
        self._reading = threading.Lock()  # pictures are asked for in several threads
        self._unkept: list[Rollouts] = []  # recorded where nothing may be written
        self.trouble: list[str] = []

    def choices(self) -> list[PolicyChoice]:
        """Returns everybody who can act here."""
        return [*BUILT_IN, *self._offered()]

    def load(self, *, without: str = "") -> Recorded | None:
        """Returns all episodes, the notebook's own first; None when there are none.

        Args:
            without: id of a recording that is left out.

        Raises:
            UsageError: the recordings do not fit together, or are of another environment.
        """
        stored = self.store.load(without=without)
        self.trouble = list(self.store.problems)
        batches, keys = list[Transitions](), list[str]()
        for name, batch in (
            (DEMO, self.demo),
            *((f"{_UNKEPT}{i}", one.batch) for i, one in enumerate(self._unkept)),
        ):
            if batch is not None:
                batches.append(batch)
                keys += [f"{name}:{place}" for place in range(len(batch.starts))]
        if stored.batch is not None:
            batches.append(stored.batch)
            keys += stored.keys
        if not batches:
            return None
        return Recorded(batches[0] if len(batches) == 1 else Transitions.concat(batches), tuple(keys))

    def loaded(self) -> Recorded:
        """Returns all episodes, after some were recorded.

        Raises:
            UsageError: as `load`, or there are none.
        """
        found = self.load()
        if found is None:
            raise UsageError(" ".join(["There are no episodes.", *self.trouble]))
        return found

    def has(self, label: str, *, episodes: int, seed: int) -> bool:
        """Says whether just these episodes have been recorded already."""
        wanted = {"policy": label, "episodes": episodes, "seed": seed}
        told = [entry.about for entry in self.entries()] + [found.about for found in self._unkept]
        return any(wanted.items() <= about.items() for about in told)

    def entries(self) -> list[Entry]:
        """Returns the recordings on disk."""
        return self.store.entries()

    def record(
        self,
        choice: PolicyChoice,
        *,
        episodes: int,
        seed: int,
        frames: FrameBudget | None = None,
        progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Rollouts:
        """Records more episodes, and keeps them.

        Args:
            choice: who acts.
            episodes: how many.
            seed: of the first one.
            frames: how many images to keep; None for none.
            progress: told how far it is.
            should_stop: asked now and then; the whole episodes so far are kept.

        Returns:
            What was recorded; its batch is None if it was stopped before the first episode had ended.

        Raises:
            UsageError: (its kinds) the environment or the policy does not work.
        """
        found = record_rollouts(
            self.subject.env,
            choice.load(),
            episodes=episodes,
            seed=seed,
            names=list(self.subject.names) or None,
            signals=self._signals,
            label=choice.label,
            frames=frames,
            progress=progress,
            should_stop=lambda: self._ended.is_set() or (should_stop is not None and should_stop()),
        )
        if found.batch is not None and self.writes:
            self.store.add(found.batch, label=choice.label, about=found.about, frames=found.frames)
        elif found.batch is not None:
            self._unkept.append(found)
        return found

    @property
    def ended(self) -> bool:
        """Whether another lab has taken this one's place."""
        return self._ended.is_set()

    def end(self) -> None:
        """Stops what is being recorded: nobody looks at these episodes any more. Whole episodes are kept."""
        self._ended.set()

    def remove(self, entry: str) -> None:
        """Removes a recording from the disk.

        Raises:
            UsageError: it is the last there is.
        """
        if self.demo is None and not self._unkept and len(self.entries()) < 2:
            raise UsageError("These are the last episodes; record others before you remove them.")
        with self._reading:
            self.store.remove(entry)

    def rename(self, entry: str, label: str) -> None:
        """Gives a recording and its episodes another policy label.

        Raises:
            UsageError: there is no such recording, or the label is no text.
        """
        if not label.strip():
            raise UsageError("A recording needs a label, such as 'expert'.")
        with self._reading:
            self.store.rename(entry, label.strip())

    def pictures(self, key: str) -> Pictures:
        """Returns what there is to see of an episode."""
        entry = key.partition(":")[0]
        if entry == DEMO or entry.startswith(_UNKEPT):
            return Pictures(said="the notebook's own episodes have no pictures", rate=self._rate)
        with self._reading:
            times = self.store.frame_times(key)
        if times:
            return Pictures(times, lambda t: self._frame(key, t), rate=self._rate)
        said = self.store.unreadable.get(entry) or next(
            (one.frames_said for one in self.entries() if one.id == entry), ""
        )
        return Pictures(said=said or Pictures.said, rate=self._rate)

    def frame(self, key: str, t: int) -> bytes | None:
        """Returns the image that shows step `t` of an episode, or None where none was kept."""
        entry = key.partition(":")[0]
        if entry == DEMO or entry.startswith(_UNKEPT):
            return None
        with self._reading:
            return self.store.frame(key, t)

    def _frame(self, key: str, t: int) -> bytes:
        found = self.frame(key, t)
        if found is None:
            raise ValueError("its recording has been removed")
        return found

    @cached_property
    def _rate(self) -> float:
        return steps_per_second(self.subject.env)
