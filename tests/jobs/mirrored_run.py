"""A run folder as supervisor and trainer would write it, and the real mirror process beside it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from rlnb.run.atomic import write_atomic
from rlnb.run.claims import claim
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout, read_json, write_json
from rlnb.run.record import RunRecord, write_record
from rlnb.run.status import State, Status, write_status

ID = "exp-2026-11-30-cartpole-7f3a"


def make_run(root: Path, store: str, *, exclusive: bool | None = True, complete: bool = True) -> RunLayout:
    """Writes the folder of a run that was promoted and whose attempt 1 this process has claimed."""
    layout = RunLayout(root / ID)
    write_atomic(layout.bundle_notebook, "{}")
    record = RunRecord(
        id=ID, name="cartpole", created="2026-11-30T10:00:00.000Z", rlnb="0.1.0", owner={"user": "a", "host": "h"},
        store={"url": store, "exclusive": exclusive}, notebook={"path": "nb.ipynb"},
        experiment={"algo": "PPO"} if complete else None,
    )  # fmt: skip
    write_record(layout, record)
    claim(layout, 1, rlnb_version="0.1.0")
    set_state(layout, State.RUNNING)
    return layout


def set_state(layout: RunLayout, state: State, *, attempt: int = 1, beat: int = 1) -> None:
    write_status(layout, Status(state, attempt, ProcessIdentity.of(), heartbeat=beat))


def add_checkpoint(
    layout: RunLayout,
    step: int,
    *,
    attempt: int = 1,
    size: int = 1000,
    chunks: tuple[str, ...] = (),
    mean: float = 0.0,
) -> Path:
    """Writes a checkpoint as the trainer does: payload, shared chunks, manifest."""
    folder = layout.checkpoint(step, attempt)
    folder.mkdir(parents=True)
    (folder / "policy.pt").write_bytes(hashlib.shake_128(str(step).encode()).digest(size))
    names = [f"{folder.name}/policy.pt"]
    for text in chunks:
        content = hashlib.shake_128(text.encode()).digest(size)
        name = f"chunks/{hashlib.sha256(content).hexdigest()}.bin"
        write_atomic(layout.checkpoints / name, content)
        names.append(name)
    files = []
    for name in names:
        content = (layout.checkpoints / name).read_bytes()
        files.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    manifest = {"format": 1, "step": step, "attempt": attempt, "return_mean": mean, "files": files}
    write_json(folder / "manifest.json", manifest)
    return folder


def append(layout: RunLayout, name: str, text: str) -> None:
    path = layout.logs / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.write(text)


def start_mirror(layout: RunLayout, attempt: int = 1, **environment: str) -> subprocess.Popen[bytes]:
    """Starts the mirror process with a quick heartbeat."""
    quick = {"RLNB_HEARTBEAT": "0.1", "RLNB_BACKOFF": "0.1"}
    layout.local.mkdir(exist_ok=True)
    with open(layout.local / "mirror.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "rlnb.jobs.mirror", str(layout.root), "--attempt", str(attempt)],
            env={**os.environ, **quick, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip


@contextmanager
def mirroring(layout: RunLayout, attempt: int = 1, **environment: str):
    process = start_mirror(layout, attempt, **environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(condition, *, seconds: float = 30.0, what: str = ""):
    """Waits until `condition()` is truthy and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.02)


def report(layout: RunLayout) -> dict:
    return read_json(layout.mirror_json) or {}


def contents(layout: RunLayout) -> dict[str, bytes]:
    """Returns every mirrored file of a run folder, status.json without what changes on the way."""
    found = {}
    for path in sorted(p for p in layout.root.rglob("*") if p.is_file() and not p.is_symlink()):
        name = layout.relative(path)
        if not name.startswith(("local/", "work/")):
            found[name] = path.read_bytes()
    if "status.json" in found:
        found["status.json"] = json.dumps({**json.loads(found["status.json"]), "upload_pending": 0}).encode()
    return found
