from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from rlnb.errors import JobFailed, RunError, UsageError
from rlnb.here import attempt, run_folder
from rlnb.job import Job
from rlnb.run import identity
from rlnb.run.claims import claim
from rlnb.run.events import EventLog
from rlnb.run.host import ProcessIdentity
from rlnb.run.identity import JobIdentity
from rlnb.run.layout import write_json
from rlnb.run.progress import Flag, write_flag
from rlnb.run.status import EndKind, Evidence, State, read_status, write_status
from tests.job.runs import lose_supervisor

CELL = {
    "number": 4,
    "id": "abc",
    "ename": "ZeroDivisionError",
    "evalue": "division by zero",
    "traceback": ["\x1b[0;31m---\x1b[0m", "Cell In[4], line 2", "ZeroDivisionError: division by zero"],
}


@pytest.fixture
def run(make_run):
    return make_run(total=2_000)


def handle(run) -> Job:
    return Job(run.layout.id, run.layout)


def answering(run, job_call):
    """Runs `job_call` while somebody answers requests as a supervisor does; returns its result."""
    done = threading.Event()

    def serve():
        while not done.wait(0.02):
            run.answer_requests()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        return job_call()
    finally:
        done.set()
        thread.join()


def test_a_handle_is_rebuilt_from_a_folder_and_an_id(run):
    run.begin()
    run.advance(500)
    job = handle(run)
    assert job.state is State.RUNNING
    assert job.attempt == 1
    assert job.name == "lander"
    assert job.folder == run.layout.root
    assert job.url == f"file://{run.layout.root.parent}/{job.id}"
    assert job.status.step == run.step >= 500
    assert not job.at_rest


def test_metrics_are_one_history(run):
    run.begin()
    run.advance(1_000)
    run.begin(resume_at=512)
    run.advance(200)
    steps = handle(run).metrics["step"]
    assert steps.is_monotonic_increasing
    assert steps.iloc[-1] == run.step < 1_000


def test_requests_are_acknowledged(run):
    run.begin()
    run.advance(500)
    job = handle(run)
    assert answering(run, job.pause) == f"pause accepted at step {run.step:,}"
    assert job.state is State.PAUSED
    assert answering(run, job.resume) == f"resume accepted at step {run.step:,}"
    assert job.state is State.RUNNING
    answering(run, job.stop)
    assert job.state is State.STOPPED
    assert job.at_rest


def test_an_unanswered_request_says_that_it_stays(run):
    run.begin()
    with pytest.raises(RunError, match=r"did not answer 'pause' within 0.1 s; the request stays"):
        handle(run).pause(timeout=0.1)


def test_a_request_that_comes_too_late_is_told_so_at_once(run):
    run.begin()
    thread = threading.Timer(0.2, run.end)
    thread.start()
    with pytest.raises(RunError, match="ended before it heard of 'pause': it is completed"):
        handle(run).pause(timeout=30)
    thread.join()


def test_a_pause_that_has_not_come_yet_is_taken_back(run):
    run.begin()
    write_flag(run.layout, Flag.PAUSE)
    job = handle(run)
    assert answering(run, job.resume).startswith("resume accepted")
    write_flag(run.layout, Flag.RUN)
    with pytest.raises(UsageError, match="is running, so there is nothing to resume"):
        job.resume()


@pytest.mark.parametrize("verb", ["pause", "suspend", "stop"])
def test_a_run_that_has_ended_cannot_be_asked(run, verb):
    run.begin()
    run.end()
    with pytest.raises(RunError, match=f"is completed; there is nothing to {verb}"):
        getattr(handle(run), verb)()


def test_waiting_returns_the_handle_when_the_run_rests(run):
    run.begin()
    thread = threading.Timer(0.3, run.end)
    thread.start()
    job = handle(run)
    assert job.wait(timeout=10) is job
    thread.join()


def test_waiting_too_long_leaves_the_run_alone(run):
    run.begin()
    with pytest.raises(TimeoutError, match=r"1 of 1 runs still going after 0.1 s: .* \(running\)"):
        handle(run).wait(timeout=0.1)
    assert handle(run).state is State.RUNNING


def test_a_failed_job_shows_traceback_cell_log_and_the_next_commands(run):
    run.begin()
    status = read_status(run.layout)
    evidence = Evidence(EndKind.CELL_ERROR, "cell 4 raised", exit_code=1, cell=CELL, log="logs/stdout.log")
    write_status(run.layout, replace(status, state=State.FAILED, evidence=evidence))
    job = handle(run)
    with pytest.raises(JobFailed) as caught:
        job.wait()
    text = str(caught.value)
    assert caught.value.job is job
    assert "cell 4 raised (exit code 1)" in text
    assert "cell 4: ZeroDivisionError: division by zero" in text
    assert "  Cell In[4], line 2" in text
    assert "\x1b" not in text
    assert f"log:  {run.layout.stdout_log}" in text
    assert f"rlnb logs {job.id}" in text
    assert job.exception == text
    assert text in repr(job)


