"""How far a recording is, for a progress bar, and whether somebody wants it to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PROGRESS_SECONDS: Final = 0.2
"""How often a long episode reports."""


@dataclass(frozen=True)
class Progress:
    """How far a recording is.

    Attributes:
        episode: the episode that runs, or has just ended, from 1.
        episodes: how many were asked for.
        step: steps of this episode.
        return_env: its return so far, in the environment's own reward.
        ended: whether it has ended.
        steps: steps of all episodes.
        seconds: since the recording began.
    """

    episode: int
    episodes: int
    step: int
    return_env: float
    ended: bool
    steps: int
    seconds: float


class Watch:
    """Reports how far a recording is, and asks whether it is to go on."""

    def __init__(
        self,
        episodes: int,
        start: float,
        progress: Callable[[Progress], None] | None,
        should_stop: Callable[[], bool],
    ) -> None:
        self.stopped = False
        self._episodes, self._start = episodes, start
        self._progress, self._should_stop = progress, should_stop
        self._told = start
        self._episode = self._step = self._steps = 0
        self._return = 0.0

    def begin(self, episode: int) -> None:
        """Says that an episode (from 1) begins."""
        self._episode, self._step, self._return = episode, 0, 0.0

    def asks_to_stop(self) -> bool:
        """Whether the recording is to end now."""
        self.stopped = self.stopped or self._should_stop()
        return self.stopped

    def stepped(self, reward: float, *, ended: bool) -> None:
        """Takes in a step, and reports if it is time to."""
        self._step += 1
        self._steps += 1
        self._return += reward
        now = time.monotonic()
        if self._progress is None or not (ended or now - self._told >= PROGRESS_SECONDS):
            return
        self._told = now
        self._progress(
            Progress(
                self._episode, self._episodes, self._step, self._return, ended, self._steps, now - self._start
            )
        )
