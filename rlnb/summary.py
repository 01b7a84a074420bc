"""What a run looks like in one dictionary: for `rlnb show --json`, listings and the handle's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlnb import settings
from rlnb.errors import RlnbError
from rlnb.run.claims import latest_attempt
from rlnb.run.events import read_events
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.progress import Progress, read_progress
from rlnb.run.record import RunRecord, read_record
from rlnb.run.status import Observation

if TYPE_CHECKING:
    from rlnb.run.checkpoints import Checkpoint


def summarize(
    layout: RunLayout, observation: Observation, *, url: str, events: bool = False
) -> dict[str, Any]:
    """Returns what is known of a run as plain JSON values.

    Args:
        layout: the local folder of the run.
        observation: what its observer says now.
        url: the run's address in its store.
        events: also list the events.

    Raises:
        RunNotFound: the folder holds no run.yaml.
        RunFormatError: it was written by a newer rlnb.
    """
    record = read_record(layout)
    status = observation.status
    training = read_json(layout.training_json) or {}
    found = known_checkpoints(layout)
    newest = max(found, key=lambda one: (one.attempt, one.step), default=None)
    attempt = max(latest_attempt(layout), status.attempt if status else 0)
    progress = current_progress(layout, attempt)
    summary: dict[str, Any] = {
        "id": record.id,
        "name": record.name,
        "run": url,
        "folder": str(layout.root),
        "state": observation.state.value,
        "silent": observation.silent,
        "reason": observation.why,
        "attempt": attempt,
        "retries_used": status.retries_used if status else 0,
        "step": _step(training, progress, observation, newest),
        "total_timesteps": total_timesteps(record),
        "return_mean": _return_mean(training, progress, observation),
        "weights_sha256": training.get("weights_sha256") or (newest.weights_sha256 if newest else None),
        "exact_resume": training.get("exact_resume", newest.exact if newest else None),
        "ended_by": training.get("ended_by"),
        "created": record.created,
        "owner": record.owner,
        "tags": record.tags,
        "group": record.group,
        "parent": None if record.parent is None else {"run": record.parent.run, "step": record.parent.step,
                                                      "kind": record.parent.kind},
        "parameters": record.parameters,
        "algo": (record.experiment or {}).get("algo"),
        "upload_pending": status.upload_pending if status else 0,
        "store_condition": status.store if status else "",
        "evidence": _evidence(observation),
        "checkpoints": [describe_checkpoint(item) for item in found],
    }  # fmt: skip
    if events:
        summary["events"] = [event.to_dict() for event in read_events(layout)]
    return summary


def current_progress(layout: RunLayout, attempt: int) -> Progress | None:
    """Returns training's last word if it is of this attempt: an older one was perhaps rewound."""
    progress = read_progress(layout)
    return progress if progress is not None and progress.attempt == attempt else None


def known_checkpoints(layout: RunLayout) -> list[Checkpoint]:
    """Returns the checkpoints that the run has, oldest first.

    A pulled copy holds their manifests only, until somebody needs the rest; the originals are whole.
    """
    from rlnb.run.checkpoints import MANIFEST, checkpoints, read_checkpoint

    if layout.root.parent != settings.cache_dir():
        return checkpoints(layout)
    found = []
    for step, attempt, folder in layout.checkpoint_folders():
        if (folder / MANIFEST).is_file():
            try:
                found.append(read_checkpoint(layout, folder, step, attempt))
            except RlnbError:
                continue  # torn or of a newer format: not one that can be restored here
    return found


def describe_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns one checkpoint as plain JSON values."""
    return {
        "step": checkpoint.step,
        "attempt": checkpoint.attempt,
        "time": checkpoint.time,
        "return_mean": checkpoint.return_mean,
        "weights_sha256": checkpoint.weights_sha256,
        "exact": checkpoint.exact,
        "bytes": checkpoint.bytes,
    }


def total_timesteps(record: RunRecord) -> int | None:
    """Returns the environment steps asked for, None while the notebook has not said it."""
    value = (record.experiment or {}).get("total_timesteps")
    return None if value is None else int(value)


def _step(
    training: dict[str, Any], progress: Progress | None, seen: Observation, newest: Checkpoint | None
) -> int:
    known = [
        int(training.get("step") or 0),
        progress.step if progress else 0,
        seen.status.step if seen.status else 0,
    ]
    return max(known) or (newest.step if newest else 0)


def _return_mean(training: dict[str, Any], progress: Progress | None, seen: Observation) -> float | None:
    if training.get("return_mean") is not None:
        return float(training["return_mean"])
    if progress is not None and progress.return_mean is not None:
        return progress.return_mean
    return seen.status.return_mean if seen.status else None


def _evidence(seen: Observation) -> dict[str, Any] | None:
    evidence = seen.status.evidence if seen.status else None
    if evidence is None:
        return None
    return {
        "kind": evidence.kind.value,
        "message": evidence.message,
        "exit_code": evidence.exit_code,
        "signal": evidence.signal,
        "cell": evidence.cell,
        "log": evidence.log,
    }
