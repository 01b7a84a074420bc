"""The run folder: the only place that knows what its files are called.

Everything below `logs/` only ever grows; everything else is written whole and once, apart from
`status.json` and the files below `local/`, which are replaced atomically. `local/` and `work/`
belong to this machine and are not mirrored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlnb.errors import RunFormatError
from rlnb.run.atomic import write_atomic

_CHECKPOINT = re.compile(r"(\d+)-a(\d+)")
_SEGMENT = re.compile(r"(\d+)-(\d+)\.jsonl")


class RunLayout:
    """Names every file of one run.

    Args:
        root: the run folder; it need not exist yet.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()

    def __repr__(self) -> str:
        return f"RunLayout({str(self.root)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunLayout) and other.root == self.root

    def __hash__(self) -> int:
        return hash(self.root)

    @property
    def id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.root.name

    # -- what was asked -------------------------------------------------------------------
    @property
    def run_yaml(self) -> Path:
        return self.root / "run.yaml"

    @property
    def bundle(self) -> Path:
        return self.root / "bundle"

    @property
    def bundle_notebook(self) -> Path:
        return self.bundle / "notebook.ipynb"

    @property
    def bundle_files(self) -> Path:
        """The bundle's own manifest: relative name to size and sha256."""
        return self.bundle / "files.json"

    @property
    def environment_json(self) -> Path:
        return self.bundle / "environment.json"

    # -- who runs it and how it goes --------------------------------------------------------
    @property
    def attempts(self) -> Path:
        return self.root / "attempts"

    def attempt(self, number: int) -> Path:
        return self.attempts / str(number)

    @property
    def status(self) -> Path:
        return self.root / "status.json"

    @property
    def control(self) -> Path:
        return self.root / "control"

    @property
    def training_json(self) -> Path:
        """The record that training has finished."""
        return self.root / "training.json"

    # -- what it makes ------------------------------------------------------------------------
    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    def checkpoint(self, step: int, attempt: int) -> Path:
        return self.checkpoints / f"{step}-a{attempt}"

    def checkpoint_folders(self) -> Iterator[tuple[int, int, Path]]:
        """Yields (step, attempt, folder), oldest first; a folder may be half-written."""
        found = []
        for path in _children(self.checkpoints):
            match = _CHECKPOINT.fullmatch(path.name)
            if match and path.is_dir() and not path.is_symlink():
                found.append((int(match[1]), int(match[2]), path))
        yield from sorted(found)

    @property
    def chunks(self) -> Path:
        """Immutable pieces of replay buffers that several checkpoints share."""
        return self.checkpoints / "chunks"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def init(self) -> Path:
        """What a warm start begins with: laid out like a run folder that has one checkpoint."""
        return self.data / "init"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def metrics(self) -> Path:
        return self.logs / "metrics"

    def metrics_segment(self, attempt: int, sequence: int) -> Path:
        return self.metrics / f"{attempt}-{sequence}.jsonl"

    def metrics_segments(self) -> list[tuple[int, int, Path]]:
        """Returns (attempt, sequence, file) in the order in which they were written."""
        found = []
        for path in _children(self.metrics):
            if match := _SEGMENT.fullmatch(path.name):
                found.append((int(match[1]), int(match[2]), path))
        return sorted(found)

    @property
    def events(self) -> Path:
        return self.logs / "events.jsonl"

    @property
    def train_log(self) -> Path:
        return self.logs / "train.log"

    @property
    def stdout_log(self) -> Path:
        return self.logs / "stdout.log"

    @property
    def tensorboard(self) -> Path:
        return self.logs / "tb"

    def output(self, attempt: int) -> Path:
        return self.root / f"output.{attempt}.ipynb"

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    # -- this machine only -----------------------------------------------------------------
    @property
    def work(self) -> Path:
        """The kernel's working directory: a copy laid out like the notebook's folder."""
        return self.root / "work"

    @property
    def local(self) -> Path:
        return self.root / "local"

    @property
    def progress(self) -> Path:
        return self.local / "progress.json"

    @property
    def flag(self) -> Path:
        return self.local / "flag.json"

    @property
    def worker_json(self) -> Path:
        return self.local / "worker.json"

    @property
    def kernel_json(self) -> Path:
        return self.local / "kernel.json"

    @property
    def processes_json(self) -> Path:
        return self.local / "processes.json"

    @property
    def mirror_json(self) -> Path:
        return self.local / "mirror.json"

    @property
    def supervisor_log(self) -> Path:
        return self.local / "supervisor.log"

    def relative(self, path: Path) -> str:
        """Returns the name of `path` as manifests and stores write it: relative, with slashes."""
        return path.absolute().relative_to(self.root).as_posix()

    def resolve(self, name: str) -> Path:
        """Returns the path of a relative name that came from a manifest or a store.

        Raises:
            RunFormatError: the name is absolute, climbs out of the folder, or passes a link.
        """
        return safe_join(self.root, name)


def safe_join(root: Path, name: str) -> Path:
    """Joins a foreign relative name to `root`, refusing whatever could leave it.

    Raises:
        RunFormatError: the name is absolute, has "..", or passes through a symbolic link.
    """
    parts = name.split("/")
    if (
        not name
        or name.startswith("/")
        or "\\" in name
        or "\0" in name
        or any(p in ("", ".", "..") for p in parts)
    ):
        raise RunFormatError(
            f"The name {name!r} in a run folder is not a plain relative name; refusing to follow it."
        )
    path = root
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise RunFormatError(f"{path} is a symbolic link; rlnb never follows links inside a run folder.")
    return path


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Writes JSON atomically; NaN and infinities are written as Python's json does."""
    write_atomic(path, json.dumps(value, indent=1, default=str) + "\n", durable=durable)


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the object in a JSON file, or None when it is missing, torn or not an object."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
