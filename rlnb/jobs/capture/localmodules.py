"""Which of the user's own modules the notebook imports, directly and through one another."""

from __future__ import annotations

import ast
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path


def local_modules(
    folder: Path, trees: Iterable[ast.Module], *, live: Iterable[Path] = ()
) -> list[tuple[str, Path]]:
    """Find the files of local modules.

    Local are modules below the notebook's folder and below whatever folder the notebook has put
    on `sys.path` itself; installed packages, editable ones too, are found by the job anyway.

    Args:
        folder: the notebook's folder.
        trees: the parsed cells.
        live: files of modules that this process has imported by other means.

    Returns:
        (name in the bundle, file), packages with all their .py files.
    """
    roots = [folder, *_added_paths(folder)]
    found: dict[Path, str] = {}
    waiting = [name for tree in trees for name in _imported(tree)]
    seen = {"rlnb"}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for file, relative in _resolve(name, roots):
            if file not in found:
                found[file] = relative
                waiting += _imported_by(file)
    for file in live:
        resolved = file.resolve()
        if resolved.is_relative_to(folder) and resolved not in found:
            found[resolved] = resolved.relative_to(folder).as_posix()
    return sorted((name, path) for path, name in found.items())


def live_modules(folder: Path) -> list[Path]:
    """The files below the folder that this process has imported, dynamic imports included."""
    folder = folder.resolve()
    files = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if (
            file
            and file.endswith(".py")
            and os.path.isfile(file)  # torch.ops and the like name files that are nowhere
            and Path(file).resolve().is_relative_to(folder)
            and not _installed(Path(file))
        ):
            files.append(Path(file))
    return files


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def _imported_by(file: Path) -> list[str]:
    try:
        return list(_imported(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):
        return []  # it would fail to import here too, with Python's own message


def _resolve(name: str, roots: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The files of a top-level module in the first root that has it."""
    for root in roots:
        module = root / f"{name}.py"
        package = root / name
        if module.is_file():
            yield module.resolve(), f"{name}.py"
            return
        if package.is_dir() and any(package.glob("*.py")) and not _installed(package):
            for file in sorted(package.rglob("*.py")):
                if "__pycache__" not in file.parts:
                    yield file.resolve(), file.relative_to(root).as_posix()
            return


def _added_paths(folder: Path) -> list[Path]:
    """Folders on sys.path that a fresh interpreter would not have there."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    fresh = {Path(path).resolve() for path in (*_pth_lines(), *filter(None, inherited))}
    added = []
    for entry in sys.path:
        path = Path(entry or ".").resolve()
        if path.is_dir() and path != folder and path not in fresh and not _installed(path):
            added.append(path)
    return added


def _pth_lines() -> Iterator[str]:
    """Folders that .pth files put on the path: editable installs."""
    for site_packages in {*site.getsitepackages(), sysconfig.get_path("purelib")}:
        for file in Path(site_packages).glob("*.pth"):
            for line in file.read_text(errors="replace").splitlines():
                if line.startswith("/"):
                    yield line


def _installed(path: Path) -> bool:
    """Whether a path belongs to the interpreter or to its installed packages."""
    resolved = path.resolve()
    if {"site-packages", "dist-packages"} & set(resolved.parts):
        return True
    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return any(resolved.is_relative_to(Path(p).resolve()) for p in standard if p) or resolved.suffix == ".zip"