def test_a_lost_job_says_how_to_go_on(run):
    run.begin()
    lose_supervisor(run)
    job = handle(run)
    assert job.state is State.LOST
    assert "its supervisor is gone" in job.exception
    assert f"rlnb resume {job.id}" in job.exception


def test_a_repr_never_raises(run, tmp_path):
    from rlnb.run.layout import RunLayout

    assert "no-such-run" in repr(Job("no-such-run", RunLayout(tmp_path / "no-such-run")))
    run.layout.status.write_text('{"format": 99, "state": "running"}')
    assert "unreadable: " in repr(handle(run))
    assert "has format 99" in repr(handle(run))
    for garbled in (
        '{"format": 1}',
        '{"format": "x", "state": []}',
        '{"format": 1, "state": "running", "attempt": 1, "evid',
    ):
        run.layout.status.write_text(garbled)
        assert "no supervisor has reported yet" in repr(handle(run))


def test_a_repr_is_text_with_the_progress(run):
    run.begin()
    run.advance(500)
    text = repr(handle(run))
    assert text.startswith("lander: running")
    assert f"{run.step} of 2,000 steps" in text


def test_logs_come_whole_or_by_the_last_lines(run):
    run.begin()
    run.layout.stdout_log.write_text("one\ntwo\nthree\n")
    EventLog(run.layout).append("note", "hello", step=7)
    job = handle(run)
    assert str(job.logs(log="stdout")) == "one\ntwo\nthree"
    assert repr(job.logs(2, log="stdout")) == "two\nthree"
    with pytest.raises(
        UsageError, match="There is no log 'out'; there are all, train, stdout, events, supervisor"
    ):
        job.logs(log="out")
    assert "note at step 7: hello" in job.logs()


def test_training_s_log_is_lines_for_a_person(run):
    run.begin()
    line = {
        "time": "2026-11-30T10:00:00.000Z",
        "level": "info",
        "attempt": 1,
        "message": "paused",
        "step": 7,
        "conditions": {"torch": "2"},
    }
    run.layout.train_log.write_text(json.dumps(line) + "\n{torn")
    assert str(handle(run).logs(log="train")) == "2026-11-30T10:00:00.000Z paused (attempt 1, step 7)\n{torn"


def test_following_a_log_ends_with_the_run(run):
    run.begin()
    run.layout.stdout_log.write_text("one\ntw")

    def end():
        with open(run.layout.stdout_log, "a") as file:
            file.write("o\nunfinished")
        run.end()

    timer = threading.Timer(0.5, end)
    timer.start()
    assert list(handle(run).logs(log="stdout", follow=True)) == ["one", "two", "unfinished"]
    timer.join()


def test_the_training_record_is_read_back(run):
    run.begin()
    job = handle(run)
    assert job.record is None
    write_json(run.layout.training_json, {"step": 2000, "weights_sha256": "ab", "exact_resume": True})
    assert job.record["weights_sha256"] == "ab"


def test_inside_the_job_its_own_run_counts_as_resting(run):
    run.begin()
    identity.bind(JobIdentity(run.layout.root, 1))
    try:
        assert attempt() == 1
        assert run_folder() == run.layout.root
        job = handle(run)
        assert job.wait(timeout=0) is job
    finally:
        identity.bind(None)


def test_outside_a_job_there_is_no_attempt_and_a_scratch_folder(rlnb_home):
    assert attempt() == 0
    assert run_folder() == rlnb_home / "scratch"
    assert run_folder().is_dir()


def test_the_supervisor_of_this_process_is_alive(run):
    claim(run.layout, 1, rlnb_version="0")
    assert ProcessIdentity.of().alive
    assert handle(run).state is State.STARTING


def test_a_kernel_that_ended_has_no_error_line_and_no_checkpoint_to_go_on_from(run):
    run.begin()
    status = read_status(run.layout)
    evidence = Evidence(
        EndKind.KERNEL_DIED,
        "the kernel exited with code 7 in cell 6",
        exit_code=7,
        cell={"number": 6, "id": "c"},
    )
    write_status(run.layout, replace(status, state=State.FAILED, evidence=evidence))
    lines = handle(run).exception.splitlines()
    assert lines[0].endswith("failed: the kernel exited with code 7 in cell 6 (exit code 7)")
    assert lines[1].startswith("log:  ")
    assert lines[-1] == f"try again from the start: rlnb resume {run.layout.id}"
