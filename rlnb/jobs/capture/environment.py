"""environment.json: what a run ran with, so that a difference can be named later."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rlnb.run.secrets import Redactor

FORMAT = 1
#: A larger diff is cut; it says so.
DIFF_CAP = 1_000_000
_FLAGS = (
    "PYTHONHASHSEED",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "ATEN_CPU_CAPABILITY",
)


def describe_environment(folder: Path, redactor: Redactor) -> dict[str, Any]:
    """Describe interpreter, packages, machine, git state and determinism flags.

    Args:
        folder: the notebook's folder, whose git repository is described.
        redactor: a diff may hold what must not be written down.

    Returns:
        JSON values: `python`, `packages` (name → version), `platform`, `cpu`, `gpu`, `git`, `determinism`.
    """
    description = {
        "format": FORMAT,
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
        "packages": installed_packages(),
        "platform": {
            "system": platform.platform(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()),
        },
        "cpu": _cpu(),
        "gpu": _gpu(),
        "git": _git(folder),
        "determinism": {name: os.environ.get(name) for name in _FLAGS},
    }
    redacted: dict[str, Any] = redactor.redact_json(description)
    return redacted


def installed_packages() -> dict[str, str]:
    """Return name → version of every installed distribution, sorted."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name, version = _name_and_version(distribution)
        if name:
            found.setdefault(name, version)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _name_and_version(distribution: importlib.metadata.Distribution) -> tuple[str, str]:
    """Reads the head of the metadata only; parsing all of it takes half a second of every promotion."""
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    head = text.partition("\n\n")[0]
    name = re.search(r"^Name: *(.+)$", head, re.MULTILINE)
    version = re.search(r"^Version: *(.+)$", head, re.MULTILINE)
    return (name[1].strip(), version[1].strip()) if name and version else ("", "")


def lock_text(packages: dict[str, str]) -> str:
    """Return the packages as pip reads them."""
    return "".join(f"{name}=={version}\n" for name, version in packages.items())


def _cpu() -> dict[str, Any]:
    info: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            info.setdefault(key.strip(), value.strip())
    except OSError:
        info = {}
    flags = set(info.get("flags", "").split())
    wide = [flag for flag in ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile") if flag in flags]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "model": info.get("model name", platform.processor()),
        "count": os.cpu_count(),
        "usable": usable,
        "vector": wide,
    }


def _gpu() -> list[dict[str, str]]:
    """Name, driver and memory of each NVIDIA device; read without torch, which takes seconds to import."""
    if shutil.which("nvidia-smi") is None:
        return []
    columns = ("name", "driver_version", "memory.total", "compute_cap")
    text = _output(["nvidia-smi", f"--query-gpu={','.join(columns)}", "--format=csv,noheader"])
    rows = [line.split(",") for line in (text or "").splitlines()]
    return [
        dict(zip(columns, (cell.strip() for cell in row), strict=True))
        for row in rows
        if len(row) == len(columns)
    ]


def _git(folder: Path) -> dict[str, Any] | None:
    """Commit and uncommitted changes, or None outside a repository."""
    git = ["git", "-C", str(folder)]
    commit = _output([*git, "rev-parse", "HEAD"])
    if commit is None:
        return None
    # Outputs of notebooks would fill the diff; the bundle holds the notebook itself.
    diff = (
        _output([*git, "diff", "HEAD", "--no-color", "--no-ext-diff", "--", ".", ":(exclude)*.ipynb"]) or ""
    )
    status = _output([*git, "status", "--porcelain", "--", "."]) or ""
    cut = len(diff) > DIFF_CAP
    return {
        "commit": commit.strip(),
        "branch": (_output([*git, "rev-parse", "--abbrev-ref", "HEAD"]) or "").strip(),
        "dirty": bool(status.strip()),
        "untracked": [line[3:] for line in status.splitlines() if line.startswith("??")],
        "diff": diff[:DIFF_CAP] + ("\n… cut at 1 MB\n" if cut else ""),
    }


def _output(command: list[str]) -> str | None:
    """Standard output of a command, or None when it fails, is missing or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
