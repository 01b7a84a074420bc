"""Shows a group of runs: one plot with mean and band, live or as image or text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlnb.errors import UsageError
from rlnb.run.control import Verb
from rlnb.run.layout import RunLayout
from rlnb.run.status import State
from rlnb.view.actions import Answer
from rlnb.view.display import Shown
from rlnb.view.facts import Facts, Tone, duration, number
from rlnb.view.group_figures import Member, group_panel
from rlnb.view.panels import Panel
from rlnb.view.still import panels_image
from rlnb.view.subject import Head
from rlnb.view.text import progress_bar
from rlnb.view.watch import RunWatch


@dataclass(frozen=True)
class GroupMember:
    """A run of a group as it is found on disk; see `Member`."""

    layout: RunLayout
    name: str
    label: str = ""
    refresh: Callable[[], object] | None = None

    @property
    def full_name(self) -> str:
        return f"{self.label} {self.name}".strip()


def show_group(members: Sequence[GroupMember], *, title: str) -> Shown:
    """Makes a group showable, as `rlnb.view.display.show` does a run.

    Raises:
        UsageError: the group is empty.
    """
    if not members:
        raise UsageError(
            f"The group {title!r} has no runs, so there is nothing to show; promote with a grid first."
        )
    return Shown(GroupSubject(members, title=title))


class GroupSubject:
    """Several runs; what a live view shows of them."""

    def __init__(self, members: Sequence[GroupMember], *, title: str) -> None:
        self.title = title
        self._members = list(members)
        self._watches = [RunWatch(member.layout, refresh=member.refresh) for member in members]

    @property
    def key(self) -> str:
        return "\n".join([self.title, *(str(Path(watch.layout.root)) for watch in self._watches)])

    @property
    def members(self) -> list[Member]:
        pairs = zip(self._members, self._watches, strict=True)
        return [Member(member.label, member.name, watch.history) for member, watch in pairs]

    @property
    def _facts(self) -> list[Facts]:
        return [watch.facts for watch in self._watches]

    @property
    def halted(self) -> str:
        still = all(
            facts.state.final or facts.state in (State.PAUSED, State.SUSPENDED) for facts in self._facts
        )
        return self._states() if still else ""

    @property
    def ended(self) -> bool:
        return all(facts.state.final for facts in self._facts)

    @property
    def version(self) -> int:
        return sum(watch.history.version for watch in self._watches)

    def poll(self) -> bool:
        changed = [watch.poll() for watch in self._watches]  # all of them, not up to the first that changed
        return any(changed)

    def head(self, *, busy: bool = False, answer: str = "") -> Head:
        whole = self._as_facts()
        return {
            "title": self.title,
            "what": whole.what,
            "value": str(whole.state),
            "state": self._states(),
            "tone": str(self._tone()),
            "ended": self.ended,
            "fraction": whole.fraction,
            "progress": whole.progress_words,
            "left": self._left(),
            "details": self._best(),
            "why": "",
            "answer": answer,
            "buttons": [],
        }

    def panels(self) -> list[Panel]:
        return [group_panel(self.members)]

    def marks(self) -> dict[str, Any]:
        last = max(watch.history.last_step for watch in self._watches)
        return {"attempts": [], "checkpoints": [], "last_step": last}

    def still(self) -> bytes:
        return panels_image(self.panels(), self._as_facts(), state=self._states(), tone=self._tone())

    def text(self) -> str:
        whole = self._as_facts()
        lines = [f"{self.title}: {self._states()}"]
        width = max(len(member.full_name) for member in self._members)
        for member, facts in zip(self._members, self._facts, strict=True):
            bar = progress_bar(facts.fraction or 0.0, 22)
            value = "" if facts.return_mean is None else f"  return {number(facts.return_mean)}"
            lines.append(f"{member.full_name:<{width}} {bar} {facts.state_words}{value}")
        left = self._left()
        lines.append(" · ".join(part for part in (whole.progress_words, left, *self._best()) if part))
        return "\n".join(lines)

    def closing(self) -> str:
        return "\n".join(f"{m.full_name}: {m.layout.root}" for m in self._members)

    def perform(self, verb: Verb) -> Answer:
        return Answer(False, f"A group cannot {verb}; use its runs' own buttons.")

    # -- sums over the members ------------------------------------------------------------------
    def _as_facts(self) -> Facts:
        """The group as if it were one run: steps are sums."""
        each = self._facts
        states = [facts.state for facts in each]
        running = next((state for state in states if state.living), None)
        return Facts(
            id=self.title,
            what=next((facts.what for facts in each if facts.what), ""),
            state=running or states[0],
            step=sum(facts.step for facts in each),
            total=sum(facts.total for facts in each),
        )

    def _states(self) -> str:
        counts = Counter(str(facts.state) for facts in self._facts)
        return ", ".join(f"{count} {state}" for state, count in counts.items())

    def _tone(self) -> Tone:
        tones = {facts.tone for facts in self._facts}
        return next(tone for tone in (Tone.BAD, Tone.BUSY, Tone.WAITING, Tone.GOOD) if tone in tones)

    def _left(self) -> str:
        left = [facts.seconds_left for facts in self._facts]
        known = [seconds for seconds in left if seconds is not None]
        return f"{duration(max(known))} left for the slowest" if known else ""

    def _best(self) -> list[str]:
        pairs = [(f.return_mean, m.full_name) for f, m in zip(self._facts, self._members, strict=True)]
        known = [(value, name) for value, name in pairs if value is not None and np.isfinite(value)]
        return [f"best return {number(max(known)[0])} ({max(known)[1]})"] if known else []
