"""How an attempt ended and what follows, judged from the supervisor's evidence alone.

The executed notebook is never asked: after a dead kernel or a timeout papermill's notebook says
that every cell was completed.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from rlnb.run.status import EndKind, Evidence, State

#: Errors that say the request is wrong: another attempt would meet them again.
NOT_RETRIED = frozenset(
    {"UsageError", "DesignError", "ExpressionError", "ExperimentError", "EnvError", "CaptureError",
     "ParameterError", "SecretError", "FingerprintMismatch", "MissingExtra", "DesignFileChanged",
     "DesignFileTaken"}
)  # fmt: skip

#: What the main process of environments in subprocesses raises when one of them is killed.
_LOST_CHILD = frozenset({"EOFError", "BrokenPipeError", "ConnectionResetError"})

_LOG = "logs/stdout.log"


class Wish(StrEnum):
    """What the supervisor itself has asked of the attempt that ended."""

    RUN = "run"
    SUSPEND = "suspend"
    STOP = "stop"
    HANG = "hang"  # it killed a training that made no step
    TIMEOUT = "timeout"  # it ended a training over its time


@dataclass(frozen=True)
class AttemptEnd:
    """Everything the supervisor knows when an attempt's processes are gone.

    Attributes:
        exit_code: of the worker; negative is a signal, as `subprocess` has it.
        worker: the worker's own report (local/worker.json), None when it left none.
        trained: whether training.json exists.
        in_training: whether training had begun in this attempt.
        wish: what the supervisor had asked for.
        at_safe_point: whether training had come to its safe point (checkpointed) first.
        step: environment steps at the newest checkpoint, None when there is none.
        killed_by_us: whether the supervisor killed the worker.
        memory: evidence of an out-of-memory kill, or None.
    """

    exit_code: int
    worker: dict[str, Any] | None
    trained: bool
    in_training: bool
    wish: Wish = Wish.RUN
    at_safe_point: bool = False
    step: int | None = None
    killed_by_us: bool = False
    memory: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What follows from an end.

    Attributes:
        state: the state the run takes unless it is retried.
        evidence: for status.json.
        retry: whether a further attempt may follow.
    """

    state: State
    evidence: Evidence
    retry: bool = False

    @property
    def signature(self) -> tuple[Any, ...]:
        """What makes two ends the same end, for telling a crash loop."""
        cell = self.evidence.cell or {}
        return self.evidence.kind, self.evidence.signal, cell.get("id"), cell.get("ename")

    @property
    def repeats_by_itself(self) -> bool:
        """Whether the end has a cause within the run; a SIGKILL from outside may well not come again."""
        killed = self.evidence.kind in (EndKind.KERNEL_DIED, EndKind.WORKER_DIED)
        return not (killed and self.evidence.signal in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT))

    def failed_because(self, why: str) -> Verdict:
        """Returns the verdict that no further attempt follows, and why."""
        message = f"{self.evidence.message}; {why}"
        return Verdict(State.FAILED, replace(self.evidence, message=message))


def judge(end: AttemptEnd) -> Verdict:
    """Says what an attempt's end means; the first rule that fits decides.

    1. Training has finished when its record exists: completed, whatever a later cell did.
    2. What the supervisor asked for: suspended, stopped, hang, timeout.
    3. Dead processes, cell errors, and an end that never came to `promote()`.
    """
    cause = _cause(end)
    if end.trained:
        if cause.kind in (EndKind.OK, EndKind.NEVER_REACHED, EndKind.UNFINISHED):
            return Verdict(State.COMPLETED, Evidence(EndKind.OK, "training has finished", exit_code=0))
        if end.wish in (Wish.STOP, Wish.SUSPEND):
            message = f"training has finished; the later cells were ended by {end.wish.value}"
            return Verdict(State.COMPLETED, Evidence(EndKind.OK, message))
        message = f"training has finished; after it, {cause.message}"
        return Verdict(State.COMPLETED, replace(cause, message=message))
    match end.wish:
        case Wish.SUSPEND:
            return Verdict(State.SUSPENDED, Evidence(EndKind.SUSPENDED, _halted("suspended", end, cause)))
        case Wish.STOP:
            return Verdict(State.STOPPED, Evidence(EndKind.STOPPED, _halted("stopped", end, cause)))
        case Wish.HANG:
            message = "training made no step for too long and was ended"
            return Verdict(State.FAILED, Evidence(EndKind.HANG, message, log=_LOG), retry=True)
        case Wish.TIMEOUT:
            message = f"the time limit was reached; {_halted('ended', end, cause)}"
            return Verdict(State.FAILED, Evidence(EndKind.TIMEOUT, message, log=_LOG))
    return Verdict(State.FAILED, cause, retry=_may_retry(cause, end))


