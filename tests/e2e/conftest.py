from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.job import Job
from rlnb.promote import promote_notebook
from rlnb.run.metrics import MetricReader
from rlnb.run.progress import read_progress
from rlnb.run.status import State
from tests.e2e.notebooks import RECIPES, write_notebook
from tests.e2e.processes import everything
from tests.e2e.waiting import until


class Runs:
    """Promotes recipes, and keeps one undisturbed run of each to compare with."""

    def __init__(self, folder: Path, references: dict[str, Job], reference_folder: Path) -> None:
        self.folder, self._references, self._reference_folder = folder, references, reference_folder
        self.started: list[Job] = []

    def promote(self, recipe: str, *, store: str | None = None, **more) -> Job:
        path = write_notebook(self.folder, RECIPES[recipe])
        job = promote_notebook(path, store=store or str(self.folder / "runs"), check=False, **more)
        self.started.append(job)
        return job

    def reference(self, recipe: str) -> Job:
        """Returns a completed, undisturbed run of the recipe, made once per test session."""
        if recipe not in self._references:
            folder = self._reference_folder / recipe
            folder.mkdir()
            job = promote_notebook(
                write_notebook(folder, RECIPES[recipe]), store=str(folder / "runs"), new=True, check=False
            )
            job.wait(timeout=240)
            assert job.state is State.COMPLETED
            assert job.status.attempt == 1
            self._references[recipe] = job
        return self._references[recipe]

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
    return {}, tmp_path_factory.mktemp("references")


@pytest.fixture
def runs(tmp_path, _references, monkeypatch):
    """See `Runs`; whatever is still alive at the end is killed."""
    monkeypatch.setenv("RLNB_HEARTBEAT", "0.2")
    monkeypatch.setenv("RLNB_BACKOFF", "0.1")
    made = Runs(tmp_path, *_references)
    yield made
    for job in made.started:
        for process in everything(job.layout):
            process.kill()
