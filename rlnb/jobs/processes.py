"""Processes of this machine: who descends from whom, and how to end them for certain.

Linux only (`/proc`, `prctl`, pidfds), as are the jobs themselves.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rlnb.run.host import ProcessIdentity, process_start

#: Inherited by everything that a worker starts, so that what escaped its parents can be found.
#: It names a run folder and nothing else; it gives nobody the run's identity.
MARK = "RLNB_RUN_MARK"

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Makes orphaned descendants of this process its own children, so that none gets lost."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def parents() -> dict[int, int]:
    """Returns pid → parent's pid of all processes that are not zombies."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        state, parent = stat[stat.rindex(b")") + 2 :].split()[:2]
        if state not in (b"Z", b"X"):
            table[int(name)] = int(parent)
    return table


def descendants(pid: int, *, spare: Iterable[int] = ()) -> set[int]:
    """Returns all living descendants of a process.

    Args:
        pid: the root; not part of the result.
        spare: processes to leave out together with their own descendants.
    """
    table, spared = parents(), set(spare)
    children: dict[int, list[int]] = {}
    for child, parent in table.items():
        children.setdefault(parent, []).append(child)
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found and child not in spared:
                found.add(child)
                todo.append(child)
    return found


def marked(folder: Path) -> set[int]:
    """Returns the living processes that were started by a worker of this run folder."""
    needle = f"{MARK}={folder}".encode()
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue  # it ended, or it is another user's
        if needle in environment.split(b"\0") and process_start(int(name)) is not None:
            found.add(int(name))
    return found


def ends_by_sigterm(pid: int) -> bool:
    """Says whether SIGTERM can end a process: it lives, is no zombie, and does not ignore the signal."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    about = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    ignored = int(about["SigIgn"], 16) >> (signal.SIGTERM - 1) & 1
    return about["State"][0] not in "ZX" and not ignored


def kill_exactly(who: ProcessIdentity, signum: int = signal.SIGKILL) -> bool:
    """Signals one process, never another one that got its pid meanwhile.

    Returns:
        Whether that very process was alive and was signalled.
    """
    try:
        handle = os.pidfd_open(who.pid)
    except ProcessLookupError:
        return False
    try:
        # Looked at after the open: from here on the handle means this process and no other.
        if not who.alive:
            return False
        signal.pidfd_send_signal(handle, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def end_all(find: Callable[[], set[int]], *, timeout: float = 10.0) -> set[int]:
    """Kills what `find` returns until it returns nothing; a dying process may still have forked.

    Nothing is reaped: a zombie counts as gone, and its exit code belongs to its parent.

    Returns:
        The pids that were killed.

    Raises:
        TimeoutError: some could not be killed in `timeout` seconds (stuck in the operating system).
    """
    killed: set[int] = set()
    deadline = time.monotonic() + timeout
    while found := find():
        for pid in found:
            if kill_exactly(ProcessIdentity.of(pid)):
                killed.add(pid)
        if time.monotonic() > deadline:
            raise TimeoutError(f"The processes {sorted(found)} do not die from SIGKILL.")
        time.sleep(0.005)
    return killed


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of a process, 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
