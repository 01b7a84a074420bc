"""Who and where this process is, so that a claim on a run can be judged later and elsewhere."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path


def hostname() -> str:
    """Returns this machine's name."""
    return socket.gethostname()


def boot_id() -> str:
    """Returns an id that changes with every boot; process ids mean nothing across boots."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def process_start(pid: int) -> int | None:
    """Returns the start time of a process in clock ticks since boot, or None when it is gone.

    A zombie counts as gone. Together with the pid it names a process without doubt, because the
    kernel reuses pids.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of one boot of one machine."""

    host: str
    boot_id: str
    pid: int
    pid_start: int

    @classmethod
    def of(cls, pid: int | None = None) -> ProcessIdentity:
        """Returns the identity of a process of this machine, by default of this process."""
        number = os.getpid() if pid is None else pid
        return cls(hostname(), boot_id(), number, process_start(number) or 0)

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> ProcessIdentity:
        return cls(
            str(data.get("host", "")),
            str(data.get("boot_id", "")),
            int(str(data.get("pid", 0) or 0)),
            int(str(data.get("pid_start", 0) or 0)),
        )

    @property
    def here(self) -> bool:
        """Whether the process ran on this machine, whatever became of it."""
        return self.host == hostname()

    @property
    def this_boot(self) -> bool:
        """Whether it ran on this machine since its last boot, so that its pid can be checked."""
        return self.here and self.boot_id == boot_id()

    @property
    def alive(self) -> bool:
        """Whether that very process runs now; meaningful only when `this_boot`."""
        return self.this_boot and self.pid > 0 and process_start(self.pid) == self.pid_start


def utc_now() -> str:
    """Returns the time as ISO 8601 in UTC with milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
