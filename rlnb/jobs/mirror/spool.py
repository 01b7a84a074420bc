"""The bound on what waits for the store: over it, superseded unsent checkpoints are dropped, nothing else."""

from __future__ import annotations

from collections.abc import Callable

from rlnb import settings
from rlnb.jobs.mirror.report import MirrorReport
from rlnb.jobs.mirror.scan import LocalCheckpoint, Scan
from rlnb.run.layout import RunLayout


def drop_superseded(
    layout: RunLayout,
    seen: Scan,
    waiting: dict[str, int],
    report: MirrorReport,
    published: Callable[[LocalCheckpoint], bool],
) -> bool:
    """Drops the oldest superseded checkpoints that were never sent, until the rest is within bounds.

    Dropped means removed from the working copy too (manifest first, so that it never looks whole):
    the bound is on this machine's disk. Superseded are all but the newest, the best by return, and what a
    fork began with (attempt 0), without which it could not be verified.
    Shared replay chunks are left to the trainer's own collection.

    Args:
        layout: the run.
        seen: the working copy.
        waiting: bytes to send by name; what is dropped is taken out.
        report: gets one event a checkpoint.
        published: whether a checkpoint counts in the store already.

    Returns:
        Whether anything was dropped, so that `seen` is out of date.
    """
    limit = settings.spool_limit()
    kept = {*seen.checkpoints[:1], *(one for one in seen.checkpoints if one.attempt == 0)}
    kept |= set(sorted((c for c in seen.checkpoints if c.return_mean is not None), key=_mean)[-1:])
    dropped = False
    for checkpoint in reversed(seen.checkpoints):
        total = sum(waiting.values())
        if total <= limit:
            break
        if checkpoint in kept or published(checkpoint):
            continue
        shared = {name for other in seen.checkpoints if other is not checkpoint for name in other.payload}
        (layout.root / checkpoint.manifest).unlink(missing_ok=True)
        for name in (checkpoint.manifest, *checkpoint.payload):
            if name in shared:
                continue
            waiting.pop(name, None)
            if not name.startswith("checkpoints/chunks/"):
                (layout.root / name).unlink(missing_ok=True)
        try:
            (layout.root / checkpoint.manifest).parent.rmdir()
        except OSError:
            pass  # something else lies in it, or retention was quicker
        seen.checkpoints.remove(checkpoint)
        dropped = True
        report.tell(
            "checkpoint_dropped",
            f"The superseded checkpoint at step {checkpoint.step} was dropped before it reached the store: "
            f"{total} bytes waited, over the bound of {limit} (RLNB_SPOOL_LIMIT).",
        )
    return dropped


def _mean(checkpoint: LocalCheckpoint) -> float:
    return checkpoint.return_mean if checkpoint.return_mean is not None else float("-inf")
