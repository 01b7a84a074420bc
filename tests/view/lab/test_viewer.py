from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from rlnb.view.lab.charts.viewer import MAX_STEPS, Episode, EpisodeViewer, shown_steps
from tests.view.lab.shown import episode, picture


@pytest.fixture
def viewer(monkeypatch):
    made = EpisodeViewer()
    made.sent = []
    monkeypatch.setattr(made, "send", lambda content, buffers=None: made.sent.append((content, buffers)))
    return made


def asks(viewer, want, key="demo:200"):
    viewer._msg_callbacks(viewer, {"want": want, "episode": key}, [])


def test_all_values_of_an_episode_are_sent_exactly(viewer):
    shown = episode()
    viewer.show(shown)
    json.dumps([viewer.words, viewer.figure], allow_nan=False)
    rows = np.frombuffer(viewer.data).reshape(-1, viewer.words["count"])
    assert len(rows) == 1 + 3 * 4 + 2 * 2 + 8
    assert rows[0].tolist() == list(range(200))
    np.testing.assert_array_equal(rows[4], shown.terms[1].values)
    np.testing.assert_array_equal(rows[5], shown.terms[1].contributions)
    np.testing.assert_array_equal(rows[6], np.cumsum(shown.terms[1].contributions))
    np.testing.assert_array_equal(rows[13], shown.total)
    np.testing.assert_array_equal(rows[16], np.cumsum(shown.environment))
    np.testing.assert_array_equal(rows[-1], shown.components[-1].values)


def test_a_long_episode_is_shown_at_every_third_step_and_the_last():
    assert shown_steps(MAX_STEPS).size == MAX_STEPS
    steps = shown_steps(12_000)
    assert steps.size <= MAX_STEPS
    assert (steps[1], steps[-1]) == (3, 11_999)
    viewer = EpisodeViewer()
    viewer.show(episode(12_000))
    assert viewer.words["stride"] == "every 3. step can be looked at"
    assert viewer.words["length"] == "12,000 steps"
    rows = np.frombuffer(viewer.data).reshape(-1, viewer.words["count"])
    # Sums run over all steps, also over those that are not shown.
    assert rows[3][-1] == pytest.approx(episode(12_000).terms[0].contributions.sum())


def test_pictures_are_sent_as_asked_for(viewer):
    viewer.show(episode())
    asks(viewer, [4, 5, 6])
    assert viewer.sent == [
        ({"frames": [4, 6], "episode": "demo:200", "failed": {}}, [picture(4), picture(6)])
    ]


def test_a_picture_that_cannot_be_read_says_why(viewer):
    def broken(step):
        raise OSError("the file is gone")

    viewer.show(replace(episode(), frame=broken))
    asks(viewer, [4])
    reason = "The picture of step 4 could not be read: the file is gone"
    assert viewer.sent == [({"frames": [], "episode": "demo:200", "failed": {"4": reason}}, [])]


def test_what_is_asked_for_another_episode_or_without_pictures_is_not_answered(viewer):
    asks(viewer, [4])
    viewer.show(episode())
    asks(viewer, [4], key="demo:30")
    viewer.show(episode(frames=False))
    asks(viewer, [4])
    viewer._msg_callbacks(viewer, {"want": "all"}, [])
    assert viewer.sent == []
    assert viewer.words["frame_steps"] == []


def test_the_cursor_stays_when_only_the_reward_changed(viewer):
    heard = []
    viewer.show(episode())
    viewer.cursor = 70
    viewer.on_cursor(heard.append)
    viewer.show(episode(scale=2.0))
    assert viewer.cursor == 70
    viewer.show(episode(30))
    assert (viewer.cursor, heard) == (0, [0])


def test_an_update_is_one_message(viewer, monkeypatch):
    sent = []
    monkeypatch.setattr(viewer, "send_state", lambda key=None: sent.append(set(key)))
    viewer.show(episode())
    assert sent == [{"words", "data", "figure", "figure_data", "seq"}]


def test_an_episode_without_steps_can_be_shown(viewer):
    viewer.show(Episode("a:0", "nothing", np.empty(0), np.empty(0)))
    assert (viewer.words["count"], viewer.words["length"]) == (0, "0 steps")
