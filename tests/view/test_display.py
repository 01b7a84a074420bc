from __future__ import annotations

import base64

import pytest

from rlnb.run.status import State
from rlnb.view import display
from rlnb.view.display import show
from rlnb.view.frontend import FrontEnd

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def published(monkeypatch):
    """What was published: (data, metadata, display id, whether it replaces)."""
    sent = []

    def publish(data, metadata, display_id=None, *, update=False):
        sent.append((data, metadata, display_id, update))

    monkeypatch.setattr(display, "publish", publish)
    yield sent
    for view in display._views.values():
        view.close()
    display._views.clear()


@pytest.fixture
def in_front(monkeypatch):
    def choose(where):
        monkeypatch.setattr(display, "front_end", lambda: where)

    return choose


def test_a_terminal_gets_text(run, in_front, published, capsys):
    in_front(FrontEnd.TERMINAL)
    show(run.layout)._ipython_display_()
    assert capsys.readouterr().out.startswith("lander: running (PPO on LunarLander-v3)\n")
    assert published == []


def test_a_document_gets_an_image_with_text(run, in_front, published):
    in_front(FrontEnd.DOCUMENT)
    show(run.layout)._ipython_display_()
    [(data, metadata, display_id, update)] = published
    assert set(data) == {"image/png", "text/plain"}
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"
    assert metadata["image/png"]["width"] == 960
    assert 400 < metadata["image/png"]["height"] < 900
    assert (display_id, update) == (None, False)


def test_a_notebook_gets_the_widget_and_a_place_for_the_image(run, in_front, published, until):
    in_front(FrontEnd.LIVE)
    show(run.layout)._ipython_display_()
    (live, _, live_id, _), (still, _, still_id, _) = published
    assert set(live) == {WIDGET, "text/plain"}
    assert set(still) == {"text/plain"}
    assert live_id != still_id
    run.become(State.PAUSED)
    until(lambda: len(published) == 3)
    data, _, where, update = published[2]
    assert (set(data), where, update) == ({"image/png", "text/plain"}, still_id, True)
    run.end(State.COMPLETED)
    until(lambda: len(published) == 5)
    assert [entry[2:] for entry in published[3:]] == [(live_id, True), (still_id, True)]
    assert WIDGET not in published[3][0]
    assert "image/png" in published[3][0]
    assert set(published[4][0]) == {"text/plain"}


def test_a_second_showing_shares_the_widget(run, in_front, published):
    in_front(FrontEnd.LIVE)
    show(run.layout)._ipython_display_()
    show(run.layout)._ipython_display_()
    first, second = published[0][0][WIDGET], published[2][0][WIDGET]
    assert first["model_id"] == second["model_id"]
    assert len(display._views) == 1


def test_a_paused_run_has_its_image_at_once(run, in_front, published):
    in_front(FrontEnd.LIVE)
    run.become(State.SUSPENDED)
    show(run.layout)._ipython_display_()
    assert "image/png" in published[1][0]


def test_a_run_that_has_ended_is_an_image_only(run, in_front, published):
    in_front(FrontEnd.LIVE)
    run.end(State.COMPLETED)
    show(run.layout)._ipython_display_()
    assert [set(entry[0]) for entry in published] == [{"image/png", "text/plain"}, {"text/plain"}]


def test_below_a_failed_run_stands_why(run, in_front, published):
    in_front(FrontEnd.LIVE)
    run.end(State.FAILED)
    show(run.layout, failure=lambda: "Boom, in cell 3")._ipython_display_()
    assert published[-1][0] == {"text/plain": "Boom, in cell 3"}


def test_repr_and_mimebundle_are_fresh(run):
    shown = show(run.layout, title="my run")
    before = repr(shown)
    run.advance(1000)
    assert repr(shown) != before
    data, _ = shown._repr_mimebundle_()
    assert data["text/plain"] == repr(shown)
    assert shown.subject.head(busy=False, answer="")["title"] == "my run"
