"""The supervisor of one run: `python -m rlnb.jobs.supervisor RUN_FOLDER --attempt N [--detach]`.

Detached, in a session of its own, adopting whatever its descendants leave behind. It lives until
the run has ended and everything is uploaded, holds next to no memory, and is the only one that
says in what state the run is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from rlnb import __version__
from rlnb.errors import RlnbError, Superseded
from rlnb.jobs.processes import become_subreaper
from rlnb.jobs.supervisor.clock import Signals
from rlnb.jobs.supervisor.mirror import SUPERSEDED
from rlnb.jobs.supervisor.supervision import Supervision
from rlnb.jobs.survivors import end_survivors
from rlnb.run.claims import claim
from rlnb.run.layout import RunLayout
from rlnb.run.record import read_record

#: What the supervisor writes to `--ready-fd` once the attempt is its own.
READY = b"claimed\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a supervisor; returns its exit code: 0, or 3 when a newer attempt owns the run."""
    parser = argparse.ArgumentParser(prog="python -m rlnb.jobs.supervisor", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--attempt", type=int, required=True, help="the attempt to claim")
    parser.add_argument("--detach", action="store_true", help="go on in a session of its own")
    parser.add_argument("--ready-fd", type=int, default=None, help="where to say that the attempt is claimed")
    options = parser.parse_args(argv)
    layout = RunLayout(options.root)
    started_ns = time.time_ns()
    if options.detach:
        detach(layout)
    try:
        become_subreaper()
        record = read_record(layout)
        held = claim(layout, options.attempt, rlnb_version=__version__)
    except (RlnbError, OSError) as error:
        _say_ready(options.ready_fd, f"{type(error).__name__}: {error}\n".encode())
        print(error, file=sys.stderr)
        return SUPERSEDED if isinstance(error, Superseded) else 2
    _say_ready(options.ready_fd, READY)
    ended = end_survivors(layout)
    supervision = Supervision(layout, record, held, Signals(), environ=os.environ)
    try:
        if ended:
            names = ", ".join(f"{role} {pid}" for pid, role in ended.items())
            supervision.voice.tell(
                "survivors_ended", f"Ended what an earlier attempt had left running: {names}."
            )
        supervision.run(started_ns=started_ns)
    except Superseded as error:
        supervision.abandon(str(error))
        print(error, file=sys.stderr)
        return SUPERSEDED
    except BaseException:
        # Worker and kernel end by themselves when this process is gone; an observer then sees
        # that the run is lost and may resume it.
        traceback.print_exc()
        with contextlib.suppress(RlnbError):
            supervision.voice.tell("supervisor_crashed", traceback.format_exc(limit=-3))
        raise
    return 0


def detach(layout: RunLayout) -> None:
    """Goes on in a child with its own session; the calling process exits at once.

    The starter gets no child to wait for, and no signal of its terminal arrives here.
    """
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    os.chdir("/")
    layout.local.mkdir(parents=True, exist_ok=True)
    log = os.open(layout.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(nothing)


def _say_ready(descriptor: int | None, message: bytes) -> None:
    if descriptor is None:
        return
    with contextlib.suppress(BrokenPipeError):  # the starter did not wait
        os.write(descriptor, message)
    os.close(descriptor)
