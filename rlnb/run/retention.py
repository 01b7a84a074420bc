"""Which checkpoints stay, and removing the others without a moment in which one looks whole and is not."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlnb.run.checkpoints import MANIFEST, Checkpoint, best, checkpoints, damage
from rlnb.run.chunks import collect_chunks
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.plans import CheckpointPlan


def retain(layout: RunLayout, plan: CheckpointPlan, *, sure: Checkpoint | None = None) -> list[Checkpoint]:
    """Removes what the plan does not keep, then the chunks that nobody needs any more.

    Kept are the newest `keep_last`, the best, each n-th (by the number in its manifest), and what a fork
    began with. Half-written folders older than the newest checkpoint go too; the only valid one never does.

    Args:
        layout: the run folder.
        plan: what is kept.
        sure: a checkpoint that has just been written, so that its bytes need not be read again.

    Returns:
        The checkpoints that were removed.
    """
    found = checkpoints(layout)
    if not found:
        return []
    ordered = sorted(found, key=lambda one: (one.attempt, one.step))
    keep = {one.folder for one in ordered[-plan.keep_last :]} | {
        one.folder for one in ordered if one.attempt == 0
    }
    top = best(found) if plan.keep_best else None
    if top is not None:
        keep.add(top.folder)
    if plan.keep_every is not None:
        keep |= {one.folder for one in ordered if one.meta["number"] % plan.keep_every == 0}
    if sure is None or sure.folder not in keep:
        # Only sizes were compared so far. What is kept may have rotted; one that is right byte for byte has to stay.
        right = next((one for one in reversed(ordered) if damage(one) is None), None)
        keep |= set() if right is None else {right.folder}
    removed = [one for one in ordered if one.folder not in keep]
    for one in removed:
        remove_checkpoint(one.folder)
    newest = ordered[-1]
    for step, attempt, folder in layout.checkpoint_folders():
        if not (folder / MANIFEST).exists() and (attempt, step) < (newest.attempt, newest.step):
            _remove_folder(folder)
    collect_chunks(layout, needed=_needed_chunks(layout))
    return removed


def remove_checkpoint(folder: Path) -> None:
    """Removes a checkpoint, its manifest first, so that no reader finds half of it valid."""
    (folder / MANIFEST).unlink(missing_ok=True)
    _remove_folder(folder)


def _remove_folder(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except (
        FileNotFoundError
    ):  # the mirror drops what is over the spool's bound, perhaps this one, perhaps now
        shutil.rmtree(folder, ignore_errors=True)


def _needed_chunks(layout: RunLayout) -> set[str]:
    """Names in all manifests that can be read, damaged checkpoints included: somebody may repair them."""
    needed = set()
    for _, _, folder in layout.checkpoint_folders():
        data = read_json(folder / MANIFEST) or {}
        files = data.get("files")
        for entry in files if isinstance(files, list) else []:
            if isinstance(entry, dict):
                needed.add(str(entry.get("name", "")))
    return needed
