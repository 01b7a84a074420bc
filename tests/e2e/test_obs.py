"""One full run whose store is as strict as OBS: slow, cutting connections, refusing what OBS refuses."""

from __future__ import annotations

import pytest

from rlnb.run.layout import read_json
from rlnb.run.pull import pull
from rlnb.run.record import read_record
from rlnb.run.status import State
from rlnb.testing.obs_proxy import ObsProxy
from rlnb.testing.seaweed import SeaweedServer
from tests.e2e.history import assert_same_history
from tests.e2e.processes import everything
from tests.e2e.waiting import until

pytestmark = pytest.mark.s3


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    with SeaweedServer(tmp_path / "weed") as server, ObsProxy(server, slow_down=0.03, cut=0.02) as proxy:
        for name, value in proxy.environment.items():
            monkeypatch.setenv(name, value)
        yield proxy


def test_a_full_run_passes_through_an_obs_strict_store(runs, proxy, tmp_path):
    job = runs.promote("ppo-cartpole", store=proxy.url("full"))
    job.wait(timeout=240)
    until(lambda: job.state.final and not everything(job.layout), "everything to arrive", timeout=120)
    assert job.state is State.COMPLETED
    assert read_record(job.layout).store["exclusive"] is not True
    arrived = pull(job.url, tmp_path / "arrived", what="all")
    assert read_json(arrived.training_json) == job.record
    assert read_json(arrived.status)["upload_pending"] == 0
    assert_same_history(job, runs.reference("ppo-cartpole"))
    assert set(proxy.refused) <= {"NotImplemented"}  # the preflight's question about create-only
    assert proxy.slowed + proxy.cuts > 0
