"""Where runs are executed: the seam, three verbs wide."""

from __future__ import annotations

from typing import Protocol

from rlnb.run.layout import RunLayout
from rlnb.run.status import Observation


class Executor(Protocol):
    """Starts runs somewhere and follows them; the run folder carries everything else."""

    def submit(self, layout: RunLayout, *, takeover: bool = False) -> int:
        """Starts the next attempt of a run and returns its number once it is claimed.

        Args:
            layout: a run folder whose run.yaml and bundle are complete.
            takeover: start although another machine may still be running it.

        Raises:
            RunError: the run is running already, or could not be started.
        """
        ...

    def poll(self, layout: RunLayout) -> Observation:
        """Returns what can be said of the run now."""
        ...

    def stop(self, layout: RunLayout) -> str:
        """Asks the run to stop at its next safe point; returns the request's id."""
        ...