def _cause(end: AttemptEnd) -> Evidence:
    """What ended the processes, as if nobody had asked for anything."""
    report = end.worker
    if report is None:
        return _died(EndKind.WORKER_DIED, "the worker", end.exit_code, end)
    outcome = report.get("outcome")
    cell: dict[str, Any] | None = report.get("cell")
    if outcome in ("ok", "exited") and end.in_training:
        how = (
            "caught the error that ended it and ran to its end" if outcome == "ok"
            else f"left it by sys.exit() in cell {_number(cell)}"
        )  # fmt: skip
        return Evidence(
            EndKind.UNFINISHED, f"training has begun but not finished: the notebook {how}",
            exit_code=0, cell=cell, log=_LOG,
        )  # fmt: skip
    if outcome == "ok":
        return Evidence(
            EndKind.NEVER_REACHED,
            "promote() was never reached: the notebook ran to its end without training. Call promote() in a "
            "cell that the job runs (not in one tagged 'notebook-only', nor under a condition that fails there).",
            exit_code=0, log=_LOG,
        )  # fmt: skip
    if outcome == "exited":
        return Evidence(
            EndKind.NEVER_REACHED,
            f"promote() was never reached: cell {_number(cell)} called sys.exit()",
            exit_code=0, cell=cell, log=_LOG,
        )  # fmt: skip
    if outcome == "cell_error" and cell is not None:
        name = str(cell.get("ename"))
        kind = EndKind.MISMATCH if name == "FingerprintMismatch" else EndKind.CELL_ERROR
        message = f"cell {_number(cell)} raised {name}: {cell.get('evalue') or ''}".rstrip(": ")
        if end.memory is not None and name in _LOST_CHILD:
            message += f", after the operating system had killed a process, out of memory ({end.memory})"
            kind = EndKind.OOM
        return Evidence(kind, message, exit_code=1, cell=cell, log=_LOG)
    if outcome == "kernel_died":
        code = report.get("exit_code")
        return _died(EndKind.KERNEL_DIED, "the kernel", -9 if code is None else int(code), end, cell)
    message = str(report.get("message") or "the worker ended without saying why")
    return Evidence(EndKind.WORKER_DIED, message, exit_code=end.exit_code, log="local/supervisor.log")


def _died(
    kind: EndKind, who: str, code: int, end: AttemptEnd, cell: dict[str, Any] | None = None
) -> Evidence:
    where = f" in cell {_number(cell)}" if cell else ""
    if code >= 0:
        return Evidence(kind, f"{who} exited with code {code}{where}", exit_code=code, cell=cell, log=_LOG)
    number = -code
    name = signal.Signals(number).name if number in list(signal.Signals) else str(number)
    message = f"{who} was killed by {name}{where}"
    if number == signal.SIGKILL and not end.killed_by_us:
        if end.memory is not None:
            message = f"{who} was killed by the operating system{where}, out of memory ({end.memory})"
            return Evidence(EndKind.OOM, message, signal=number, cell=cell, log=_LOG)
        message += ", which rlnb did not send (a person, a scheduler, or the out-of-memory killer)"
    return Evidence(kind, message, signal=number, cell=cell, log=_LOG)


def _may_retry(cause: Evidence, end: AttemptEnd) -> bool:
    if cause.kind in (EndKind.NEVER_REACHED, EndKind.UNFINISHED, EndKind.MISMATCH):
        return False
    if cause.kind is EndKind.CELL_ERROR:
        name = str((cause.cell or {}).get("ename"))
        return end.in_training and name not in NOT_RETRIED
    return bool((end.worker or {}).get("retry", True))


def _halted(word: str, end: AttemptEnd, cause: Evidence) -> str:
    if not end.in_training:
        return f"{word} before training started" + (
            "" if end.step is None else f"; the checkpoint at step {end.step} is the newest"
        )
    if end.at_safe_point:
        return f"{word} at a checkpoint" + ("" if end.step is None else f", step {end.step}")
    newest = (
        "there is no checkpoint"
        if end.step is None
        else f"the newest checkpoint, step {end.step}, is the final one"
    )
    if (end.worker or {}).get("outcome") in ("cell_error", "kernel_died"):
        # As when a scheduler's signal has ended the environments' processes, too.
        return f"{word}, but before a safe point was reached, {cause.message}; {newest}"
    return f"{word} without reaching a safe point in the grace time; {newest}"


def _number(cell: dict[str, Any] | None) -> str:
    return str((cell or {}).get("number", "?"))
