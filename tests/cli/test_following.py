from __future__ import annotations

import threading

import pytest

from rlnb.cli.following import ProgressLine, Upload, follow
from rlnb.errors import JobFailed
from rlnb.job import Job
from rlnb.run.status import State, observe
from tests.job.runs import finish, lose_supervisor


@pytest.fixture
def run(make_run):
    made = make_run(total=1_000)
    made.begin()
    return made


def test_a_pipe_gets_a_line_per_state_and_the_last_word(capsys):
    line = ProgressLine(quiet=False)
    for text in ("starting", "running, 1", "running, 2", "running, 3", "completed, 3"):
        line.show(text)
    line.close()
    assert capsys.readouterr().out.splitlines() == ["starting", "running, 1", "completed, 3"]


def test_the_last_word_is_said_when_it_was_not_shown(capsys):
    line = ProgressLine(quiet=False)
    line.show("running, 1")
    line.show("running, 2")
    line.close()
    assert capsys.readouterr().out.splitlines() == ["running, 1", "running, 2"]


def test_a_terminal_line_is_redrawn_in_place(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    line = ProgressLine(quiet=False)
    line.show("running, " + "x" * 50)
    line.show("done")
    line.close()
    assert capsys.readouterr().out == "\rrunning, xxxxxxxxxx\rdone" + " " * 15 + "\n"


def test_following_ends_with_the_run(run, capsys):
    thread = threading.Timer(0.7, finish, [run])
    thread.start()
    assert follow(Job(run.layout.id, run.layout)) == 0
    thread.join()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("running")
    assert shown[-1].startswith("completed")


def test_following_a_failure_raises_it_with_the_job(run):
    finish(run, State.FAILED, "cell 2 raised")
    job = Job(run.layout.id, run.layout)
    with pytest.raises(JobFailed, match="cell 2 raised") as caught:
        follow(job, quiet=True)
    assert caught.value.job is job


def test_an_upload_is_waited_for_while_its_supervisor_lives(run, monkeypatch):
    run.end()
    upload = Upload()
    assert upload.goes_on(observe(run.layout))
    monkeypatch.setattr("rlnb.cli.following.UPLOAD_PATIENCE", 0.0)
    assert not upload.goes_on(observe(run.layout))  # bytes stand still
    monkeypatch.undo()
    lose_supervisor(run)
    assert not Upload().goes_on(observe(run.layout))
