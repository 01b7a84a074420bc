"""What earlier attempts left running, and its end.

The supervisor records its processes in `local/processes.json`. Whoever continues the run ends
first what still lives of them: only processes of this machine and boot with the recorded start
time, so never a stranger that got a pid again. Besides, everything a worker starts carries a mark
in its environment, which finds what was started after the last record.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from rlnb import settings
from rlnb.jobs.processes import end_all, marked
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout, read_json, write_json


@dataclass(frozen=True)
class Recorded:
    """One process of a run.

    Attributes:
        role: "supervisor", "mirror", "worker", "kernel" or "descendant".
        identity: which process.
    """

    role: str
    identity: ProcessIdentity


def record_processes(layout: RunLayout, pids: dict[int, str]) -> None:
    """Records the processes of a run: pid → role."""
    rows = [{"role": role, **asdict(ProcessIdentity.of(pid))} for pid, role in pids.items()]
    write_json(layout.processes_json, {"processes": rows}, durable=False)


def recorded_processes(layout: RunLayout) -> list[Recorded]:
    """Returns what was recorded last, dead or alive."""
    data = read_json(layout.processes_json) or {}
    return [Recorded(str(row["role"]), ProcessIdentity.from_dict(row)) for row in data.get("processes", [])]


def survivors(layout: RunLayout) -> set[int]:
    """Returns the pids of this run's processes that live now, this process and its parents aside."""
    alive = {r.identity.pid for r in recorded_processes(layout) if r.identity.alive}
    return (alive | marked(layout.root)) - _ourselves()


def end_survivors(layout: RunLayout, *, mirror: bool = True) -> dict[int, str]:
    """Ends what earlier attempts left running on this machine.

    Args:
        layout: the run.
        mirror: end a mirror, too. One that is left alone sends what is there and ends by itself,
            which is what a lost run needs that nobody resumes.

    Returns:
        pid → role of what was ended.

    Raises:
        TimeoutError: a process does not die.
    """
    roles = {r.identity.pid: r.role for r in recorded_processes(layout) if r.identity.alive}
    ours = _ourselves()
    left = set() if mirror else {pid for pid, role in roles.items() if role == "mirror"}
    # The supervisor goes first: it would start a new attempt when it saw its worker die.
    leaders = {pid for pid, role in roles.items() if role == "supervisor"} - ours
    ended = end_all(lambda: leaders & survivors(layout))
    ended |= end_all(lambda: survivors(layout) - left)
    if ended:
        remove_sockets(layout)
    return {pid: roles.get(pid, "descendant") for pid in sorted(ended)}


def remove_sockets(layout: RunLayout) -> None:
    """Removes the sockets of a kernel that has ended; a worker that was killed could not."""
    about = read_json(layout.kernel_json) or {}
    folder = Path(str(about.get("connection_file", ""))).parent
    if folder.parent == settings.sockets_dir():  # whatever the file says, nothing else is touched
        shutil.rmtree(folder, ignore_errors=True)


def _ourselves() -> set[int]:
    """This process and its parents: a run may be resumed from a notebook that a job started."""
    found, pid = {os.getpid()}, os.getppid()
    while pid > 1 and pid not in found:
        found.add(pid)
        pid = _parent(pid)
    return found


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return 0
    return int(stat[stat.rindex(b")") + 2 :].split()[1])
