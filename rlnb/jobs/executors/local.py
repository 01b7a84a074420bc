"""Runs on this machine, under a detached supervisor."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

from rlnb import settings
from rlnb.errors import RunError, Superseded
from rlnb.jobs.supervisor.process import READY
from rlnb.jobs.worker.env import environment_outside_jobs
from rlnb.run import control
from rlnb.run.claims import attempt_owner, latest_attempt
from rlnb.run.control import Verb
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout
from rlnb.run.status import Observation, State, observe

_STARTING = 60.0


class LocalExecutor:
    """Starts supervisors on this machine. It keeps nothing: any process may follow any run."""

    def submit(self, layout: RunLayout, *, takeover: bool = False) -> int:
        """Starts the next attempt; see `Executor.submit`."""
        settings.check()  # the supervisor reads them, too, where nobody would see the error
        latest = latest_attempt(layout)
        refuse_if_running(layout, takeover=takeover)
        number = latest + 1
        layout.local.mkdir(parents=True, exist_ok=True)
        reading, writing = os.pipe()
        try:
            starter = subprocess.Popen(
                [sys.executable, "-P", "-m", "rlnb.jobs.supervisor", os.fspath(layout.root),
                 "--attempt", str(number), "--detach", "--ready-fd", str(writing)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env=environment_outside_jobs(), pass_fds=(writing,), start_new_session=True,
            )  # fmt: skip
            os.close(writing)
            answer = _read_all(reading, timeout=_STARTING)
            _, errors = starter.communicate(timeout=_STARTING)
        finally:
            os.close(reading)
        if answer == READY:
            return number
        if answer.startswith(b"Superseded"):
            raise Superseded(f"Attempt {number} of {layout.id} was just started by somebody else.")
        detail = (answer or errors).decode(errors="replace").strip() or "it said nothing"
        raise RunError(
            f"The supervisor of {layout.id} did not start ({detail}); see {layout.supervisor_log}."
        )

    def poll(self, layout: RunLayout) -> Observation:
        """Looks once; see `Executor.poll`."""
        return observe(layout)

    def stop(self, layout: RunLayout) -> str:
        """Asks for a stop; see `Executor.stop`."""
        return control.request(layout, Verb.STOP)


def refuse_if_running(layout: RunLayout, *, takeover: bool) -> None:
    """Raises when a supervisor of the newest attempt lives or may live.

    A supervisor that has said its last word about a run (suspended, or ended) and only uploads
    does not count: the next attempt replaces it.

    Raises:
        RunError: naming who runs it and what to do.
    """
    seen = observe(layout)
    newest = latest_attempt(layout)
    if newest == 0 or takeover:
        return
    if seen.status is not None and seen.status.attempt == newest and not seen.state.living:
        if seen.state is State.COMPLETED:
            raise RunError(f"{layout.id} is completed; fork it, or promote with new=True, to train again.")
        return
    owner = ProcessIdentity.from_dict(attempt_owner(layout, newest) or {})
    if owner.alive:
        raise RunError(
            f"{layout.id} is running: attempt {newest} is supervised by process {owner.pid} of this machine."
        )
    if not owner.here:
        raise RunError(
            f"{layout.id} belongs to {owner.host}, which cannot be asked from here whether attempt {newest} still "
            "runs; resume it there, or pass takeover=True when that machine is gone."
        )


def _read_all(descriptor: int, *, timeout: float) -> bytes:
    """Reads a pipe to its end, or what has come after `timeout` seconds."""
    data, deadline = b"", time.monotonic() + timeout
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(descriptor, 4096)
        if not piece:
            break
        data += piece
    return data
