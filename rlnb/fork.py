"""A new run from a checkpoint of another: the same notebook, some settings changed.

The new run gets the parent's bundle, its own run.yaml (with `changes`, which the job applies to the
notebook's Experiment before it compares fingerprints) and a copy of the one checkpoint, as attempt 0. Its
first attempt resumes from that checkpoint as any attempt resumes from its newest one, so a fork without
changes ends with the parent's weights.
"""

from __future__ import annotations

import getpass
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

import rlnb
from rlnb.errors import CheckpointError, UsageError
from rlnb.job import Job
from rlnb.naming import new_run
from rlnb.run.checkpoints import MANIFEST, Checkpoint, checkpoints, damage
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.host import hostname, utc_now
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout, read_json, safe_join, write_json
from rlnb.run.record import Parent, RunRecord, write_record
from rlnb.source import join_run_url
from rlnb.trust import is_pulled, require_trust

FORK_ATTEMPT = 0  # the attempt that a fork's first checkpoint counts as; its own attempts begin with 1


def fork(
    parent: Job, *, step: int | None = None, store: str | None = None, trust: bool = False, **changes: Any
) -> Job:
    """Starts a new run from a checkpoint of `parent`.

    Args:
        parent: the run to start from; it goes on undisturbed.
        step: the newest checkpoint at or before this step; None takes the newest.
        store: where the new run is mirrored; None takes the parent's store.
        trust: execute a bundle that is not in this machine's index.
        changes: fields and hyperparameters of the experiment that differ, e.g. `learning_rate=1e-4`.

    Returns:
        The new run's handle.

    Raises:
        CheckpointError: no valid checkpoint is there.
        ExperimentError: a change names nothing the experiment has, or is not possible.
        UsageError: nothing would be left to train, the bundle is not trusted, or the store cannot be used.
    """
    parent.fetch_all()
    asked = parent.asked
    if not asked.complete:
        raise UsageError(f"{parent.id} has not reached its promote() yet, so there is nothing to fork.")
    checkpoint = choose_checkpoint(parent.layout, step)
    spec = ExperimentSpec.from_dict(asked.experiment or {})
    plain = _carried(changes)
    changed = spec.with_changes(**plain) if plain else spec
    if changed.total_timesteps <= checkpoint.step:
        raise UsageError(
            f"The checkpoint of {parent.id} at step {checkpoint.step:,} has all of total_timesteps="
            f"{changed.total_timesteps:,}; fork with a larger total_timesteps or an earlier step."
        )
    require_trust(parent.layout, trust=trust, restored=is_pulled(parent.layout))
    kept_in = asked.store if store is None else _try_store(store)
    store_url = str(kept_in["url"])
    layout = new_run(asked.name)
    record = replace(
        derived(asked, layout.id, kind="fork", parent=parent.url, step=checkpoint.step),
        store=kept_in,
        experiment=changed.to_dict(),
        fingerprint=changed.fingerprint(),
        changes={**asked.changes, **plain},
    )
    start_copy(parent.layout, layout, record, checkpoint)
    Index().add(layout, record, url=join_run_url(store_url, layout.id))
    from rlnb.jobs.executors.local import LocalExecutor

    LocalExecutor().submit(layout)
    return Job(layout.id, layout, url=join_run_url(store_url, layout.id))


def choose_checkpoint(layout: RunLayout, step: int | None) -> Checkpoint:
    """Returns the newest valid checkpoint at or before `step`.

    Raises:
        CheckpointError: there is none.
    """
    found = checkpoints(layout)
    # The run's one history: what an older attempt did after the step that a newer one resumed from is undone.
    for item in sorted(found, key=lambda one: (one.attempt, one.step), reverse=True):
        if (step is None or item.step <= step) and damage(item) is None:
            return item
    where = "" if step is None else f" at or before step {step:,}"
    have = ", ".join(f"{item.step:,}" for item in found) or "none"
    raise CheckpointError(f"{layout.id} has no valid checkpoint{where}; it has: {have}.")


def derived(asked: RunRecord, run_id: str, *, kind: str, parent: str, step: int | None) -> RunRecord:
    """Returns the parent's record as that of a new run: its own id, owner and time, no idempotency key."""
    return replace(
        asked,
        id=run_id,
        created=utc_now(),
        rlnb=rlnb.__version__,
        owner={"user": getpass.getuser(), "host": hostname()},
        key="",
        group=None,
        parent=Parent(run=parent, step=step, kind=kind),
    )


def start_copy(
    source: RunLayout, target: RunLayout, record: RunRecord, checkpoint: Checkpoint | None
) -> None:
    """Writes the folder of a derived run: bundle and checkpoint first, run.yaml last."""
    shutil.copytree(source.bundle, target.bundle, symlinks=True)
    if source.init.exists():
        shutil.copytree(source.init, target.init, symlinks=True)
    if checkpoint is not None:
        copy_checkpoint(checkpoint, target)
    write_record(target, record)


def copy_checkpoint(checkpoint: Checkpoint, target: RunLayout) -> Path:
    """Copies one checkpoint with everything its manifest names; the manifest comes last.

    Args:
        checkpoint: which.
        target: the run that gets it, as attempt 0.

    Returns:
        The new checkpoint's folder.
    """
    old = checkpoint.folder
    new = target.checkpoint(checkpoint.step, FORK_ATTEMPT)
    manifest = read_json(old / MANIFEST)
    if manifest is None:
        raise CheckpointError(f"{old} has no readable {MANIFEST}; choose another step.")
    for entry in manifest["files"]:
        name = str(entry["name"])
        own = name.startswith(f"{old.name}/")
        renamed = f"{new.name}/{name.removeprefix(f'{old.name}/')}" if own else name
        destination = safe_join(target.checkpoints, renamed)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(safe_join(old.parent, name), destination)
        entry["name"] = renamed
    write_json(new / MANIFEST, {**manifest, "attempt": FORK_ATTEMPT})
    return new


def _carried(changes: dict[str, Any]) -> dict[str, Any]:
    """Returns the changes as run.yaml can hold them; they are applied again from there in the job."""
    plain = {}
    for name, value in changes.items():
        item = getattr(value, "item", None)
        value = item() if callable(item) and getattr(value, "ndim", None) == 0 else value
        value = list(value) if isinstance(value, tuple) else value
        try:
            yaml.safe_dump(value)
        except yaml.YAMLError:
            raise UsageError(
                f"The change {name}={value!r} cannot be written to run.yaml; give numbers, text, lists or mappings, "
                "or promote the changed notebook with init_from instead."
            ) from None
        plain[name] = value
    return plain


def _try_store(store: str) -> dict[str, Any]:
    """Returns what run.yaml says of a store that was written to, read and cleared again."""
    from rlnb.check import check_store, make_report
    from rlnb.prepare import resolve_store

    url = resolve_store(store, base=Path.cwd())
    begin = time.monotonic()
    exclusive, found = check_store(url)
    make_report(found, begin).require()
    return {"url": url, "exclusive": exclusive}
