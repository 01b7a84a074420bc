"""`init_from=RUN[@step]`: brings the checkpoint that a run starts with into the run's own folder.

The job that trains has no store credentials, and a name such as "lander@best" may mean another run tomorrow.
So the checkpoint is copied once, before training, to where `RunLayout.init` says: retries, a resume on another
machine and `verify` all start from the same bytes.
"""

from __future__ import annotations

from rlnb import settings
from rlnb.errors import RlnbError, RunNotFound
from rlnb.fork import copy_checkpoint
from rlnb.job import Job
from rlnb.run.checkpoints import checkpoints, find_checkpoint
from rlnb.run.findings import Finding, Level
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.plans import InitFrom
from rlnb.run.record import Parent


def stage(layout: RunLayout, source: InitFrom | None) -> Parent | None:
    """Copies the checkpoint that the run starts with, unless it has one or has trained already.

    Args:
        layout: the run that is to train.
        source: what its experiment says.

    Returns:
        Where it was taken from; None when there was nothing to do.

    Raises:
        RunNotFound: there is no such run.
        CheckpointError: it has no such checkpoint, or the checkpoint is damaged.
        StoreError: the run is in a store that cannot be read.
    """
    if source is None or checkpoints(layout) or checkpoints(RunLayout(layout.init)):
        return None
    parent = _find(source.run, own=layout.id)
    parent.fetch_all()
    chosen = find_checkpoint(parent.layout, source.step)
    copy_checkpoint(chosen, RunLayout(layout.init))
    return Parent(run=parent.url, step=chosen.step, kind="init_from")


def check_source(source: InitFrom | None) -> list[Finding]:
    """Finds out before promotion whether there is such a run and, if it is on this machine, such a checkpoint."""
    if source is None:
        return []
    try:
        parent = _find(source.run, own="")
        if (settings.runs_dir() / parent.id).is_dir():
            find_checkpoint(parent.layout, source.step)
    except RunNotFound as error:
        message = (
            str(error) if "init_from" in str(error) else f"init_from={source.run!r} names no run. {error}"
        )
        return [Finding(Level.ERROR, "init_from", message)]
    except RlnbError as error:
        return [Finding(Level.ERROR, "init_from", f"init_from: {error}")]
    return []


def _find(run: str, *, own: str) -> Job:
    from rlnb.listing import job

    found = job(run)
    if found.id != own:
        return found
    # The run that starts has the name it asks for: the one before it is meant.
    for row in Index().rows(name=run):
        if row.id != own:
            return job(row.id)
    raise RunNotFound(f"init_from={run!r} names only the run that is to start from it; give another run.")
