from __future__ import annotations

import json
import threading

import pytest

from rlnb.run.status import State
from tests.job.runs import finish


@pytest.fixture
def run(make_run):
    made = make_run("exp-2026-11-30-lander-7f3a", total=2_000)
    made.begin()
    return made


@pytest.fixture
def served(run):
    """The run, with somebody who answers requests as a supervisor does."""
    done = threading.Event()

    def serve():
        while not done.wait(0.02):
            run.answer_requests()

    thread = threading.Thread(target=serve)
    thread.start()
    yield run
    done.set()
    thread.join()


@pytest.mark.parametrize(
    ("verb", "state"), [("pause", "paused"), ("suspend", "suspended"), ("stop", "stopped")]
)
def test_a_verb_is_acknowledged(rlnb, served, verb, state):
    code, out, _ = rlnb(verb, "7f3a")
    assert (code, out) == (0, f"{served.layout.id}: {verb} accepted at step 0\n")
    shown = json.loads(rlnb("show", "7f3a", "--json")[1])
    assert shown["state"] == state


def test_resume_goes_on_after_a_pause(rlnb, served):
    rlnb("pause", "7f3a")
    code, out, _ = rlnb("resume", "7f3a", "--json")
    assert code == 0
    assert json.loads(out)["message"] == "resume accepted at step 0"


def test_what_does_not_answer_is_2(rlnb, run):
    code, _, err = rlnb("pause", "7f3a", "--timeout", "0.1")
    assert code == 2
    assert "did not answer 'pause' within 0.1 s" in err


def test_resuming_what_runs_or_has_completed_is_2(rlnb, run):
    assert "is running, so there is nothing to resume" in rlnb("resume", "7f3a")[2]
    run.end()
    code, _, err = rlnb("resume", "7f3a")
    assert code == 2
    assert "has completed, so there is nothing to resume; fork() starts a new run" in err


def test_waiting_for_a_completed_run_is_0(rlnb, run):
    finish(run)
    assert rlnb("wait", "7f3a")[0] == 0
    assert json.loads(rlnb("wait", "7f3a", "--json")[1])["state"] == "completed"


def test_waiting_for_a_failed_run_is_1_and_says_why(rlnb, run):
    finish(run, State.FAILED, "cell 3 raised")
    code, out, err = rlnb("wait", "7f3a", "--json")
    assert code == 1
    shown = json.loads(out)
    assert shown["error"].startswith(f"{run.layout.id} failed: cell 3 raised")
    assert (shown["id"], shown["run"]) == (run.layout.id, f"file://{run.layout.root.parent}/{run.layout.id}")
    assert "rlnb logs" in err


def test_giving_up_waiting_is_2(rlnb, run):
    code, _, err = rlnb("wait", "7f3a", "--timeout", "0.1")
    assert code == 2
    assert "is still running after 0.1 s; it goes on." in err


def test_a_change_without_a_value_is_2(rlnb, run):
    code, _, err = rlnb("fork", "7f3a", "-c", "learning_rate")
    assert code == 2
    assert "'learning_rate' is not NAME=VALUE" in err


def test_step_is_not_a_setting(rlnb, run):
    assert "write --step" in rlnb("fork", "7f3a", "-c", "step=3")[2]
