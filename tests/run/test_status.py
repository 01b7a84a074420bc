from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import asdict, replace
from unittest.mock import Mock

import pytest

from rlnb.errors import RunError, RunFormatError, RunNotFound
from rlnb.run import control, progress
from rlnb.run.claims import claim
from rlnb.run.host import ProcessIdentity, boot_id, hostname
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.record import Parent, RunRecord, Target, complete_record, read_record, write_record
from rlnb.run.status import EndKind, Evidence, Observer, State, Status, observe, read_status, write_status


def dead_process() -> ProcessIdentity:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    who = ProcessIdentity.of(child.pid)
    child.wait()
    return who


def test_status_round_trip(tmp_path):
    layout = RunLayout(tmp_path)
    evidence = Evidence(
        EndKind.CELL_ERROR, "cell 3 raised", exit_code=1, cell={"number": 3, "traceback": ["a"]}
    )
    status = Status(State.FAILED, 2, ProcessIdentity.of(), reason="why", evidence=evidence, step=10)
    write_status(layout, status)
    assert replace(read_status(layout), time="") == status


def test_a_newer_status_is_refused(tmp_path):
    write_json(RunLayout(tmp_path).status, {"format": 99})
    with pytest.raises(RunFormatError, match="format 99, this rlnb reads up to 1; upgrade rlnb"):
        read_status(RunLayout(tmp_path))


def test_a_living_supervisor_is_believed_and_a_dead_one_means_lost(tmp_path):
    layout = RunLayout(tmp_path)
    write_status(layout, Status(State.RUNNING, 1, ProcessIdentity.of()))
    assert observe(layout).state is State.RUNNING
    write_status(layout, Status(State.RUNNING, 1, dead_process()))
    assert observe(layout).state is State.LOST
    write_status(layout, Status(State.COMPLETED, 1, dead_process()))
    assert observe(layout).state is State.COMPLETED


def test_a_claimed_attempt_that_has_not_reported_is_starting(tmp_path):
    layout = RunLayout(tmp_path)
    write_status(layout, Status(State.SUSPENDED, 1, dead_process()))
    claim(layout, 2, rlnb_version="t")
    seen = observe(layout)
    assert (seen.state, seen.status.attempt) == (State.STARTING, 1)
    write_json(layout.attempt(2), {**asdict(dead_process()), "attempt": 2})
    assert observe(layout).state is State.SUSPENDED


def test_a_reused_pid_is_not_the_supervisor(tmp_path):
    layout = RunLayout(tmp_path)
    me = ProcessIdentity.of()
    write_status(layout, Status(State.RUNNING, 1, replace(me, pid_start=me.pid_start - 1)))
    assert observe(layout).state is State.LOST


def test_a_restart_of_this_machine_means_lost(tmp_path):
    layout = RunLayout(tmp_path)
    write_status(layout, Status(State.RUNNING, 1, replace(ProcessIdentity.of(), boot_id="another")))
    seen = observe(layout)
    assert (seen.state, "restarted" in seen.why) == (State.LOST, True)


def test_a_foreign_heartbeat_that_stands_still_is_silent_not_lost(tmp_path, monkeypatch):
    layout = RunLayout(tmp_path)
    clock = [100.0]
    monkeypatch.setattr("rlnb.run.status.time.monotonic", lambda: clock[0])
    far = ProcessIdentity("elsewhere", boot_id(), 1, 1)
    assert hostname() != "elsewhere"
    write_status(layout, Status(State.RUNNING, 1, far, heartbeat=1))
    observer = Observer(layout)
    assert not observer.observe().silent
    clock[0] += 7
    assert observer.observe().silent
    assert observer.observe().state is State.RUNNING
    write_status(layout, Status(State.RUNNING, 1, far, heartbeat=2))
    assert not observer.observe().silent


def test_requests_are_answered_once_and_in_order(tmp_path):
    layout = RunLayout(tmp_path)
    first = control.request(layout, control.Verb.PAUSE)
    second = control.request(layout, control.Verb.NOTE, text="hello")
    (layout.control / "rubbish.json").write_text("{")
    assert [r.id for r in control.pending(layout)] == [first, second]
    assert control.pending(layout)[1].args == {"text": "hello"}
    control.acknowledge(layout, control.pending(layout)[0], ok=True, message="paused")
    assert [r.id for r in control.pending(layout)] == [second]
    assert control.await_acknowledgement(layout, first).message == "paused"
    assert control.await_acknowledgement(layout, second, timeout=0) is None


