"""What the mirror finds in the working copy: a look without following links or opening files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rlnb.errors import RunFormatError
from rlnb.run.atomic import is_temporary
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.parts import APPENDED
from rlnb.run.storage import check_name

#: Below these nothing leaves this machine.
PRIVATE = ("local", "work")
#: Written whole and never changed, so that an equal size means an equal file.
IMMUTABLE = ("attempts/", "bundle/", "control/", "checkpoints/")
_RUN, _STATUS = "run.yaml", "status.json"


class Stamp(NamedTuple):
    """What tells that a file has changed."""

    size: int
    modified: int  # nanoseconds


@dataclass(frozen=True)
class LocalCheckpoint:
    """A checkpoint whose manifest and payload are all there.

    Attributes:
        step, attempt: which one.
        manifest: name of its manifest, relative to the run folder.
        payload: names of its files, chunks included.
        return_mean: the return it was judged by, None when unknown.
    """

    step: int
    attempt: int
    manifest: str
    payload: tuple[str, ...]
    return_mean: float | None = None


@dataclass
class Scan:
    """One look at a working copy.

    Attributes:
        files: ordinary files by name, status.json and run.yaml not among them.
        logs: sizes of the append-only files by name.
        stamps: all regular files, by name.
        checkpoints: the complete ones, newest first.
        damaged: manifests whose payload is missing or of another size, with the reason.
        skipped: names that cannot be mirrored, with the reason.
    """

    files: dict[str, Stamp] = field(default_factory=dict)
    logs: dict[str, int] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    checkpoints: list[LocalCheckpoint] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def scan(layout: RunLayout) -> Scan:
    """Looks at a working copy. Files that come and go meanwhile are seen or not."""
    found = Scan()
    for name, stamp in _walk(layout.root, "", found.skipped):
        found.stamps[name] = stamp
    folders = {path.name for _, _, path in layout.checkpoint_folders()}
    for name, stamp in found.stamps.items():
        top, _, rest = name.partition("/")
        if name.startswith(APPENDED):
            found.logs[name] = stamp.size
        elif top == "checkpoints" and (rest.split("/")[0] in folders or rest.startswith("chunks/")):
            continue  # published by manifest only: no manifest, no checkpoint
        elif name not in (_RUN, _STATUS):
            found.files[name] = stamp
    # A newer attempt has undone what an older one did beyond the step it resumed from.
    folders_by_age = sorted(layout.checkpoint_folders(), key=lambda one: (one[1], one[0]), reverse=True)
    for step, attempt, path in folders_by_age:
        manifest = f"checkpoints/{path.name}/manifest.json"
        if manifest not in found.stamps:
            continue
        try:
            found.checkpoints.append(_checkpoint(layout, step, attempt, manifest, found.stamps))
        except RunFormatError as error:
            found.damaged[manifest] = str(error)
    return found


def atomic(name: str) -> bool:
    """Says whether rlnb itself writes `name`, whole and at once, so that it need not settle."""
    return name.startswith(IMMUTABLE) or name in (_RUN, _STATUS, "training.json")


def _checkpoint(
    layout: RunLayout, step: int, attempt: int, manifest: str, stamps: dict[str, Stamp]
) -> LocalCheckpoint:
    content = read_json(layout.root / manifest)
    listed = content.get("files") if content else None
    if content is None or not isinstance(listed, list):
        raise RunFormatError(f"{manifest} cannot be read; the checkpoint is not published.")
    payload = []
    for item in listed:
        name = f"checkpoints/{_text(item, 'name')}"
        check_name(name, manifest)
        stamp = stamps.get(name)
        if stamp is None or stamp.size != item.get("bytes"):
            seen = "missing" if stamp is None else f"{stamp.size} bytes instead of {item.get('bytes')}"
            raise RunFormatError(f"{name} is {seen}; the checkpoint at step {step} is not published.")
        payload.append(name)
    value = content.get("return_mean")
    mean = float(value) if isinstance(value, int | float) and value == value else None
    return LocalCheckpoint(step, attempt, manifest, tuple(payload), mean)


def _text(item: Any, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, str) else ""


def _walk(folder: Path, prefix: str, skipped: dict[str, str]) -> Iterator[tuple[str, Stamp]]:
    try:
        children = sorted(os.scandir(folder), key=lambda child: child.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for child in children:
        name = prefix + child.name
        if (not prefix and child.name in PRIVATE) or is_temporary(Path(child.name)):
            continue
        try:
            check_name(name).encode()
        except (RunFormatError, UnicodeEncodeError):
            skipped[ascii(name)] = "its name cannot be used in a store"
            continue
        try:
            if child.is_symlink():
                skipped[name] = "links are never followed"
            elif child.is_dir(follow_symlinks=False):
                yield from _walk(Path(child.path), f"{name}/", skipped)
            elif child.is_file(follow_symlinks=False):
                seen = child.stat(follow_symlinks=False)
                yield name, Stamp(seen.st_size, seen.st_mtime_ns)
        except FileNotFoundError:
            continue
