"""The bundle: everything of the notebook's folder that a job takes along.

    bundle/notebook.ipynb       frozen, without outputs
    bundle/environment.json     what it ran with; bundle/lock.txt the packages, pinned
    bundle/files/<name>         the files, laid out like the notebook's folder
    bundle/files.json           their names, sizes, sha256 and why each is there

A file is taken when the code imports it, when a relative string literal names it, or when the
user includes it. Folders are taken by `include` only: a literal such as "runs" may name gigabytes.
"""

from __future__ import annotations

import ast
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb.errors import CaptureError, RunFormatError, SecretError
from rlnb.jobs.localmodules import local_modules
from rlnb.jobs.python_source import parse_cell
from rlnb.run.layout import RunLayout, read_json, safe_join, write_atomic, write_json
from rlnb.run.secrets import Redactor

CAP_BYTES = 50_000_000
FILES = "files"
LOCK = "lock.txt"


@dataclass(frozen=True)
class BundleFile:
    """One file to take along.

    Attributes:
        name: relative to the notebook's folder, with slashes, without "..".
        path: where it is now.
        bytes: its size.
        why: "module", "literal" or "include".
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
    """

    files: tuple[BundleFile, ...]
    folders: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def describe(self) -> str:
        """One line for a person: what goes along and how much it is."""
        if not self.files:
            return "bundle: the notebook only"
        names = [file.name for file in self.files]
        shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        return f"bundle: the notebook and {len(names)} file(s), {readable_bytes(self.bytes)}: {shown}"


def collect(
    folder: Path,
    sources: Sequence[str],
    *,
    include: Iterable[str | Path] = (),
    live_modules: Callable[[], Iterable[Path]] | None = None,
    exclude: Iterable[Path] = (),
) -> Bundle:
    """Find what a job needs of the notebook's folder.

    Args:
        folder: the notebook's folder.
        sources: of the cells that the job runs.
        include: further files and folders, relative to `folder`; patterns are allowed.
        live_modules: returns files of modules that this process has imported from the folder.
        exclude: paths never to take (the notebook itself, a store).

    Raises:
        CaptureError: an included path is missing or outside the folder, or the cap is exceeded.
    """
    folder = folder.resolve()
    excluded = [path.resolve() for path in exclude]
    found: dict[str, BundleFile] = {}
    folders: set[str] = set()

    def take(path: Path, why: str, name: str | None = None) -> None:
        relative = path.relative_to(folder).as_posix() if name is None else name
        if not _skipped(path, excluded):
            found.setdefault(relative, BundleFile(relative, path, path.stat().st_size, why))

    trees = [tree for source in sources if (tree := parse_cell(source)) is not None]
    for name, path in local_modules(folder, trees, live=live_modules() if live_modules else ()):
        take(path, "module", name)
    for literal in _literals(trees):
        path = _inside(folder, literal)
        if path is not None and path.is_file():
            take(path, "literal")
        elif path is not None and path.is_dir() and path != folder and not _skipped(path, excluded):
            folders.add(literal)
    for pattern in include:
        for path in _included(folder, pattern):
            take(path, "include")
    kept = sorted(
        name for name in folders if not any(f.name.startswith(name.strip("./") + "/") for f in found.values())
    )
    bundle = Bundle(tuple(found[name] for name in sorted(found)), tuple(kept))
    if bundle.bytes > CAP_BYTES:
        largest = max(bundle.files, key=lambda file: file.bytes)
        raise CaptureError(
            f"The bundle is {readable_bytes(bundle.bytes)}, over the cap of {readable_bytes(CAP_BYTES)}; the largest "
            f"file is {largest.name} ({readable_bytes(largest.bytes)}, {largest.why}). Name big data by an absolute path."
        )
    return bundle


def _literals(trees: Iterable[ast.Module]) -> Iterator[str]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 256:
                yield node.value


def _inside(folder: Path, literal: str) -> Path | None:
    """The path of a literal that is relative and stays inside the folder, else None."""
    if "\n" in literal or "\0" in literal or literal.startswith(("/", "~")) or not literal.strip("./ "):
        return None
    try:
        path = (folder / literal).resolve()
        return path if path.is_relative_to(folder) and path.exists() else None
    except OSError:
        return None  # too long for a name, or not readable: then it names no file here


def _included(folder: Path, pattern: str | Path) -> Iterator[Path]:
    text = str(pattern)
    absolute = Path(text).expanduser()
    if absolute.is_absolute():
        text = str(absolute.relative_to(folder)) if absolute.is_relative_to(folder) else ".."
    if ".." in Path(text).parts:
        raise CaptureError(
            f"include={str(pattern)!r} is outside the notebook's folder {folder}; copy it into it."
        )
    matches = sorted(folder.glob(text)) if any(c in text for c in "*?[") else [folder / text]
    files = [
        file
        for match in matches
        for file in (sorted(match.rglob("*")) if match.is_dir() else [match])
        if file.is_file()
    ]
    if not files:
        raise CaptureError(f"include={str(pattern)!r} names no file in {folder}; correct the path.")
    for file in files:
        if not file.resolve().is_relative_to(folder):
            raise CaptureError(
                f"include={str(pattern)!r} leads outside {folder} through a link; copy {file.name}."
            )
        yield file


def _skipped(path: Path, excluded: Sequence[Path]) -> bool:
    resolved = path.resolve()
    hidden = {"__pycache__", ".git", ".ipynb_checkpoints", "node_modules", ".venv"}
    return bool(hidden & set(path.parts)) or any(
        resolved == e or resolved.is_relative_to(e) for e in excluded
    )


def refuse_secrets(bundle: Bundle, sources: Iterable[tuple[str, str]], redactor: Redactor) -> None:
    """Refuse to write down a secret.

    Args:
        bundle: its files are searched.
        sources: (what it is, text) of everything else that goes along.

    Raises:
        SecretError: a file or text holds the value of a secret environment variable.
    """
    for what, text in sources:
        if name := redactor.find(text):
            raise SecretError(
                f"{what} holds the value of {name}, which would be written down; "
                f"read it in the job instead: os.environ[{name!r}] with env_vars=[{name!r}]."
            )
    for file in bundle.files if redactor else ():
        if name := redactor.find(file.path.read_bytes()):
            raise SecretError(
                f"The file {file.name} holds the value of {name}; keep secrets out of files a job takes along."
            )


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
