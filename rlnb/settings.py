"""Where rlnb keeps things on this machine, and the clocks it runs by.

Everything is read when asked for, so that a test or a site can set the environment variable
after import.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from rlnb.errors import UsageError

#: Variables that override experiments read from a file: RLNB_<SECTION>__<KEY>.
OVERRIDE = re.compile(r"RLNB_([A-Z]+)__([A-Z0-9_]+)")


def home() -> Path:
    """Returns rlnb's folder of this user: `$RLNB_HOME`, else the XDG data folder."""
    if explicit := os.environ.get("RLNB_HOME"):
        return Path(explicit).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "rlnb"


def runs_dir() -> Path:
    """Returns the folder of the runs' working copies on this machine."""
    return home() / "runs"


def cache_dir() -> Path:
    """Returns the folder where runs of other machines are pulled to for reading."""
    return home() / "remote"


def index_path() -> Path:
    """Returns the file of the local index of runs."""
    return home() / "index.sqlite"


def sockets_dir() -> Path:
    """Returns a private folder with a short path, because a socket's path ends at 107 bytes."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and len(runtime) < 40 and os.access(runtime, os.W_OK) else Path("/tmp")
    folder = (base if base.is_dir() else Path(tempfile.gettempdir())) / f"rlnb-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UsageError(f"{folder} belongs to another user; set XDG_RUNTIME_DIR to a folder of your own.")
    return folder


def _number(name: str, default: float) -> float:
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise UsageError(f"{name}={text!r} is not a number of 0 or more; correct or unset the variable.")
    return value


def check() -> None:
    """Reads every number once, so that a wrong one is told before anything starts.

    Raises:
        UsageError: a variable is not a number of 0 or more.
    """
    for read in (heartbeat, grace, hold, backoff, hang, spool_limit, max_running, least_free):
        read()


def heartbeat() -> float:
    """Seconds between two heartbeats of a supervisor."""
    return _number("RLNB_HEARTBEAT", 2.0)


def grace() -> float:
    """Seconds a stop or suspend may wait for training's next safe point."""
    return _number("RLNB_GRACE", 120.0)


def hold() -> float:
    """Seconds a job stays paused in place before it is suspended."""
    return _number("RLNB_HOLD", 1800.0)


def backoff() -> float:
    """Seconds before the first retry; each further retry doubles it, up to a minute."""
    return _number("RLNB_BACKOFF", 2.0)


def hang() -> float:
    """Seconds without a training step after which a training job counts as hung."""
    return _number("RLNB_HANG", 1800.0)


def spool_limit() -> int:
    """Bytes that may wait for an unreachable store before superseded checkpoints are dropped."""
    return int(_number("RLNB_SPOOL_LIMIT", 20e9))


def max_running() -> int:
    """Jobs of this user that may run at once on this machine; 0 means no limit."""
    return int(_number("RLNB_MAX_RUNNING", 0))


def least_free() -> float:
    """Free bytes on the run folders' disk below which training is paused."""
    return _number("RLNB_LEAST_FREE", 200e6)
