from __future__ import annotations

import threading

import pytest

from rlnb.buttons import JobActions
from rlnb.errors import RunError
from rlnb.job import Job
from rlnb.run.control import Verb
from rlnb.run.status import State


@pytest.fixture
def run(make_run):
    made = make_run(total=2_000)
    made.begin()
    return made


def test_a_button_asks_through_the_handle(run):
    job = Job(run.layout.id, run.layout)
    done = threading.Event()

    def serve():
        while not done.wait(0.02):
            run.answer_requests()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        answer = JobActions(job).perform(Verb.SUSPEND, State.RUNNING)
    finally:
        done.set()
        thread.join()
    assert (answer.ok, answer.message) == (True, "suspend accepted at step 0")
    assert job.state is State.SUSPENDED


def test_what_cannot_be_asked_is_an_error_the_view_shows(run):
    run.end()
    with pytest.raises(RunError, match="is completed; there is nothing to stop"):
        JobActions(Job(run.layout.id, run.layout)).perform(Verb.STOP, State.COMPLETED)


def test_a_handle_shows_itself_as_text_in_a_terminal(run, capsys):
    Job(run.layout.id, run.layout)._ipython_display_()
    assert "lander: running" in capsys.readouterr().out
