"""The state of a run: the supervisor's word, and what an observer may conclude from it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from rlnb import settings
from rlnb.errors import RunFormatError
from rlnb.run.claims import attempt_owner, latest_attempt
from rlnb.run.host import ProcessIdentity, utc_now
from rlnb.run.layout import RunLayout, read_json, write_json

FORMAT = 1


class State(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"  # in place: the kernel is alive and can be inspected
    SUSPENDED = "suspended"  # checkpointed and exited
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"

    @property
    def final(self) -> bool:
        """Whether the run has ended for good, unless a person resumes it."""
        return self in (State.COMPLETED, State.FAILED, State.STOPPED, State.LOST)

    @property
    def living(self) -> bool:
        """Whether a supervisor should be alive."""
        return not self.final and self is not State.SUSPENDED


class EndKind(StrEnum):
    """Why an attempt ended."""

    OK = "ok"
    CELL_ERROR = "cell_error"
    KERNEL_DIED = "kernel_died"
    WORKER_DIED = "worker_died"
    TIMEOUT = "timeout"
    HANG = "hang"
    OOM = "oom"
    NEVER_REACHED = "never_reached"
    UNFINISHED = "unfinished"  # the notebook ended by itself although training had begun
    MISMATCH = "mismatch"
    SIGNAL = "signal"
    STOPPED = "stopped"
    SUSPENDED = "suspended"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Evidence:
    """What the supervisor saw of an attempt's end.

    Attributes:
        kind: why it ended.
        message: one sentence for a person.
        exit_code: the worker's or kernel's exit code, when it exited.
        signal: the number of the signal that ended it, when one did.
        cell: of a cell error: {"number": 1-based, "id", "ename", "evalue", "traceback": [lines]}.
        log: name of the log to read, relative to the run folder.
    """

    kind: EndKind
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    cell: dict[str, Any] | None = None
    log: str | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Evidence:
        known = {key: data.get(key) for key in cls.__dataclass_fields__}
        known["kind"] = EndKind(str(known["kind"]))
        return cls(**known)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Status:
    """The content of status.json.

    Attributes:
        state: see `State`.
        attempt: the attempt that speaks.
        supervisor: the process that speaks.
        reason: why it is in that state, one sentence, or "".
        heartbeat: counts up while the supervisor lives.
        time: ISO 8601, UTC, of the last write.
        started: ISO 8601, UTC, of this attempt's start.
        evidence: how the last attempt ended, or None while none has.
        upload_pending: bytes that wait for the store.
        store: the store's condition in words ("ok", "unreachable since …").
        retries_used: how many retries failures have cost so far.
        step, total, return_mean: training's progress when this was written.
    """

    state: State
    attempt: int
    supervisor: ProcessIdentity
    reason: str = ""
    heartbeat: int = 0
    time: str = ""
    started: str = ""
    evidence: Evidence | None = None
    upload_pending: int = 0
    store: str = "ok"
    retries_used: int = 0
    step: int = 0
    total: int = 0
    return_mean: float | None = None
    more: dict[str, Any] = field(default_factory=dict)


def write_status(layout: RunLayout, status: Status) -> None:
    """Replaces status.json; only the supervisor that holds the newest claim may call this."""
    write_json(layout.status, {"format": FORMAT, **asdict(replace(status, time=utc_now()))}, durable=False)


def read_status(layout: RunLayout) -> Status | None:
    """Returns the supervisor's last word, or None before it has spoken and when the file is torn or garbled.

    Raises:
        RunFormatError: it was written by a newer rlnb.
    """
    data = read_json(layout.status)
    if data is None:
        return None
    if isinstance(data.get("format"), int) and data["format"] > FORMAT:
        raise RunFormatError(
            f"{layout.status} has format {data['format']}, this rlnb reads up to {FORMAT}; upgrade rlnb to read it."
        )
    known = {key: data[key] for key in Status.__dataclass_fields__ if key in data}
    try:
        known["state"] = State(known["state"])
        known["supervisor"] = ProcessIdentity.from_dict(known.get("supervisor") or {})
        known["evidence"] = Evidence.from_dict(known["evidence"]) if known.get("evidence") else None
        return Status(**known)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True)
class Observation:
    """What an observer may say of a run now.

    Attributes:
        state: the state; LOST when the supervisor is known to be dead while it should live.
        silent: whether a supervisor of another machine or boot has stopped counting.
        status: the supervisor's last word, None before it has spoken.
        why: one sentence, or "".
    """

    state: State
    silent: bool = False
    status: Status | None = None
    why: str = ""


class Observer:
    """Watches one run; keeps what it needs to see that a foreign heartbeat stands still.

    A pid is believed only on the host and boot that recorded it. Elsewhere the observer's own
    clock decides: three intervals without a new heartbeat mean silent, which is not yet lost.
    """

    def __init__(self, layout: RunLayout) -> None:
        self.layout = layout
        self._beat: tuple[int, int] | None = None
        self._since = time.monotonic()

    def observe(self) -> Observation:
        status = read_status(self.layout)
        newest = latest_attempt(self.layout)
        if newest > (0 if status is None else status.attempt) and (coming := self._coming(newest, status)):
            return coming
        if status is None and newest:
            return Observation(
                State.LOST,
                why="status.json is missing or unreadable and its supervisor is gone; resume() continues from the "
                "newest checkpoint",
            )
        if status is None:
            return Observation(State.QUEUED, why="no supervisor has reported yet")
        if not status.state.living:
            return Observation(status.state, status=status, why=status.reason)
        who = status.supervisor
        if who.here:
            if who.alive:
                return Observation(status.state, status=status, why=status.reason)
            cause = "its supervisor is gone" if who.this_boot else "this machine was restarted"
            return Observation(
                State.LOST, status=status, why=f"{cause}; resume() continues from the newest checkpoint"
            )
        beat = (status.attempt, status.heartbeat)
        now = time.monotonic()
        if beat != self._beat:
            self._beat, self._since = beat, now
        silent = now - self._since > 3 * max(settings.heartbeat(), 1.0)
        why = f"no heartbeat from {who.host} for {now - self._since:.0f} s" if silent else status.reason
        return Observation(status.state, silent, status, why)

    def _coming(self, attempt: int, status: Status | None) -> Observation | None:
        """What to say of an attempt that was claimed and has not reported yet; None if nobody is coming."""
        owner = ProcessIdentity.from_dict(attempt_owner(self.layout, attempt) or {})
        if not owner.alive and (owner.here or not owner.host):
            return None
        return Observation(State.STARTING, status=status, why=f"attempt {attempt} has begun on {owner.host}")


def observe(layout: RunLayout) -> Observation:
    """Observes a run once; a single look cannot tell that a foreign supervisor is silent."""
    return Observer(layout).observe()
