from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from rlnb.jobs.processes import MARK
from rlnb.jobs.survivors import end_survivors, record_processes, recorded_processes, survivors
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout, write_json

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def layout(tmp_path) -> RunLayout:
    return RunLayout(tmp_path / "run")


@pytest.fixture
def start():
    started = []

    def begin(**environ: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(SLEEP, env={**os.environ, **environ}))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def test_recorded_and_marked_processes_are_ended(layout, start):
    worker, stray = start(), start(**{MARK: str(layout.root)})
    record_processes(layout, {worker.pid: "worker"})
    assert survivors(layout) == {worker.pid, stray.pid}
    assert end_survivors(layout) == {worker.pid: "worker", stray.pid: "descendant"}
    assert (worker.wait(10), stray.wait(10)) == (-9, -9)
    assert end_survivors(layout) == {}


def test_a_mirror_may_be_left_to_its_work(layout, start):
    mirror, worker = start(), start()
    record_processes(layout, {mirror.pid: "mirror", worker.pid: "worker"})
    assert end_survivors(layout, mirror=False) == {worker.pid: "worker"}
    assert mirror.poll() is None
    assert end_survivors(layout) == {mirror.pid: "mirror"}


def test_a_stranger_with_a_recorded_pid_lives_on(layout, start):
    stranger = start()
    who = asdict(ProcessIdentity.of(stranger.pid))
    rows = [
        {**who, "role": "worker", "pid_start": who["pid_start"] - 1},
        {**who, "role": "worker", "boot_id": "another boot"},
        {**who, "role": "worker", "host": "another-host"},
    ]
    write_json(layout.processes_json, {"processes": rows})
    assert len(recorded_processes(layout)) == 3
    assert end_survivors(layout) == {}
    assert stranger.poll() is None


def test_who_resumes_does_not_end_itself(layout):
    record_processes(layout, {os.getpid(): "descendant", os.getppid(): "kernel"})
    assert end_survivors(layout) == {}
