from __future__ import annotations

import threading
import time

import pytest

from rlnb.errors import StoreUnreachable
from rlnb.run.control import Verb
from rlnb.run.status import State
from rlnb.view import live, subject
from rlnb.view.actions import Answer, RunActions
from rlnb.view.live import LiveView
from rlnb.view.subject import RunSubject
from rlnb.view.watch import RunWatch


class Kept:
    """An output that remembers what it was given."""

    def __init__(self):
        self.halts, self.ends = [], []

    def halt(self, png, text):
        self.halts.append((png[:4], text))

    def end(self, png, text, closing):
        self.ends.append((png[:4], text, closing))


@pytest.fixture
def make_view(run):
    views = []

    def make(actions=None):
        subject = RunSubject(RunWatch(run.layout), actions or RunActions(run.layout))
        subject.poll()
        view = LiveView(subject, interval=0.01)
        views.append(view)
        return view

    yield make
    for view in views:
        view.close()


def buttons(view):
    return {button["verb"]: button["enabled"] for button in view.widget.head["buttons"]}


def test_it_shows_the_run_before_it_follows(make_view, run):
    view = make_view()
    head = view.widget.head
    assert (head["title"], head["state"], head["value"]) == ("lander", "running", "running")
    assert head["progress"].startswith(f"{run.step:,} of 100,000 steps")
    assert view.widget.marks["last_step"] == run.step
    assert len(view.widget.data_return) > 0
    assert buttons(view) == {"pause": True, "suspend": True, "resume": False, "stop": True}


def test_new_rows_reach_the_widget(make_view, run, until):
    view = make_view()
    view.start()
    run.advance(3000)
    until(lambda: view.widget.marks["last_step"] == run.step)
    run.checkpoint()
    until(lambda: view.widget.marks["checkpoints"] == [run.step])
    assert view.widget.head["details"][-1] == f"checkpoint at {run.step:,}"


def test_nothing_is_sent_while_nothing_changes(make_view, until):
    view = make_view()
    view.start()
    until(lambda: view._thread.is_alive())
    polls = []
    original = view.subject.poll
    view.subject.poll = lambda: polls.append(1) or original()
    sent = view.widget.seq
    until(lambda: len(polls) >= 3)
    assert view.widget.seq == sent


def test_at_most_ten_updates_a_second(run, until):
    subject = RunSubject(RunWatch(run.layout), RunActions(run.layout))
    subject.poll()
    view = LiveView(subject)
    view.start()
    began, seq = time.monotonic(), view.widget.seq
    while time.monotonic() - began < 1.0:
        run.advance(300)
    spent = time.monotonic() - began
    view.close()
    assert 2 <= view.widget.seq - seq <= 10 * spent + 2


def test_an_image_is_kept_at_a_pause_and_replaces_the_widget_at_the_end(make_view, run, until):
    view, output = make_view(), Kept()
    view.attach(output)
    view.start()
    run.become(State.PAUSED)
    until(lambda: output.halts)
    assert output.halts[0][0] == b"\x89PNG"
    assert output.halts[0][1].startswith("lander: paused, keeps the machine")
    assert buttons(view) == {"pause": False, "suspend": True, "resume": True, "stop": True}
    run.become(State.RUNNING)
    until(lambda: view.widget.head["value"] == "running")
    run.become(State.PAUSED)
    until(lambda: len(output.halts) == 2)
    run.end(State.COMPLETED)
    until(lambda: output.ends)
    until(lambda: not view.alive)
    assert len(output.ends) == 1
    assert "completed" in output.ends[0][1]
    assert output.ends[0][2].startswith("run exp-2026-11-30-lander-7f3a in ")
    assert not any(buttons(view).values())


def test_an_output_that_comes_after_the_end_gets_its_image(make_view, run, until):
    view, first, late = make_view(), Kept(), Kept()
    view.attach(first)
    view.start()
    run.end(State.STOPPED)
    until(lambda: first.ends)
    view.attach(late)
    assert len(late.ends) == 1


