"""Runs on real object storage: outages, a fresh machine, and an OBS-strict server."""

from __future__ import annotations

import shutil

import pytest

from rlnb import settings
from rlnb.jobs.mirror.report import Condition
from rlnb.listing import job as find_job
from rlnb.run.events import read_events
from rlnb.run.layout import read_json
from rlnb.run.metrics import MetricReader, one_history
from rlnb.run.pull import pull
from rlnb.run.status import State
from rlnb.testing.seaweed import SeaweedServer
from tests.e2e.history import assert_same_history
from tests.e2e.processes import everything, kill
from tests.e2e.waiting import until

pytestmark = pytest.mark.s3


@pytest.fixture
def server(tmp_path, monkeypatch):
    with SeaweedServer(tmp_path / "weed") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def uploaded(job) -> bool:
    """Whether the run has ended and its mirror has nothing left to bring."""
    return job.state.final and not everything(job.layout)


def test_a_store_that_goes_away_in_the_middle_costs_nothing(runs, server, tmp_path):
    job = runs.promote("ppo-cartpole", store=server.url("outage"))
    runs.await_step(job, 1000)
    server.stop()
    until(
        lambda: (read_json(job.layout.mirror_json) or {}).get("state") == Condition.UNREACHABLE.value,
        "the mirror to say that the store is unreachable",
    )
    before = runs.step(job)
    until(lambda: runs.step(job) > before + 500 or job.state.final, "training to go on without its store")
    assert "unreachable" in job.status.store
    server.start()
    job.wait(timeout=240)
    until(lambda: uploaded(job), "everything to arrive", timeout=120)
    assert job.status.attempt == 1
    assert {"store_unreachable", "store_ok"} <= {event.kind for event in read_events(job.layout)}
    assert_same_history(job, runs.reference("ppo-cartpole"))

    arrived = pull(job.url, tmp_path / "arrived", what="all")
    kept = [checkpoint.step for checkpoint in job.checkpoints]
    assert [
        step for step, _, folder in arrived.checkpoint_folders() if (folder / "manifest.json").exists()
    ] == kept
    assert MetricReader(arrived).read()[0] == MetricReader(job.layout).read()[0]
    assert read_json(arrived.training_json) == job.record


def test_a_fresh_machine_resumes_from_the_mirror(runs, server, tmp_path, monkeypatch):
    job = runs.promote("sac-pendulum", store=server.url("moved"))
    runs.await_step(job, 450)
    until(lambda: job.checkpoints, "a checkpoint")
    job.suspend()
    until(lambda: job.state is State.SUSPENDED, "the suspended state")
    until(lambda: not everything(job.layout), "everything to arrive", timeout=60)
    url = job.url
    shutil.rmtree(settings.home())

    monkeypatch.setenv("RLNB_HOME", str(tmp_path / "another-home"))
    there = find_job(url)
    assert there.state is State.SUSPENDED
    with pytest.raises(Exception, match="trust"):
        there.resume()
    there.resume(trust=True)
    runs.started.append(there)
    there.wait(timeout=240)
    assert (there.state, there.status.attempt) == (State.COMPLETED, 2)
    assert there.folder.is_relative_to(tmp_path / "another-home")
    assert_same_history(there, runs.reference("sac-pendulum"))


@pytest.mark.slow
def test_killed_with_its_mirror_and_resumed_everything_arrives_once(runs, server, tmp_path):
    job = runs.promote("ppo-cartpole", store=server.url("killed"))
    runs.await_step(job, 2000)
    kill(job.layout, "tree")
    until(lambda: job.state is State.LOST, "the lost state")
    job.resume()
    job.wait(timeout=240)
    until(lambda: uploaded(job), "everything to arrive", timeout=120)
    arrived = pull(job.url, tmp_path / "arrived", what="all")
    assert one_history(MetricReader(arrived).read()[0]) == one_history(MetricReader(job.layout).read()[0])
    assert_same_history(job, runs.reference("ppo-cartpole"))
