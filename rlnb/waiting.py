"""Waiting for runs to rest, without keeping anything busy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlnb.run.identity import current

if TYPE_CHECKING:
    from rlnb.job import Job

LOOK_EVERY = 0.2  # seconds; a remote run is pulled at most every two seconds whatever this says


def wait_until_rest(*jobs: Job, timeout: float | None = None) -> None:
    """Returns when none of the runs goes on by itself any more.

    Inside the job itself the own run counts as resting: its training has finished when `promote()`
    returned, and its state changes only after the last cell.

    Raises:
        TimeoutError: a run was still going after `timeout` seconds; all go on.
    """
    identity = current()
    waiting: Sequence[Job] = [job for job in jobs if identity is None or job.folder != identity.root]
    deadline = None if timeout is None else time.monotonic() + timeout
    while waiting := [job for job in waiting if not job.at_rest]:
        if deadline is not None and time.monotonic() > deadline:
            names = ", ".join(f"{job.id} ({job.state.value})" for job in waiting[:3])
            raise TimeoutError(
                f"{len(waiting)} of {len(jobs)} runs still going after {timeout:g} s: {names}."
            )
        time.sleep(LOOK_EVERY)
