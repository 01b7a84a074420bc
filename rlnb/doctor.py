"""`rlnb doctor`: what this machine has and lacks for promoting notebooks, each with a remedy.

Every check looks at one thing, never raises, and says in one sentence what to do when it fails.
A check that only limits comfort (the JupyterLab extension, Node) is a note and does not make
`rlnb doctor` fail.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from rlnb import settings
from rlnb.errors import RlnbError

# What a job cannot do without, by distribution name, and the oldest version whose behaviour rlnb relies on.
REQUIRED = (
    ("torch", "2.6"),
    ("stable-baselines3", "2.6"),
    ("gymnasium", "1.0"),
    ("papermill", "2.6"),
    ("nbclient", "0.10"),
    ("ipykernel", "7.0"),
    ("jupyter_client", "8.6"),
    ("s3fs", "2025.2"),
    ("pyarrow", "16.0"),
)
OPTIONAL = (
    ("jupyterlab", "4.4"),
    ("anywidget", "0.9.18"),
    ("mujoco", "3.1"),
    ("box2d", "2.3.10"),
    ("sb3-contrib", "2.6"),
)

MIN_FREE_BYTES = 2_000_000_000
SOCKET_PATH_LIMIT = 107
SOCKET_NAME = 25  # what a kernel appends to the folder


class Verdict(StrEnum):
    """How one check went."""

    OK = "ok"
    NOTE = "note"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report: `remedy` is empty when there is nothing to do."""

    name: str
    verdict: Verdict
    message: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {**asdict(self), "verdict": self.verdict.value}


def examine(store: str | None = None) -> Iterator[Check]:
    """Yields the checks one by one, quick ones first.

    Args:
        store: the store to write, read and delete a small object in; None checks `./runs`.
    """
    yield _interpreter()
    yield from _packages()
    yield _kernel()
    yield _extension()
    yield _home()
    yield _store(store or "./runs")
    yield _node()


def _interpreter() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    kind = "virtual environment" if sys.prefix != sys.base_prefix else "no virtual environment"
    return Check("interpreter", Verdict.OK, f"Python {version} at {sys.executable} ({kind})")


def _packages() -> Iterator[Check]:
    for needed, packages in ((True, REQUIRED), (False, OPTIONAL)):
        for name, minimum in packages:
            yield _package(name, minimum, needed)


def _package(name: str, minimum: str, needed: bool) -> Check:
    title = f"package {name}"
    bad = Verdict.FAIL if needed else Verdict.NOTE
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        remedy = f"run: {sys.executable} -m pip install '{name}>={minimum}'"
        return Check(title, bad, "is not installed", remedy)
    if _version_key(found) < _version_key(minimum):
        remedy = f"run: {sys.executable} -m pip install --upgrade '{name}>={minimum}'"
        return Check(title, bad, f"{found} is older than {minimum}", remedy)
    return Check(title, Verdict.OK, found)


def _version_key(version: str) -> tuple[int, ...]:
    parts = []
    for piece in version.split("+")[0].split("."):
        digits = "".join(character for character in piece if character.isdigit())
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)


def _kernel() -> Check:
    # A job's kernel is started by the interpreter that promoted it, not through a kernelspec; what can fail
    # is ipykernel itself and the length of its socket's path.
    if importlib.util.find_spec("ipykernel") is None:
        remedy = f"run: {sys.executable} -m pip install ipykernel"
        return Check("kernel", Verdict.FAIL, "ipykernel is not installed", remedy)
    try:
        folder = settings.sockets_dir()
    except (RlnbError, OSError) as error:
        remedy = "set XDG_RUNTIME_DIR to a folder of yours"
        return Check("kernel", Verdict.FAIL, f"the folder of kernel sockets cannot be used: {error}", remedy)
    if len(os.fsencode(folder)) + SOCKET_NAME > SOCKET_PATH_LIMIT:
        return Check(
            "kernel",
            Verdict.FAIL,
            f"{folder} is too long for a socket path",
            "set XDG_RUNTIME_DIR to a short path",
        )
    return Check(
        "kernel", Verdict.OK, f"jobs use {sys.executable}, sockets in {folder}{_other_interpreter()}"
    )


def _other_interpreter() -> str:
    """Says so when Jupyter's "Python 3" is another interpreter, whose notebooks may lack these packages."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        argv = KernelSpecManager().get_kernel_spec("python3").argv
    except (NoSuchKernel, OSError, ValueError):
        return "; Jupyter knows no kernel 'python3'"
    python = shutil.which(argv[0]) or argv[0]
    if Path(python).absolute() == Path(sys.executable).absolute() or argv[0] in ("python", "python3"):
        return ""
    return f"; Jupyter's 'python3' is {python}, notebooks there need rlnb too"


def _extension() -> Check:
    places = [Path(sys.prefix) / "share/jupyter/labextensions"]
    places += [Path.home() / ".local/share/jupyter/labextensions"]
    for place in places:
        for name in ("rlnb-lab", "rlnb", "@rlnb/lab"):
            if (place / name / "package.json").exists():
                return Check("JupyterLab extension", Verdict.OK, str(place / name))
    message = "the jobs panel is not installed; notebooks, live plots and the command line work without it"
    return Check("JupyterLab extension", Verdict.NOTE, message)


def _home() -> Check:
    folder = settings.home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".doctor-{uuid.uuid4().hex}"
        try:
            probe.write_bytes(b"rlnb")
        finally:
            probe.unlink(missing_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check(
            "disk",
            Verdict.FAIL,
            f"{folder} cannot be written: {error.strerror}",
            "make room or set RLNB_HOME to a folder of yours",
        )
    message = f"{free / 1e9:.1f} GB free in {folder}"
    if free < MIN_FREE_BYTES:
        remedy = f"free at least {MIN_FREE_BYTES / 1e9:.0f} GB or set RLNB_HOME to another disk"
        return Check("disk", Verdict.FAIL, message, remedy)
    return Check("disk", Verdict.OK, message)


def _store(url: str) -> Check:
    from rlnb.run.storage import open_storage, probe

    title = f"store {url}"
    remedy = "correct the URL, its credentials or its permissions; `rlnb promote` would refuse it too"
    created = _missing_parents(url)
    try:
        result = probe(open_storage(url))
    except (RlnbError, OSError) as error:
        return Check(title, Verdict.FAIL, str(error), remedy)
    finally:
        for folder in created:
            # A check leaves nothing behind: `./runs` is made by the first promote, not by the doctor.
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    if result.error or not (result.writes and result.reads):
        return Check(
            title, Verdict.FAIL, str(result.error or "a written object could not be read back"), remedy
        )
    fence = "is honoured" if result.exclusive else "is not honoured, so only the owning host resumes a run"
    if not result.deletes:
        return Check(title, Verdict.NOTE, f"writes and reads, but refuses deletes; exclusive create {fence}")
    return Check(title, Verdict.OK, f"writes, reads and deletes; exclusive create {fence}")


def _missing_parents(url: str) -> list[Path]:
    if "://" in url and not url.startswith("file://"):
        return []
    folder = Path(url.removeprefix("file://")).expanduser().absolute()
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return missing


def _node() -> Check:
    node = shutil.which("node")
    if node is None:
        return Check(
            "Node",
            Verdict.NOTE,
            "is not installed; only building the JupyterLab extension from source needs it",
        )
    try:
        version = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return Check("Node", Verdict.NOTE, f"{node} does not run: {error}")
    return Check("Node", Verdict.OK, f"{version} at {node}")
