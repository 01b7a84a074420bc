"""Seam: what runs a training loop. SB3 is the first; a hand-written loop or another library follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlnb.train.snapshot import Restorable, Snapshot


@dataclass(frozen=True)
class EpisodeEnd:
    """One finished episode.

    Attributes:
        step: environment steps done, over all environments.
        env: index of the environment.
        paid: return that the agent was paid (designed).
        own: return of the environment's own reward.
        length: steps.
        success: `info["is_success"]`, or None.
        terms: weighted sum per reward term.
        values: plain sum per reward term.
    """

    step: int
    env: int
    paid: float
    own: float
    length: int
    success: float | None = None
    terms: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)


AtSafePoint = Callable[[], bool]
"""Called at each safe point; returns whether training goes on."""

AtEpisode = Callable[[EpisodeEnd], None]


AtValues = Callable[[int, Mapping[str, Any]], None]
"""Called with the step and the trainer's own values (losses and the like), by name, whenever it logs.

When that is depends on steps and episodes only, never on the clock: a resumed run logs what an uninterrupted one
does, and before the safe point of the same step.
"""


class Trainer(Protocol):
    """Runs training from safe point to safe point.

    A safe point is where everything the future depends on can be captured: for SB3 `on_rollout_start`.
    """

    @property
    def step(self) -> int:
        """Environment steps done."""

    def setup(self) -> None:
        """Seeds everything and builds environments and model."""

    def step_until_safe(self, at_safe_point: AtSafePoint, at_episode: AtEpisode, at_values: AtValues) -> bool:
        """Trains, calling `at_safe_point` at each safe point.

        Returns:
            True when all steps are done, False when `at_safe_point` ended it.
        """

    def tell_rest(self) -> None:
        """Calls `at_values` with what was logged since it was last called, at the end of training."""

    def snapshot(self, extra: dict[str, Any]) -> Snapshot:
        """Captures everything; only inside `at_safe_point`, or after training has ended."""

    def restore(self, saved: Restorable) -> None:
        """Has a snapshot put back at the first safe point of the next `step_until_safe`."""
