"""Evidence that the operating system killed for want of memory.

Counters, not messages: cgroup v2 `memory.events`, cgroup v1 `memory.oom_control`, and
`/proc/vmstat` of the whole machine, each of which has a line `oom_kill N`.
"""

from __future__ import annotations

from pathlib import Path


def counter_files(*, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> list[Path]:
    """Returns the files that count out-of-memory kills for this process, nearest first."""
    candidates = []
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        inner = path.lstrip("/")
        if not controllers:
            candidates += [cgroups / inner / "memory.events", cgroups / "memory.events"]
        elif "memory" in controllers.split(","):
            base = cgroups / "memory"
            # Inside a container the path is the host's; the container sees its own group at the root.
            candidates += [base / inner / "memory.oom_control", base / "memory.oom_control"]
    candidates.append(proc / "vmstat")
    return [path for path in dict.fromkeys(candidates) if _count(path) is not None]


class MemoryWatch:
    """Counts out-of-memory kills from its creation on."""

    def __init__(self, files: list[Path] | None = None) -> None:
        self._start = {path: _count(path) or 0 for path in (counter_files() if files is None else files)}

    def evidence(self) -> str | None:
        """Returns the counter that went up, as "path: oom_kill +1", or None when none did."""
        for path, before in self._start.items():
            now = _count(path)
            if now is not None and now > before:
                return f"{path}: oom_kill +{now - before}"
        return None


def _count(path: Path) -> int | None:
    try:
        text = path.read_text()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.strip().isdigit():
            return int(value)
    return None
