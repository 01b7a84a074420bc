from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from rlnb.job import Job
from rlnb.promote import promote_notebook
from rlnb.run.layout import RunLayout
from rlnb.run.metrics import MetricReader
from rlnb.run.progress import read_progress
from rlnb.run.status import State
from tests.e2e.notebooks import RECIPES, write_notebook
from tests.e2e.processes import everything
from tests.e2e.waiting import until


class Runs:
    """Promotes recipes, and keeps one undisturbed run of each to compare with.

    Args:
        folder: the test's own.
        references: where the undisturbed runs are, shared by all workers of this test session.
    """

    def __init__(self, folder: Path, references: Path) -> None:
        self.folder, self._references = folder, references
        self.started: list[Job] = []

    def promote(self, recipe: str, *, store: str | None = None, **more) -> Job:
        path = write_notebook(self.folder, RECIPES[recipe])
        job = promote_notebook(path, store=store or str(self.folder / "runs"), check=False, **more)
        self.started.append(job)
        return job

    def reference(self, recipe: str) -> Job:
        """Returns a completed, undisturbed run of the recipe, made once per test session."""
        folder = self._references / recipe
        folder.mkdir(exist_ok=True)
        made = folder / "run.txt"
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be making it
            if not made.exists():
                made.write_text(str(self._undisturbed(recipe, folder).layout.root))
        root = Path(made.read_text())
        return Job(root.name, RunLayout(root))

    def _undisturbed(self, recipe: str, folder: Path) -> Job:
        path = write_notebook(folder, RECIPES[recipe])
        job = promote_notebook(path, store=str(folder / "runs"), new=True, check=False)
        job.wait(timeout=240)
        assert (job.state, job.status.attempt) == (State.COMPLETED, 1)
        return job

    def total(self, recipe: str) -> int:
        return RECIPES[recipe].steps

    def step(self, job: Job) -> int:
        """The newest step known: rows are written at once, progress only once a second."""
        said = read_progress(job.layout)
        rows = MetricReader(job.layout).read()[0]
        return max([said.step if said else 0, *(row["step"] for row in rows)])

    def await_step(self, job: Job, step: int) -> None:
        until(lambda: self.step(job) >= step or job.state.final, f"step {step} of {job.id}", timeout=120)
        assert not job.state.final, job.status


@pytest.fixture(scope="session")
def _references(tmp_path_factory):
    mine = tmp_path_factory.getbasetemp()
    # A worker of xdist has a folder of its own below the session's.
    session = mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
    folder = session / "references"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def runs(tmp_path, _references, monkeypatch):
    """See `Runs`; whatever is still alive at the end is killed."""
    monkeypatch.setenv("RLNB_HEARTBEAT", "0.2")
    monkeypatch.setenv("RLNB_BACKOFF", "0.1")
    made = Runs(tmp_path, _references)
    yield made
    for job in made.started:
        for process in everything(job.layout):
            process.kill()
