"""The processes of a run, found from outside the way an operator would: by the process table."""

from __future__ import annotations

import os
import signal

import psutil

from rlnb.run.layout import RunLayout
from tests.e2e.waiting import until

ROLES = ("supervisor", "worker", "kernel", "mirror")


def find(layout: RunLayout) -> dict[str, psutil.Process]:
    """Returns the living processes of a run by role; further descendants of the kernel are not listed."""
    found: dict[str, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            line = process.cmdline()
        except psutil.Error:
            continue
        for role in ROLES:
            mine = str(layout.root) in line or (role == "kernel" and _belongs(process, layout))
            if f"rlnb.jobs.{role}" in line and mine:
                found[role] = process
    return found


def _belongs(process: psutil.Process, layout: RunLayout) -> bool:
    try:
        return str(layout.work) == process.cwd() or any(
            str(layout.root) in p.cmdline() for p in process.parents()
        )
    except psutil.Error:
        return False


def everything(layout: RunLayout) -> list[psutil.Process]:
    """Returns all processes of a run with all their descendants."""
    seen: dict[int, psutil.Process] = {}
    for process in find(layout).values():
        try:
            for one in [process, *process.children(recursive=True)]:
                seen[one.pid] = one
        except psutil.Error:
            continue
    return list(seen.values())


def kill(layout: RunLayout, role: str) -> list[psutil.Process]:
    """SIGKILLs one role, or with "tree" everything at once; returns what was alive."""
    alive = everything(layout)
    victims = alive if role == "tree" else [until(lambda: find(layout).get(role), f"a {role} to kill")]
    for victim in victims:
        try:
            os.kill(victim.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return alive


def await_all_gone(processes: list[psutil.Process], *, timeout: float = 30.0) -> None:
    """Waits until none of the processes is left."""

    def gone() -> bool:
        return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    until(gone, f"the end of {[p.pid for p in processes]}", timeout=timeout)