def test_the_flag_is_seen_when_it_changes(tmp_path):
    layout = RunLayout(tmp_path)
    reader = progress.FlagReader(layout)
    assert reader.read() is progress.Flag.RUN
    for flag in (progress.Flag.PAUSE, progress.Flag.RUN, progress.Flag.STOP):
        progress.write_flag(layout, flag)
        assert reader.read() is flag
        assert reader.read() is flag


def test_progress_round_trip(tmp_path):
    layout = RunLayout(tmp_path)
    assert progress.read_progress(layout) is None
    said = progress.Progress(progress.Phase.TRAINING, 1, 500, 1000, 5.0, 20.5, 100.0, 400)
    progress.write_progress(layout, said)
    assert progress.read_progress(layout) == said


def record(**changes) -> RunRecord:
    base = RunRecord(
        id="exp-1", name="cart", created="2026-11-30T00:00:00Z", rlnb="0.1.0", owner={"user": "u", "host": "h"},
        store={"url": "/runs"}, notebook={"path": "a.ipynb"}, parameters={"seed": 1, "lr": float("inf")},
        parent=Parent("exp-0", 500),
    )  # fmt: skip
    return replace(base, **changes)


def test_run_yaml_round_trip_and_is_completed_once(tmp_path):
    layout = RunLayout(tmp_path)
    with pytest.raises(RunNotFound, match="no run.yaml"):
        read_record(layout)
    write_record(layout, record(tags=["a"]))
    assert read_record(layout) == record(tags=["a"])
    done = complete_record(
        layout, experiment={"algo": "PPO", "tags": ["b"]}, fingerprint="f", name="n", target=Target("c", 2)
    )
    assert (done.experiment["algo"], done.tags, done.target) == ("PPO", ["a", "b"], Target("c", 2))
    again = complete_record(layout, experiment={"algo": "DQN"}, fingerprint="g", name="m", target=Target())
    assert again == done == read_record(layout)


def test_wrong_run_yaml_is_refused_with_a_sentence():
    with pytest.raises(RunFormatError, match="format 7, this rlnb reads up to 1"):
        RunRecord.from_yaml("format: 7")
    with pytest.raises(RunFormatError, match="no 'format'"):
        RunRecord.from_yaml("- a")
    with pytest.raises(RunFormatError, match="unknown key 'nmae'. Did you mean 'name'"):
        RunRecord.from_yaml("format: 1\nnmae: x")
    with pytest.raises(RunFormatError, match="not valid YAML"):
        RunRecord.from_yaml("a: [")


def test_without_a_readable_status_a_dead_attempt_is_lost_and_a_living_one_is_coming(tmp_path):
    layout = RunLayout(tmp_path)
    assert observe(layout).state is State.QUEUED
    claim(layout, 1, rlnb_version="t")
    seen = observe(layout)
    assert (seen.state, seen.why) == (State.STARTING, f"attempt 1 has begun on {hostname()}")
    layout.status.write_text('{"format": 1, "sta')
    write_json(layout.attempt(1), {**asdict(dead_process()), "attempt": 1})
    seen = observe(layout)
    assert (seen.state, seen.status) == (State.LOST, None)
    assert seen.why.startswith("status.json is missing or unreadable and its supervisor is gone; resume()")
    write_json(layout.attempt(1), {**asdict(replace(dead_process(), host="elsewhere")), "attempt": 1})
    assert observe(layout).why == "attempt 1 has begun on elsewhere"


def test_a_request_that_cannot_be_written_says_why(tmp_path, monkeypatch):
    layout = RunLayout(tmp_path / "gone")
    with pytest.raises(RunError, match=r"'pause' cannot be asked: the run folder is gone \(.*/gone\)"):
        control.request(layout, control.Verb.PAUSE)
    assert not layout.root.exists()
    layout.root.mkdir()
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(control, "write_json", Mock(side_effect=full))
    with pytest.raises(RunError, match="'stop' cannot be asked: No space left on device"):
        control.request(layout, control.Verb.STOP)
