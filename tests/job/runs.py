"""Run folders to look at, made in milliseconds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from rlnb import settings
from rlnb.run.index import Index
from rlnb.run.index_rows import describe_state
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.record import read_record
from rlnb.run.status import State, read_status, write_status
from rlnb.source import join_run_url
from rlnb.testing.synthetic_run import SyntheticRun


def write_small_bundle(layout: RunLayout, source: str = "pass") -> None:
    """Writes a bundle with a notebook of one cell and its manifest."""
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": source,
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    data = json.dumps(notebook).encode()
    layout.bundle.mkdir(parents=True, exist_ok=True)
    layout.bundle_notebook.write_bytes(data)
    entry = {
        "name": "notebook.ipynb",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "why": "rlnb",
    }
    write_json(layout.bundle_files, {"format": 1, "notebook": "lander.ipynb", "files": [entry]})


class Maker:
    """Makes synthetic runs among this machine's working copies, and lists them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, run_id: str | None = None, *, folder=None, **options) -> SyntheticRun:
        self.count += 1
        layout = RunLayout(
            (folder or settings.runs_dir()) / (run_id or f"exp-2026-11-30-lander-{self.count:04x}")
        )
        run = SyntheticRun(layout, **options)
        write_small_bundle(layout)
        self.list(run)
        return run

    def list(self, run: SyntheticRun) -> None:
        record = read_record(run.layout)
        url = join_run_url(record.store["url"], record.id)
        Index().add(run.layout, record, url=url, **describe_state(run.layout))


def lose_supervisor(run: SyntheticRun) -> None:
    """Makes the recorded supervisor one that is dead, as after its exit or a SIGKILL."""
    status = read_status(run.layout)
    assert status is not None
    write_status(run.layout, replace(status, supervisor=replace(status.supervisor, pid=2**22 + 1)))


def finish(run: SyntheticRun, state: State = State.COMPLETED, message: str = "") -> None:
    """Ends the run as a supervisor does that has nothing left to upload."""
    run.end(state, message)
    lose_supervisor(run)
