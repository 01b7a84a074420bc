"""What a lab needs in a job: its design file, and of the folder beside it the recordings and notes.

A lab that lives in this process names its files itself. Without a kernel they are found by the source:
a literal that names a design file, or `Lab("<id>")`, which keeps its design under a name made from the id.
Frames of episodes stay behind; nothing in a job looks at them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rlnb.errors import CaptureError
from rlnb.run.design_file import default_design_path

_YAML = (".yaml", ".yml")


def live_lab_files(folder: Path, files: Iterable[Path]) -> Iterator[Path]:
    """The files that a lab names, without frames.

    Raises:
        CaptureError: one is outside the notebook's folder.
    """
    for path in map(Path, files):
        # Not resolved as a whole: a link inside the folder keeps its name in the bundle.
        place = path.parent.resolve() / path.name
        if not place.is_relative_to(folder):
            raise CaptureError(
                f"The lab's file {path} is outside the notebook's folder {folder}, so the job would lack it; "
                f"move it there and give the lab design={path.name!r}."
            )
        if place.is_file() and not _is_frames(place):
            yield place


def named_lab_files(folder: Path, trees: Sequence[ast.Module]) -> Iterator[Path]:
    """The files of the labs that the source names."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _beside(folder, node.value)
    for label in _labels(trees):
        name = str(default_design_path(label))
        if (folder / name).is_file():
            yield folder / name
        yield from _beside(folder, name)


def is_recording(path: Path) -> bool:
    """Whether a lab's file is an episode's: those are left out where all would be too much."""
    return path.suffix == ".parquet"


def _beside(folder: Path, literal: str) -> Iterator[Path]:
    """Recordings and notes of the design file that a literal names, if it names one."""
    if not literal.endswith(_YAML) or "\n" in literal or "\0" in literal or len(literal) > 255:
        return
    beside = (folder / literal).with_suffix(".lab").resolve()
    if beside == folder or not beside.is_relative_to(folder) or not beside.is_dir():
        return
    notes = beside / "lab.json"
    for path in (*sorted((beside / "episodes").glob("*.parquet")), notes):
        if path.is_file() and not _is_frames(path):
            yield path


def _is_frames(path: Path) -> bool:
    return any(part == "frames" or "frames" in part.split(".")[1:] for part in path.parts[-2:])


def _labels(trees: Sequence[ast.Module]) -> Iterator[str]:
    """The environment ids of calls such as `rlnb.Lab("CartPole-v1")` that give no design."""
    known: dict[str, list[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (text := _text(node.value)) is not None:
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        known.setdefault(target.id, []).append(text)
    for tree in trees:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or len(node.args) > 2 or not _is_lab(node.func):
                continue
            keywords = {item.arg: item.value for item in node.keywords}
            env = node.args[0] if node.args else keywords.get("env")
            if "design" in keywords or None in keywords or env is None:
                continue
            text = _text(env)
            yield from [text] if text is not None else known.get(getattr(env, "id", ""), ())


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_lab(function: ast.expr) -> bool:
    return (function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")) == "Lab"