def test_a_button_asks_and_shows_the_answer(make_view, run, until):
    view = make_view()
    view.start()
    view.widget._msg_callbacks(view.widget, {"verb": "pause"}, [])
    until(lambda: view.widget.head["answer"] == "Asked to pause …")
    assert not any(buttons(view).values())  # until it is answered
    until(run.answer_requests)
    until(lambda: view.widget.head["answer"] == f"pause accepted at step {run.step:,}")
    until(lambda: buttons(view)["resume"])


def test_an_answer_goes_after_a_while(make_view, run, until, monkeypatch):
    monkeypatch.setattr(live, "ANSWER_STAYS", 0.2)

    class Refuses:
        def perform(self, verb, state):
            return Answer(False, f"no {verb} in state {state}")

    view = make_view(Refuses())
    view.start()
    view.widget._msg_callbacks(view.widget, {"verb": "stop"}, [])
    until(lambda: view.widget.head["answer"] == "no stop in state running")
    until(lambda: view.widget.head["answer"] == "")


def test_an_action_that_fails_says_why(make_view, until):
    class Unreachable:
        def perform(self, verb, state):
            raise StoreUnreachable("the store does not answer")

    view = make_view(Unreachable())
    view.start()
    view.widget._msg_callbacks(view.widget, {"verb": "stop"}, [])
    until(lambda: view.widget.head["answer"] == "stop failed: the store does not answer")
    assert buttons(view)["stop"]


def test_a_second_press_while_one_waits_is_ignored(make_view, until):
    entered, leave, asked = threading.Event(), threading.Event(), []

    class Slow:
        def perform(self, verb, state):
            asked.append(verb)
            entered.set()
            assert leave.wait(10)
            return Answer(True, "done")

    view = make_view(Slow())
    view.start()
    view.widget._msg_callbacks(view.widget, {"verb": "pause"}, [])
    assert entered.wait(10)
    view.widget._msg_callbacks(view.widget, {"verb": "stop"}, [])
    leave.set()
    until(lambda: view.widget.head["answer"] == "done")
    assert asked == [Verb.PAUSE]


def test_words_that_are_no_verbs_are_ignored(make_view):
    view = make_view()
    view.widget._msg_callbacks(view.widget, {"verb": "explode"}, [])
    assert view._busy is False


def test_a_folder_of_a_newer_rlnb_ends_the_view_with_a_sentence(make_view, run, until):
    view = make_view()
    view.start()
    run.layout.status.write_text('{"format": 99}')
    until(lambda: "upgrade rlnb" in view.widget.head["answer"])
    until(lambda: not view.alive)


def test_a_folder_that_is_away_for_a_while_is_followed_again(make_view, run, until):
    view = make_view()
    original, failures = view.subject.poll, [OSError("stale handle")]

    def poll():
        if failures:
            raise failures.pop()
        return original()

    view.subject.poll = poll
    view.start()
    until(lambda: view.widget.head["answer"] == "The run folder cannot be read now: stale handle")
    run.advance(1000)
    until(lambda: view.widget.marks["last_step"] == run.step)


def test_a_browser_that_lost_its_connection_gets_an_answer(make_view, until):
    view = make_view()
    view.start()
    seq = view.widget.seq
    view.widget._msg_callbacks(view.widget, {"verb": "refresh"}, [])
    until(lambda: view.widget.seq > seq)


def test_the_last_image_waits_for_the_upload(make_view, run, until):
    view, output = make_view(), Kept()
    view.attach(output)
    view.start()
    run.end(State.COMPLETED, upload_pending=5_000_000)
    until(lambda: output.halts)  # in case nobody sees the end of the upload
    assert "5.0 MB to upload" in output.halts[0][1]
    assert view.alive
    assert not output.ends
    run.end(State.COMPLETED)
    until(lambda: output.ends)
    assert "to upload" not in output.ends[0][1]


def test_an_upload_that_hangs_does_not_keep_the_view(make_view, run, until, monkeypatch):
    monkeypatch.setattr(subject, "UPLOAD_WAIT", 0.2)
    view, output = make_view(), Kept()
    view.attach(output)
    view.start()
    run.end(State.COMPLETED, upload_pending=5_000_000)
    until(lambda: output.ends)
    assert "5.0 MB to upload" in output.ends[0][1]
