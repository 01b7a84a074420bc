"""The bundle as it lies in a run folder.

bundle/notebook.ipynb       frozen, without outputs
bundle/environment.json     what it was promoted with; bundle/lock.txt the packages, pinned
bundle/files/<name>         the files, laid out like the notebook's folder
bundle/files.json           names, sizes and sha256 of all of these, and why each file is there
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb.errors import RunFormatError
from rlnb.run.atomic import write_atomic
from rlnb.run.layout import RunLayout, read_json, safe_join, write_json

FORMAT = 1
FILES = "files"
LOCK = "lock.txt"


@dataclass(frozen=True)
class BundleFile:
    """One file to take along.

    Attributes:
        name: relative to the notebook's folder, with slashes, without "..".
        path: where it is now.
        bytes: its size.
        why: "module", "literal", "include" or "lab".
    """

    name: str
    path: Path
    bytes: int
    why: str


@dataclass(frozen=True)
class Bundle:
    """The files of a promotion, before they are copied.

    Attributes:
        files: sorted by name.
        folders: folders that literals name and that are not taken along.
        withheld: files that literals name and that are not taken along because such files hold secrets.
        recordings_left_out: a lab's recordings, where they would break the cap.
    """

    files: tuple[BundleFile, ...]
    folders: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    recordings_left_out: tuple[BundleFile, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def describe(self) -> str:
        """Names what goes along and how much it is, to stand in a sentence."""
        if not self.files:
            return "the notebook alone"
        names = [file.name for file in self.files]
        shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        files = "1 file" if len(names) == 1 else f"{len(names)} files"
        return f"the notebook and {files} ({readable_bytes(self.bytes)}: {shown})"


def write_bundle(
    layout: RunLayout,
    bundle: Bundle,
    *,
    notebook: str,
    notebook_name: str,
    environment: dict[str, Any],
    lock: str,
) -> str:
    """Write the bundle of a new run; files.json comes last.

    Returns:
        The bundle's sha256, over the names and hashes of everything in it.
    """
    write_atomic(layout.bundle_notebook, notebook)
    write_json(layout.environment_json, environment)
    write_atomic(layout.bundle / LOCK, lock)
    for file in bundle.files:
        target = safe_join(layout.bundle / FILES, file.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, target)
    whys = {f"{FILES}/{file.name}": file.why for file in bundle.files}
    names = ["notebook.ipynb", "environment.json", LOCK, *whys]
    entries = []
    for name in sorted(names):
        data = (layout.bundle / name).read_bytes()
        entries.append(
            {
                "name": name,
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "why": whys.get(name, "rlnb"),
            }
        )
    write_json(layout.bundle_files, {"format": 1, "notebook": notebook_name, "files": entries})
    return bundle_sha(layout)


def bundle_sha(layout: RunLayout) -> str:
    """Return the sha256 that identifies a bundle in the local index, from the files themselves.

    Raises:
        RunFormatError: there is no manifest, or a file differs from it.
    """
    lines = []
    for entry in _entries(layout):
        digest = hashlib.sha256(_read(layout, entry)).hexdigest()
        lines.append(f"{entry['name']} {digest}\n")
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def lay_out(layout: RunLayout) -> Path:
    """Make `work/` afresh, laid out like the notebook's folder, and return it.

    The frozen notebook is not put there: the job is run from `bundle/`, and the name stays free.

    Raises:
        RunFormatError: the bundle's manifest is missing, or a file differs from it.
    """
    if layout.work.exists():
        shutil.rmtree(layout.work)
    layout.work.mkdir(parents=True)
    for entry in _entries(layout):
        folder, _, name = str(entry["name"]).partition("/")
        if folder == FILES and name:
            target = safe_join(layout.work, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_read(layout, entry))
    return layout.work


def _entries(layout: RunLayout) -> list[dict[str, Any]]:
    manifest = read_json(layout.bundle_files)
    if manifest is None:
        raise RunFormatError(
            f"{layout.bundle_files} is missing or torn; fetch the run again or promote it anew."
        )
    entries: list[dict[str, Any]] = manifest["files"]
    return entries


def _read(layout: RunLayout, entry: dict[str, Any]) -> bytes:
    path = safe_join(layout.bundle, str(entry["name"]))
    data = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise RunFormatError(
            f"{path} is not the file that was promoted (its sha256 differs); fetch the run again."
        )
    return data


def readable_bytes(count: float) -> str:
    """Return a size as people write it, for example "12.3 MB"."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
