from __future__ import annotations

import json

import pytest

from rlnb.errors import RunFormatError, StoreUnreachable
from rlnb.run.layout import RunLayout
from rlnb.run.progress import Phase
from rlnb.run.status import State
from rlnb.testing.synthetic_run import SyntheticRun
from rlnb.view.watch import RunWatch


def test_a_folder_that_does_not_exist_yet_is_a_queued_run(tmp_path):
    watch = RunWatch(RunLayout(tmp_path / "nothing"))
    assert watch.poll()  # the reason is new
    assert watch.facts.state is State.QUEUED
    assert watch.facts.why == "no supervisor has reported yet"
    assert not watch.poll()


def test_what_was_asked_and_how_far_it_is(run):
    watch = RunWatch(run.layout)
    assert watch.poll()
    facts = watch.facts
    assert (facts.name, facts.what, facts.total) == ("lander", "PPO on LunarLander-v3", 100_000)
    assert (facts.state, facts.phase, facts.attempt) == (State.RUNNING, Phase.TRAINING, 1)
    assert facts.step == run.step == watch.history.last_step
    assert facts.steps_per_second == 1900.0
    assert facts.checkpoint is None


def test_only_what_is_new_is_read(run):
    watch = RunWatch(run.layout)
    watch.poll()
    rows = len(watch.history.table("episode"))
    assert not watch.poll()
    run.advance(1000)
    run.checkpoint()
    assert watch.poll()
    assert len(watch.history.table("episode")) > rows
    assert watch.facts.checkpoint == run.step


def test_a_resumed_attempt_goes_back_to_its_checkpoint(run):
    run.checkpoint()
    kept = run.step
    run.advance(5000)
    watch = RunWatch(run.layout)
    watch.poll()
    assert watch.facts.step > kept
    run.begin(resume_at=kept)
    watch.poll()
    assert watch.facts.step == kept
    assert watch.facts.attempt == 2
    assert [mark.step for mark in watch.history.attempts] == [kept]


def test_the_end_brings_its_evidence(run):
    run.end(State.FAILED, "Cell 4 raised ZeroDivisionError.")
    watch = RunWatch(run.layout)
    watch.poll()
    assert watch.facts.state is State.FAILED
    assert watch.facts.explanation == "Cell 4 raised ZeroDivisionError."


def test_a_dead_supervisor_of_this_machine_is_seen(run):
    status = json.loads(run.layout.status.read_text())
    status["supervisor"]["pid_start"] += 1  # another process has its number now
    run.layout.status.write_text(json.dumps(status))
    watch = RunWatch(run.layout)
    watch.poll()
    assert watch.facts.state is State.LOST
    assert "resume()" in watch.facts.explanation


def test_a_store_that_cannot_be_reached_is_said_and_the_picture_stays(run):
    def refresh():
        raise StoreUnreachable("the store does not answer")

    watch = RunWatch(run.layout, refresh=refresh)
    watch.poll()
    assert watch.facts.why == "cannot be reached now: the store does not answer"
    assert watch.facts.step == run.step


def test_a_pull_comes_before_reading(tmp_path):
    layout = RunLayout(tmp_path / "exp")
    calls = []

    def refresh():
        if not calls:
            SyntheticRun(layout).begin()
        calls.append(1)

    watch = RunWatch(layout, refresh=refresh)
    watch.poll()
    watch.poll()
    assert watch.facts.state is State.RUNNING
    assert len(calls) == 1  # not at every poll


def test_a_newer_format_is_refused(run):
    status = json.loads(run.layout.status.read_text()) | {"format": 99}
    run.layout.status.write_text(json.dumps(status))
    with pytest.raises(RunFormatError, match="has format 99, this rlnb reads up to 1; upgrade rlnb"):
        RunWatch(run.layout).poll()


def test_speed_comes_from_the_rows_when_training_is_elsewhere(run):
    run.layout.progress.unlink()
    watch = RunWatch(run.layout)
    watch.poll()
    assert 1500 < watch.facts.steps_per_second < 2300
    assert watch.facts.phase is None
