"""Which run this process trains, and which cell it is in; bound to the kernel process.

The worker hands the identity to the kernel in one environment variable, which the kernel takes out
of its environment before any user code runs. What a kernel starts or forks is therefore not a job:
a `promote()` in a child behaves as it does interactively.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "RLNB_JOB"


@dataclass(frozen=True)
class JobIdentity:
    """The run that this kernel was started for.

    Attributes:
        root: the run folder (the working copy).
        attempt: the attempt this kernel belongs to.
        task: "train" or "verify".
        cell: id of the cell whose `promote()` is the target; None lets the first one be it.
        call: the n-th `promote()` in that cell.
    """

    root: Path
    attempt: int
    task: str = "train"
    cell: str | None = None
    call: int = 1

    def to_json(self) -> str:
        """Returns the value of the environment variable."""
        return json.dumps(
            {"root": os.fspath(self.root), "attempt": self.attempt, "task": self.task,
             "cell": self.cell, "call": self.call}
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> JobIdentity:
        data = json.loads(text)
        return cls(Path(data["root"]), int(data["attempt"]), data["task"], data["cell"], int(data["call"]))


@dataclass
class _Bound:
    """What this process knows of itself; a fork inherits it and is told apart by the pid."""

    identity: JobIdentity
    pid: int


_bound: _Bound | None = None
_cell: str | None = None
_executions: dict[str | None, int] = {}


def bind_from_environment() -> JobIdentity | None:
    """Takes the identity out of the environment and binds it to this process.

    Called once, by the kernel, before anything of the user's runs.
    """
    global _bound
    text = os.environ.pop(VARIABLE, None)
    if text is None:
        return None
    bind(JobIdentity.from_json(text))
    assert _bound is not None
    return _bound.identity


def bind(identity: JobIdentity | None) -> None:
    """Binds an identity to this process, or none."""
    global _bound
    _bound = None if identity is None else _Bound(identity, os.getpid())


def current() -> JobIdentity | None:
    """Returns the run this process was started for, None outside a job and in a job's children."""
    if _bound is None or _bound.pid != os.getpid():
        return None
    return _bound.identity


def enter_cell(cell_id: str | None) -> None:
    """Notes that a cell begins to run (IPython's `pre_run_cell`)."""
    global _cell
    _cell = cell_id
    _executions[cell_id] = _executions.get(cell_id, 0) + 1


def current_cell() -> tuple[str | None, int]:
    """Returns (id of the running cell, how often it has been started in this process).

    The pair changes with every execution, so it tells two runs of one cell apart. Before any cell
    has run it is (None, 0).
    """
    return _cell, _executions.get(_cell, 0)
