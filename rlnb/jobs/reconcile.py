"""After a crash or a reboot: which runs of this machine were lost, and what can be put right.

A lost run is one whose supervisor is known to be dead while it should live. What it left running
is ended; resuming it is the caller's to decide. An ended run whose supervisor died before
everything was uploaded gets its mirror back.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rlnb import settings
from rlnb.errors import RunFormatError
from rlnb.jobs.survivors import end_survivors, survivors
from rlnb.jobs.worker.env import environment_outside_jobs
from rlnb.run.claims import latest_attempt
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.status import State, observe


@dataclass(frozen=True)
class Reconciled:
    """One run that was put right.

    Attributes:
        layout: the run.
        message: what was found and done, one sentence.
        ended: pid → role of what it had left running.
        readable: False for a run of a newer format, which was left alone.
    """

    layout: RunLayout
    message: str
    ended: dict[int, str] = field(default_factory=dict)
    readable: bool = True


def reconcile(folder: Path | None = None) -> list[Reconciled]:
    """Looks through the runs of this machine and puts right what a crash has left.

    Args:
        folder: the folder of working copies; rlnb's own by default.

    Returns:
        What was done; empty when all is well.
    """
    base = folder or settings.runs_dir()
    found = []
    for root in sorted(base.iterdir()) if base.is_dir() else []:
        layout = RunLayout(root)
        if not layout.run_yaml.is_file() or latest_attempt(layout) == 0:
            continue
        try:
            state = observe(layout).state
        except RunFormatError as error:
            found.append(Reconciled(layout, f"{layout.id} is left alone: {error}", readable=False))
            continue
        if state is State.LOST:
            ended = end_survivors(layout, mirror=False)
            what = f"; ended {len(ended)} processes that it had left" if ended else ""
            found.append(Reconciled(layout, f"{layout.id} was lost{what}; it can be resumed.", ended))
        elif not state.living and _is_unsent(layout) and not survivors(layout):
            _send_the_rest(layout)
            found.append(
                Reconciled(
                    layout, f"{layout.id} is {state}, but not all of it was uploaded; that goes on now."
                )
            )
    return found


def _is_unsent(layout: RunLayout) -> bool:
    return int((read_json(layout.mirror_json) or {}).get("pending_bytes") or 0) > 0


def _send_the_rest(layout: RunLayout) -> None:
    """Starts a mirror by itself; it exits when everything is sent."""
    with open(layout.local / "mirror.log", "ab") as log:
        # Started through a shell that exits at once, so that this process has no child to wait for.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" & :', "mirror", sys.executable, "-P", "-m", "rlnb.jobs.mirror",
             os.fspath(layout.root), "--attempt", str(latest_attempt(layout))],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment_outside_jobs(), cwd="/", check=True, start_new_session=True,
        )  # fmt: skip
