"""The episodes of a lab: those on disk beside the notebook, and a demonstration that the notebook brings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlnb.design.transitions import Transitions
from rlnb.envs.frames import FrameBudget
from rlnb.envs.progress import Progress
from rlnb.envs.rollouts import record_rollouts
from rlnb.errors import UsageError
from rlnb.run.recording_entry import Entry
from rlnb.run.recordings import EpisodeStore, Recorded
from rlnb.view.lab.bench import Subject

#: the entry under which a notebook's own demonstration stands in episode keys
DEMO = "demo"


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
        self._demo, self._signals, self._offered = demo, signals, offered
        self._unkept: list[Transitions] = []  # recorded where nothing may be written
        self.trouble: list[str] = []

    def choices(self) -> list[PolicyChoice]:
        """Returns everybody who can act here."""
        return [*BUILT_IN, *self._offered()]

    def load(self) -> Recorded | None:
        """Returns all episodes, the notebook's own first; None when there are none.

        Raises:
            UsageError: the recordings do not fit together, or are of another environment.
        """
        stored = self.store.load()
        self.trouble = list(self.store.problems)
        batches, keys = list[Transitions](), list[str]()
        for name, batch in ((DEMO, self._demo), *((f"unkept{i}", one) for i, one in enumerate(self._unkept))):
            if batch is not None:
                batches.append(batch)
                keys += [f"{name}:{place}" for place in range(len(batch.starts))]
        if stored.batch is not None:
            batches.append(stored.batch)
            keys += stored.keys
        if not batches:
            return None
        return Recorded(batches[0] if len(batches) == 1 else Transitions.concat(batches), tuple(keys))

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
    ) -> int:
        """Records more episodes.

        Args:
            choice: who acts.
            episodes: how many.
            seed: of the first one.
            frames: how many images to keep; None for none.
            progress: told how far it is.
            should_stop: asked now and then; the whole episodes so far are kept.

        Returns:
            How many episodes were recorded.

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
            should_stop=should_stop,
        )
        if found.batch is None:
            return 0
        if self.writes:
            self.store.add(found.batch, label=choice.label, about=found.about, frames=found.frames)
        else:
            self._unkept.append(found.batch)
        return len(found.batch.starts)

    def remove(self, entry: str) -> None:
        """Removes a recording from the disk.

        Raises:
            UsageError: it is the last there is.
        """
        if self._demo is None and len(self.entries()) < 2:
            raise UsageError("These are the last episodes; record others before you remove them.")
        self.store.remove(entry)

    def frame(self, key: str, t: int) -> bytes | None:
        """Returns the image that shows step `t` of an episode, or None where none was kept."""
        entry = key.partition(":")[0]
        return None if entry == DEMO or entry.startswith("unkept") else self.store.frame(key, t)
