"""Runs a run again from its bundle and says whether the final weights come out equal, and if not, why not.

The second run is an ordinary one: a scratch run folder, the same supervisor, worker and kernel, the task
"verify" in run.yaml (later cells are skipped). A fork is verified from the checkpoint it began with, with
the changes that its run.yaml records, so that whatever was changed is replayed: a change is always a fork,
a run's own settings never change.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rlnb import settings
from rlnb.differences import environment_differences, first_difference
from rlnb.errors import JobFailed, RlnbError, RunError, UsageError
from rlnb.fork import FORK_ATTEMPT, derived, start_copy
from rlnb.job import Job
from rlnb.jobs.survivors import end_survivors
from rlnb.naming import new_run
from rlnb.run.checkpoints import Checkpoint, checkpoints
from rlnb.run.control import Verb, request
from rlnb.run.events import EventLog
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.record import Limits, RunRecord
from rlnb.trust import is_pulled, require_trust


@dataclass(frozen=True)
class Verification:
    """What a second run said.

    Attributes:
        run: id of the run that was verified.
        equal: whether the final weights are equal, bit for bit.
        expected, found: sha256 of the weights, of the run and of its repetition; `found` is None when the
            repetition did not finish.
        steps: environment steps of the repetition.
        reasons: why they may differ, one sentence each; also what weakens an equal result.
        scratch: the repetition's folder, None when it was removed.
    """

    run: str
    equal: bool
    expected: str
    found: str | None
    steps: int
    reasons: list[str] = field(default_factory=list)
    scratch: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        if self.equal:
            lines = [
                f"{self.run}: equal. {self.steps:,} steps again end with the same weights ({self.expected[:16]}…)."
            ]
        elif self.found is None:
            lines = [f"{self.run}: not verified, the second run did not finish."]
        else:
            lines = [f"{self.run}: NOT equal. Expected {self.expected[:16]}…, found {self.found[:16]}…."]
        lines += [f"  - {reason}" for reason in self.reasons]
        if self.scratch:
            lines.append(f"  the second run is in {self.scratch}")
        return "\n".join(lines)


def verify(
    run: Job | str, *, trust: bool = False, keep: bool = False, timeout: float | None = None
) -> Verification:
    """Runs a run again and compares the final weights.

    Args:
        run: the run, or what `rlnb.job` takes.
        trust: execute a bundle that is not in this machine's index.
        keep: leave the second run's folder for looking at; it is always kept when the weights differ.
        timeout: seconds that the second run may take.

    Raises:
        UsageError: the run has not finished training, or its bundle is not trusted.
        TimeoutError: the second run took too long; it was stopped.
    """
    original = run if isinstance(run, Job) else _find(run)
    original.fetch_all()
    record = original.record
    if record is None or not record.get("weights_sha256"):
        raise UsageError(
            f"{original.id} is {original.state.value} and has not finished training, so there are no final weights to "
            "compare with."
        )
    restored = is_pulled(original.layout) and _beginning(original) is not None
    require_trust(original.layout, trust=trust, restored=restored)
    expected = str(record["weights_sha256"])
    scratch = _scratch(original)
    job = Job(scratch.id, scratch)
    stored = Path(str(job.asked.store["url"]))
    failure = _run(job, timeout)
    again = job.record or {}
    found = None if again.get("weights_sha256") is None else str(again["weights_sha256"])
    equal = found == expected
    reasons = [] if failure is None else [failure]
    reasons += _weaknesses(original, record)
    parted = _other_beginning(record, again, scratch)
    reasons += parted
    if not equal:
        reasons += environment_differences(original.layout)
        reasons += first_difference(original.layout, scratch)
        if found is not None and not reasons:
            reasons.append(
                "nothing recorded explains it: the notebook itself draws on something that is not seeded"
            )
    kept = keep or not equal or bool(parted)
    if not kept:
        _remove(scratch, stored)
    steps = int(again.get("step") or 0)
    return Verification(
        original.id, equal, expected, found, steps, reasons, str(scratch.root) if kept else None
    )


def _find(text: str) -> Job:
    from rlnb.listing import job

    return job(text)


def _scratch(original: Job) -> RunLayout:
    layout = new_run(f"verify-{original.name}")
    # A folder of its own as store: a repetition must never write where the run is kept.
    store = Path(tempfile.mkdtemp(prefix="verify-", dir=settings.home()))
    record = derived(original.asked, layout.id, kind="verify", parent=original.url, step=None)
    record = replace(
        record,
        name=f"verify-{original.name}",
        task="verify",
        store={"url": str(store), "exclusive": True},
        tags=["verify"],
        limits=replace(original.asked.limits, retries=0)
        if isinstance(original.asked.limits, Limits)
        else Limits(),
    )
    start_copy(original.layout, layout, record, _beginning(original))
    Index().add(layout, record, url=f"{store}/{layout.id}")
    return layout


def _beginning(original: Job) -> Checkpoint | None:
    """Returns the checkpoint that a fork began with; None for a run that began from nothing."""
    asked: RunRecord = original.asked
    if asked.parent is None or asked.parent.kind != "fork":
        return None
    for checkpoint in checkpoints(original.layout):
        if checkpoint.attempt == FORK_ATTEMPT:
            return checkpoint
    raise RunError(
        f"{original.id} was forked from {asked.parent.run} at step {asked.parent.step}, and that checkpoint is no longer "
        "kept here; fork the parent again to repeat it."
    )


def _run(job: Job, timeout: float | None) -> str | None:
    """Runs the repetition to its end; returns why it did not finish, None when it did."""
    from rlnb.jobs.executors.local import LocalExecutor

    try:
        LocalExecutor().submit(job.layout)
        job.wait(timeout=timeout)
    except (TimeoutError, KeyboardInterrupt):
        request(job.layout, Verb.STOP)  # not waited for: it stops at its next safe point
        raise
    except JobFailed as error:
        return f"the second run failed: {error}"
    except RlnbError as error:
        return f"the second run could not be started: {error}"
    return None


def _weaknesses(original: Job, record: dict[str, Any]) -> list[str]:
    """Returns what the run itself recorded that can make a repetition differ."""
    reasons = []
    exact = record.get("exact_resume")
    if exact not in (True, None):
        reasons.append(f"the run calls itself {exact}")
    if record.get("ended_by") == "max_hours":
        reasons.append("the run ended by max_hours, and a repetition on another machine ends at another step")
    kinds = {event.kind: event for event in original.events}
    for kind in ("inspected", "initial_differs"):
        if kind in kinds:
            reasons.append(f"{kind.replace('_', ' ')}: {kinds[kind].message}")
    return reasons


def _other_beginning(record: dict[str, Any], again: dict[str, Any], scratch: RunLayout) -> list[str]:
    """Compares the CRC32s of the first observations and states; a difference is an event of the second run, too."""
    then, now = record.get("initial"), again.get("initial")
    if then is None or now is None or then == now:
        return []
    what = " and ".join(name for name in then if then[name] != now.get(name))
    message = f"the environments' first {what} differ from the run's: their making depends on something outside the run"
    EventLog(scratch).append("initial_differs", message, step=0, before=then, now=now)
    return [message]


def _remove(scratch: RunLayout, stored: Path) -> None:
    # Its supervisor may still wait for the upload to a store that goes away with it.
    end_survivors(scratch)
    Index().remove(scratch.id)
    shutil.rmtree(scratch.root, ignore_errors=True)
    shutil.rmtree(stored, ignore_errors=True)
