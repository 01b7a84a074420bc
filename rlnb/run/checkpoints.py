"""Checkpoints on disk: payload files first, `manifest.json` last. No manifest, no checkpoint.

A manifest lists every file with its size and sha256, so that a damaged checkpoint is recognised before
anything of it is loaded. Names in it are relative to `checkpoints/`.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlnb.errors import CheckpointError, RunFormatError
from rlnb.run.atomic import write_atomic
from rlnb.run.chunks import file_sha256
from rlnb.run.layout import RunLayout, read_json, safe_join, write_json

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint, as its manifest describes it.

    Attributes:
        step: environment steps done, over all attempts.
        attempt: the attempt that wrote it; 0 for the copy that a fork began with.
        folder: where its own files lie.
        time: Unix seconds when it was written.
        return_mean: mean return of the last episodes, or None before the first has ended.
        weights_sha256: of the policy's weights.
        exact: True, or "not exact: …".
        files: [{"name", "bytes", "sha256"}].
        versions: what it was written with.
        meta: everything else that its writer said.
    """

    step: int
    attempt: int
    folder: Path
    time: float
    return_mean: float | None
    weights_sha256: str
    exact: bool | str
    files: list[dict[str, Any]]
    versions: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Size of all its files, shared ones included."""
        return sum(int(entry["bytes"]) for entry in self.files)

    def path(self, name: str) -> Path:
        """Returns the path of one of its own payload files, or of a shared chunk.

        Raises:
            CheckpointError: the manifest lists no such file.
        """
        for entry in self.files:
            if entry["name"] in (name, f"{self.folder.name}/{name}"):
                return safe_join(self.folder.parent, str(entry["name"]))
        raise CheckpointError(f"The checkpoint {self.folder.name} has no {name}; choose another checkpoint.")


Report = Callable[[Path, str], None]


def write_checkpoint(
    layout: RunLayout,
    step: int,
    attempt: int,
    payload: Mapping[str, bytes],
    *,
    meta: Mapping[str, Any],
    shared: tuple[str, ...] = (),
) -> Checkpoint:
    """Writes a checkpoint whole; returns the one that is there when it was written before.

    Args:
        layout: the run folder.
        step: environment steps done.
        attempt: the writing attempt.
        payload: its own files by name.
        meta: return_mean, weights_sha256, exact, versions, and whatever else is to be kept.
        shared: chunks it needs, relative to `checkpoints/`, written before.
    """
    folder = layout.checkpoint(step, attempt)
    if (folder / MANIFEST).exists():
        there = read_checkpoint(layout, folder, step, attempt)
        if damage(there) is None:
            return there
        (folder / MANIFEST).unlink()
    files = []
    for name, data in payload.items():
        write_atomic(folder / name, data)
        sha256 = hashlib.sha256(data).hexdigest()
        files.append({"name": f"{folder.name}/{name}", "bytes": len(data), "sha256": sha256})
    for name in shared:
        path = safe_join(layout.checkpoints, name)
        files.append({"name": name, "bytes": path.stat().st_size, "sha256": path.stem})
    manifest = {
        "format": FORMAT,
        "step": step,
        "attempt": attempt,
        "time": time.time(),
        "files": files,
        **meta,
    }
    write_json(folder / MANIFEST, manifest)
    return read_checkpoint(layout, folder, step, attempt)


def read_checkpoint(layout: RunLayout, folder: Path, step: int, attempt: int) -> Checkpoint:
    """Reads one manifest.

    Raises:
        CheckpointError: there is none, or it cannot be read.
        RunFormatError: it is of a newer format.
    """
    data = read_json(folder / MANIFEST)
    if data is None:
        raise CheckpointError(f"{folder} has no readable {MANIFEST}: it was not finished or is damaged.")
    if not isinstance(data.get("format"), int) or data["format"] > FORMAT:
        raise RunFormatError(
            f"The checkpoint {folder} has format {data.get('format')}, this rlnb reads up to {FORMAT}; upgrade rlnb."
        )
    known = {
        "format",
        "step",
        "attempt",
        "time",
        "files",
        "return_mean",
        "weights_sha256",
        "exact",
        "versions",
    }
    mean = data.get("return_mean")
    try:
        return Checkpoint(
            step, attempt, folder, float(data["time"]), None if mean is None else float(mean),
            str(data["weights_sha256"]), data["exact"] if data["exact"] is True else str(data["exact"]),
            [_entry(one) for one in data["files"]], dict(data.get("versions") or {}),
            {key: value for key, value in data.items() if key not in known} | {"number": int(data.get("number", 1))},
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise CheckpointError(
            f"{folder / MANIFEST} lacks or garbles {error}; choose another checkpoint."
        ) from None


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": str(entry["name"]), "bytes": int(entry["bytes"]), "sha256": str(entry["sha256"])}


def damage(checkpoint: Checkpoint, *, thorough: bool = True) -> str | None:
    """Returns what is wrong with a checkpoint's files, or None.

    Args:
        checkpoint: the checkpoint.
        thorough: compare sha256; otherwise only presence and size.
    """
    for entry in checkpoint.files:
        try:
            path = safe_join(checkpoint.folder.parent, entry["name"])
            size = path.stat().st_size
            if size != entry["bytes"]:
                return f"{entry['name']} has {size} bytes instead of {entry['bytes']}"
            if thorough and file_sha256(path) != entry["sha256"]:
                return f"{entry['name']} has changed since it was written"
        except (OSError, RunFormatError) as error:
            return f"{entry['name']} cannot be read ({error})"
    return None


def checkpoints(
    layout: RunLayout, *, report: Report | None = None, thorough: bool = False
) -> list[Checkpoint]:
    """Returns the checkpoints that can be restored, by step and attempt, oldest first.

    Args:
        layout: the run folder.
        report: called with the folder and the reason for each one that is damaged or half-written.
        thorough: compare sha256 of every file.
    """
    found = []
    for step, attempt, folder in layout.checkpoint_folders():
        try:
            checkpoint = read_checkpoint(layout, folder, step, attempt)
            wrong = damage(checkpoint, thorough=thorough)
        except (CheckpointError, RunFormatError) as error:
            wrong = str(error)
        if wrong is None:
            found.append(checkpoint)
        elif report is not None:
            report(folder, wrong)
    return found


def newest_valid(layout: RunLayout, *, report: Report | None = None) -> Checkpoint | None:
    """Returns the newest checkpoint whose every byte is right, or None.

    "Newest" follows the run's one history: the highest step of the newest attempt that has any; an older
    attempt's later steps were undone when the newer one rewound.

    Args:
        layout: the run folder.
        report: called with the folder and the reason for each one that is skipped.
    """
    return next(valid_from_newest(layout, report=report), None)


def valid_from_newest(layout: RunLayout, *, report: Report | None = None) -> Iterator[Checkpoint]:
    """Yields what `newest_valid` would return if what was yielded before did not exist."""
    candidates = checkpoints(layout, report=report)
    for checkpoint in sorted(candidates, key=lambda one: (one.attempt, one.step), reverse=True):
        wrong = damage(checkpoint)
        if wrong is None:
            yield checkpoint
        elif report is not None:
            report(checkpoint.folder, wrong)


def best(found: list[Checkpoint]) -> Checkpoint | None:
    """Returns the checkpoint with the highest mean return, the newest of equals, or None."""
    rated = [one for one in found if one.return_mean is not None and not math.isnan(one.return_mean)]
    return max(rated, key=lambda one: (one.return_mean, one.step), default=None)


def find_checkpoint(layout: RunLayout, which: str | int) -> Checkpoint:
    """Returns a run's checkpoint by step, or the "best", the "latest" or the "final" one.

    Raises:
        CheckpointError: there is none such, or it is damaged.
    """
    found = sorted(checkpoints(layout), key=lambda one: (one.attempt, one.step))
    newest = found[-1] if found else None
    match which:
        case "best":
            chosen = best(found) or newest
        case "latest" | "final":
            chosen = newest
        case _:
            chosen = next((one for one in reversed(found) if one.step == which), None)
    if chosen is None:
        have = ", ".join(f"{one.step:,}" for one in found) or "none"
        raise CheckpointError(
            f"{layout.id} has no checkpoint {which!r}; it has: {have}. 'best', 'latest' and 'final' are understood, too."
        )
    if which == "final" and not layout.training_json.exists():
        raise CheckpointError(
            f"{layout.id} has not finished training; use 'latest' (step {chosen.step:,}) or 'best'."
        )
    if (wrong := damage(chosen)) is not None:
        raise CheckpointError(
            f"The checkpoint {chosen.folder.name} of {layout.id} is damaged: {wrong}; choose another."
        )
    return chosen
