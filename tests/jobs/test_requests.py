"""Pause, suspend, resume, stop and preemption of real runs."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from rlnb.errors import RunError
from rlnb.jobs.executors.local import LocalExecutor
from rlnb.jobs.processes import descendants, marked
from rlnb.jobs.supervisor.supervision import newest_step
from rlnb.run.claims import attempt_owner, latest_attempt
from rlnb.run.control import Verb, await_acknowledgement, request
from rlnb.run.events import read_events
from rlnb.run.layout import read_json
from rlnb.run.progress import read_progress
from rlnb.run.record import Limits
from rlnb.run.status import EndKind, State, read_status

LONG = "from fake_trainer import *\ntrain(100_000)"


def ask(layout, verb: Verb, **args):
    answer = await_acknowledgement(layout, request(layout, verb, **args))
    assert answer is not None, f"{verb} was not answered"
    return answer


def start(runs, *cells, step: int = 2, **record):
    layout = runs.make(*(cells or (LONG,)), **record)
    LocalExecutor().submit(layout)
    runs.until_step(layout, step)
    return layout


def supervisor(layout) -> int:
    return attempt_owner(layout, latest_attempt(layout))["pid"]


def worker(layout) -> int:
    processes = json.loads(layout.processes_json.read_text())["processes"]
    return next(row["pid"] for row in processes if row["role"] == "worker")


def test_pause_keeps_the_kernel_and_resume_goes_on(runs):
    layout = start(runs)
    assert ask(layout, Verb.PAUSE).ok
    status = runs.until_state(layout, State.PAUSED)
    assert status.reason.startswith("pause asked from ")
    step, kernel = read_progress(layout).step, read_json(layout.kernel_json)["pid"]
    assert kernel in marked(layout.root)
    assert (layout.checkpoint(step, 1) / "manifest.json").exists()
    time.sleep(0.3)
    assert read_progress(layout).step == step
    assert ask(layout, Verb.RESUME).message == "training goes on"
    runs.until_step(layout, step + 1)
    assert read_status(layout).state is State.RUNNING
    assert latest_attempt(layout) == 1
    assert read_json(layout.kernel_json)["pid"] == kernel


def test_suspend_frees_the_machine_and_resume_continues(runs):
    layout = start(runs)
    assert ask(layout, Verb.SUSPEND).ok
    status = runs.until_state(layout, State.SUSPENDED)
    step = read_progress(layout).step
    assert status.evidence.message.startswith(f"suspended at a checkpoint, step {step} (suspend asked from ")
    assert not marked(layout.root)
    assert LocalExecutor().submit(layout) == 2
    runs.until_step(layout, step + 3)
    trained = [event.step for event in read_events(layout) if event.kind == "trained_from"]
    assert trained == [0, step]
    status = runs.until_state(layout, State.RUNNING)
    assert (status.attempt, status.retries_used) == (2, 0)


def test_stop_is_final_at_a_safe_point(runs):
    layout = start(runs, LONG, "print('never')")
    assert ask(layout, Verb.STOP).ok
    status = runs.until_state(layout, State.STOPPED)
    assert status.evidence.kind is EndKind.STOPPED
    assert "stopped at a checkpoint, step" in status.reason
    assert not marked(layout.root)
    book = json.loads(layout.output(1).read_text())
    assert [c["metadata"]["papermill"]["status"] for c in book["cells"]] == ["ended", "pending"]


def test_a_training_that_does_not_listen_is_ended_after_the_grace_time(runs):
    layout = start(
        runs, "from fake_trainer import *\ntrain(100_000, deaf=True)", limits=Limits(grace=0.5), step=12
    )
    ask(layout, Verb.STOP)
    status = runs.until_state(layout, State.STOPPED)
    newest = newest_step(layout)  # not a folder that it was just filling
    assert f"the newest checkpoint, step {newest}, is the final one" in status.reason
    ending = next(event for event in read_events(layout) if event.kind == "ending")
    assert ending.message == "no safe point within 0.5 s; training is ended where it is"
    assert not marked(layout.root)


def test_before_training_nothing_is_waited_for(runs):
    layout = runs.make("import time\ntime.sleep(600)", LONG)
    LocalExecutor().submit(layout)
    runs.until_state(layout, State.STARTING)
    ask(layout, Verb.STOP)
    status = runs.until_state(layout, State.STOPPED)
    assert status.reason.startswith("stopped before training started")


def test_a_pause_that_lasts_becomes_a_suspension(runs):
    layout = start(runs, limits=Limits(hold=0.4, grace=10.0))
    ask(layout, Verb.PAUSE)
    status = runs.until_state(layout, State.SUSPENDED)
    assert "it was paused for 0.4 s and the machine is freed" in status.reason


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("who", [supervisor, worker])
def test_preemption_suspends_and_costs_no_retry(runs, who, number):
    layout = start(runs)
    runs.until(layout, lambda status: status.heartbeat >= 3)
    os.kill(who(layout), number)
    status = runs.until_state(layout, State.SUSPENDED)
    assert f"(preempted by {number.name})" in status.reason
    assert "suspended at a checkpoint, step" in status.reason
    assert status.retries_used == 0
    assert not marked(layout.root)


def test_a_signal_to_everybody_suspends_too(runs):
    layout = start(runs)
    everybody = descendants(supervisor(layout)) | {supervisor(layout)}
    for pid in sorted(everybody & (marked(layout.root) | {supervisor(layout)})):
        os.kill(pid, signal.SIGTERM)
    status = runs.until_state(layout, State.SUSPENDED)
    assert "suspended at a checkpoint" in status.reason
    assert "(preempted by SIGTERM)" in status.reason


def test_a_stop_is_heard_while_a_retry_is_waited_for(runs):
    crash = "def hook(step):\n    if step == 7:\n        raise OSError('again')"
    layout = runs.make(
        f"from fake_trainer import *\n{crash}\ntrain(12, every=5, hook=hook)", limits=Limits(backoff=600)
    )
    LocalExecutor().submit(layout)
    reason = runs.until_state(layout, State.QUEUED).reason
    assert reason.startswith(
        "retry 1 of 3 in 60 s, from the checkpoint at step 5: cell 1 raised OSError: again"
    )
    assert ask(layout, Verb.STOP).ok
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.STOPPED, 1)
    assert status.reason == "stopped while no attempt ran; the checkpoint at step 5 is the newest"


def test_an_interrupt_of_the_kernel_suspends_too(runs):
    layout = start(runs)
    os.kill(read_json(layout.kernel_json)["pid"], signal.SIGINT)
    status = runs.ended(layout)
    assert (status.state, status.retries_used) == (State.SUSPENDED, 0)
    assert status.reason.startswith("suspended at a checkpoint, step ")
    assert status.reason.endswith("(training was interrupted by SIGINT)")


def test_a_full_disk_pauses_and_goes_on_by_itself(runs, monkeypatch, tmp_path):
    # The limit is above what any disk has, so this disk counts as full.
    monkeypatch.setenv("RLNB_LEAST_FREE", "1e18")
    layout = runs.make(LONG)
    LocalExecutor().submit(layout)
    status = runs.until_state(layout, State.PAUSED)
    assert status.reason.startswith("the local disk is full: ")
    assert "training goes on by itself when there is space" in status.reason
    answer = ask(layout, Verb.RESUME)
    assert answer.message.startswith("the local disk is full")


def test_a_hang_is_seen_ended_and_retried(runs):
    hook = "def hook(step):\n    if step == 7 and job.attempt == 1:\n        time.sleep(600)"
    layout = runs.make(
        f"from fake_trainer import *\n{hook}\ntrain(12, hook=hook)", limits=Limits(hang=0.6, backoff=0.05)
    )
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt, status.retries_used) == (State.COMPLETED, 2, 1)
    retry = next(event for event in read_events(layout) if event.kind == "retry")
    assert "training made no step for too long and was ended" in retry.message
    assert retry.data["evidence"] == "hang"


def test_a_training_that_waits_for_room_on_the_disk_is_no_hang(runs, monkeypatch):
    monkeypatch.setenv("RLNB_LEAST_FREE", "1e18")
    # It cannot write down that it waits, so what it said last is that it trains.
    hook = "def hook(step):\n    if step == 7:\n        time.sleep(2)"
    layout = runs.make(
        f"from fake_trainer import *\n{hook}\ntrain(12, hook=hook, deaf=True)", limits=Limits(hang=0.6)
    )
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.COMPLETED, 1)


def test_slow_cells_before_training_are_no_hang(runs):
    layout = runs.make(
        "import time\ntime.sleep(1.5)", "from fake_trainer import *\ntrain(3)", limits=Limits(hang=0.5)
    )
    LocalExecutor().submit(layout)
    assert runs.ended(layout).attempt == 1


def test_the_time_after_an_error_in_training_is_no_hang(runs):
    hook = "def hook(step):\n    raise ValueError('no')"
    code = f"from fake_trainer import *\n{hook}\ntry:\n    train(9, hook=hook)\nexcept ValueError:\n    time.sleep(1.5)"
    layout = runs.make(code, limits=Limits(hang=0.5))
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt, status.evidence.kind) == (State.FAILED, 1, EndKind.UNFINISHED)


def test_training_over_its_time_limit_is_a_timeout(runs):
    layout = runs.make(LONG, experiment={"max_hours": 0.5 / 3600}, limits=Limits(grace=0.3))
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.evidence.kind, status.attempt) == (State.FAILED, EndKind.TIMEOUT, 1)
    assert status.reason.startswith("the time limit was reached; ")


def test_what_cannot_be_done_is_answered_with_why(runs):
    layout = start(runs, "from fake_trainer import *\ntrain(3)", "time.sleep(600)", step=3)
    runs.until(layout, lambda status: status.reason == "training has finished; the later cells run")
    assert ask(layout, Verb.PAUSE).message == "training has finished; there is nothing to pause"
    assert ask(layout, Verb.NOTE, text="looks good").ok
    assert ask(layout, Verb.STOP).ok
    status = runs.ended(layout)
    assert status.state is State.COMPLETED
    assert status.reason == "training has finished; the later cells were ended by stop"
    assert [e.message for e in read_events(layout) if e.kind == "note"] == ["looks good"]


def test_a_running_run_is_not_started_again(runs):
    layout = start(runs)
    with pytest.raises(
        RunError, match=f"{layout.id} is running: attempt 1 is supervised by process {supervisor(layout)}"
    ):
        LocalExecutor().submit(layout)


def test_a_request_of_the_time_before_a_resume_is_answered_and_not_obeyed(runs):
    layout = start(runs)
    ask(layout, Verb.SUSPEND)
    runs.until_state(layout, State.SUSPENDED)
    late = request(layout, Verb.STOP)
    LocalExecutor().submit(layout)
    answer = await_acknowledgement(layout, late)
    assert answer is not None
    assert (answer.ok, answer.message) == (False, "too late: the run was resumed after it was asked")
    runs.until(layout, lambda status: status.attempt == 2 and status.state is State.RUNNING)
