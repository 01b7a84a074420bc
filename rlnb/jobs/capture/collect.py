"""The bundle: which files of the notebook's folder a job takes along.

A file is taken when the code imports it, when a relative string literal names it, or when the
user includes it, or when it belongs to a lab (`lab_files`). Folders are taken by `include` only: a literal such as "runs" may name gigabytes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rlnb.errors import CaptureError, SecretError
from rlnb.jobs.capture.bundle import Bundle, BundleFile, readable_bytes
from rlnb.jobs.capture.lab_files import is_recording, live_lab_files, named_lab_files
from rlnb.jobs.capture.localmodules import local_modules
from rlnb.jobs.capture.python_source import parse_cell
from rlnb.run.secrets import Redactor

CAP_BYTES = 50_000_000
#: Files that hold secrets by convention; only `include` takes them.
_SECRET_FILES = re.compile(r"\.env(\..+)?|.+\.(pem|key|p12|pfx)|id_[a-z0-9]+|\.netrc|credentials(\.json)?")


def collect(
    folder: Path,
    sources: Sequence[str],
    *,
    include: Iterable[str | Path] = (),
    lab: Iterable[Path] = (),
    live_modules: Callable[[], Iterable[Path]] | None = None,
    exclude: Iterable[Path] = (),
) -> Bundle:
    """Find what a job needs of the notebook's folder.

    Args:
        folder: the notebook's folder.
        sources: of the cells that the job runs.
        include: further files and folders, relative to `folder`; patterns are allowed.
        lab: absolute paths of what a live lab needs: its design file and recordings.
        live_modules: returns files of modules that this process has imported from the folder.
        exclude: paths never to take (the notebook itself, a store).

    Raises:
        CaptureError: an included path is missing or outside the folder, a file of the lab is outside it, or
            the cap is exceeded.
    """
    folder = folder.resolve()
    excluded = [path.resolve() for path in exclude]
    found: dict[str, BundleFile] = {}
    folders: set[str] = set()
    withheld: set[str] = set()

    def take(path: Path, why: str, name: str | None = None) -> None:
        relative = path.relative_to(folder).as_posix() if name is None else name
        if not _skipped(path, excluded):
            found.setdefault(relative, BundleFile(relative, path, path.stat().st_size, why))

    trees = [tree for source in sources if (tree := parse_cell(source)) is not None]
    for name, path in local_modules(folder, trees, live=live_modules() if live_modules else ()):
        take(path, "module", name)
    for literal in _literals(trees):
        named = _inside(folder, literal)
        if named is not None and named.is_file():
            if _SECRET_FILES.fullmatch(named.name):
                withheld.add(literal)
            else:
                take(named, "literal")
        elif named is not None and named.is_dir() and named != folder and not _skipped(named, excluded):
            folders.add(literal)
    for pattern in include:
        for path in _included(folder, pattern):
            take(path, "include")
    for path in (*named_lab_files(folder, trees), *live_lab_files(folder, lab)):
        take(path, "lab")
    recordings = [file for file in found.values() if file.why == "lab" and is_recording(file.path)]
    if sum(file.bytes for file in found.values()) <= CAP_BYTES:
        recordings = []
    for file in recordings:  # a report without them is better than no job
        del found[file.name]
    kept = sorted(
        name for name in folders if not any(f.name.startswith(name.strip("./") + "/") for f in found.values())
    )
    bundle = Bundle(
        tuple(found[name] for name in sorted(found)), tuple(kept), tuple(sorted(withheld)), tuple(recordings)
    )
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
    for file in bundle.files:
        if name := redactor.find(file.path.read_bytes()):
            raise SecretError(
                f"The file {file.name} holds the value of {name}; keep secrets out of files a job takes along."
            )
