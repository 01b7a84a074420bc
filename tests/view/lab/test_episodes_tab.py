"""The tab Episodes, driven as a person would: by its fields, its buttons and the list."""

from __future__ import annotations

import threading

import gymnasium as gym
import ipywidgets as w
import numpy as np
import pytest

import rlnb
from rlnb.envs.frames import FrameBudget
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.episodes.episode_data import by_variation, episode_rows, ordered
from rlnb.view.lab.episodes.episodes import BUILT_IN
from rlnb.view.lab.episodes.episodes_tab import EpisodesTab

PATIENCE = 60.0


def failing(obs):
    raise ValueError("no idea\nwhat to do")


def leaving(obs):
    raise SystemExit(1)


@pytest.fixture
def made(tmp_path):
    """A lab of two idle and three random episodes, and its tab."""
    demo = rlnb.record("CartPole-v1", "idle", episodes=2)
    lab = rlnb.Lab(
        "CartPole-v1", demo, design=tmp_path / "a.yaml", policies={"failing": failing, "leaving": leaving}, frames=0
    )  # fmt: skip
    lab.record("random", episodes=3)
    assert lab.bench is not None
    yield lab, lab.bench, EpisodesTab(lab.bench, lab.episodes)
    lab.close()


def click(tab: EpisodesTab, word: str, value: object) -> None:
    tab.list._handle_custom_msg({word: value}, [])


def choose(tab: EpisodesTab, word: str) -> None:
    field = tab.panel._policy
    field.value = next(place for text, place in field.options if text.startswith(word))


def record(tab: EpisodesTab, word: str, count: int, *, images: bool = False) -> str:
    """Records through the panel; returns what it says."""
    choose(tab, word)
    tab.panel._count.value = count
    tab.panel._images.value = images
    tab.panel._record.click()
    assert tab.panel.wait(PATIENCE)
    return tab.panel._words.value


def buttons(tab: EpisodesTab) -> list[w.Button]:
    """Returns the buttons that remove recordings."""
    tab.recordings.widget.selected_index = 0
    rows = tab.recordings._rows.children
    return [row.children[-1] for row in rows if isinstance(row.children[-1], w.Button)]


def test_list_and_viewer_show_the_same_episode(made):
    _lab, bench, tab = made
    assert [row["cells"][0] for row in tab.list.rows] == [
        "idle 1",
        "idle 2",
        "random 1",
        "random 2",
        "random 3",
    ]
    returns = [row["cells"][3] for row in tab.list.rows]
    assert returns == [f"{length:.2f}" for length in bench.preview.lengths]  # CartPole pays 1 a step
    assert [bool(row["group"]) for row in tab.list.rows] == [True, False, True, False, False]
    assert tab.list.rows[0]["group"].startswith("idle: 2 episodes, mean designed return 10.50")

    click(tab, "select", 3)
    assert (bench.episode, tab.list.selected, tab.viewer.words["key"]) == (3, 3, bench.keys[3])
    bench.select(1)
    assert (tab.list.selected, tab.viewer.words["title"]) == (1, "idle 2")
    assert tab.viewer.words["ending"] == "terminated"
    tab._after.click()
    assert (bench.episode, tab._words.value) == (2, "3 of 5")
    click(tab, "select", 77)  # of a list that is older than the episodes
    assert bench.episode == 2


def test_sorted_by_return_and_one_policy_only(made):
    _lab, bench, tab = made
    click(tab, "sort", "environment")
    shown = [bench.preview.env_returns[row["place"]] for row in tab.list.rows]
    assert shown == sorted(shown, reverse=True)
    assert not any(row["group"] for row in tab.list.rows)
    click(tab, "sort", "environment")
    assert tab.list.rows[0]["cells"][0].startswith("idle")
    tab._policy.value = "=random"
    assert {row["cells"][0][:6] for row in tab.list.rows} == {"random"}
    assert (tab._words.value, tab._before.disabled) == ("3 listed", True)
    tab._after.click()
    assert bench.episode == tab.list.rows[0]["place"]


def test_a_slider_changes_contributions_only_while_the_tab_is_seen(made):
    _lab, bench, tab = made

    def last_sum():
        rows = np.frombuffer(tab.viewer.data).reshape(-1, tab.viewer.words["count"])
        return rows[3, -1]  # sum so far of the first term

    def edit(weight):
        bench.edit(reward=rlnb.RewardSpec([rlnb.Term("angle", "theta", weight=weight)]), what="weight")

    edit(1.0)
    before, seq = last_sum(), tab.viewer.seq
    tab.viewer.cursor = 4
    tab.visible = False
    edit(2.0)
    edit(3.0)
    assert tab.viewer.seq == seq
    tab.visible = True
    assert (tab.viewer.seq, tab.viewer.cursor) == (seq + 1, 4)
    assert last_sum() == pytest.approx(3 * before)
    assert [one["name"] for one in tab.viewer.words["components"]] == ["x", "x_dot", "theta", "theta_dot"]
    bench.note(colours={"angle": "#123456"})
    assert tab.viewer.words["terms"][0]["color"] == "#123456"


def test_recorded_through_the_panel_with_pictures_from_an_unused_seed(made):
    lab, bench, tab = made
    bench.select(4)
    choose(tab, "random")
    assert tab.panel._seed.value == 3  # 0 to 2 are recorded
    said = record(tab, "random", 2, images=True)
    assert said.startswith("2 episodes of random, ")
    assert (len(bench.keys), bench.episode, tab.panel._seed.value) == (7, 4, 5)
    assert tab.viewer.words["frame_steps"] == []
    assert tab.viewer.words["no_frames"] == "recorded without pictures"

    click(tab, "select", 6)
    length = int(bench.preview.lengths[6])
    assert tab.viewer.words["frame_steps"] == list(range(length))
    assert tab.viewer.words["rate"] == 50.0
    picture = lab.episodes.frame(bench.keys[6], 0)
    assert picture is not None
    assert picture[:4] == b"RIFF"
    bench.select(0)
    assert tab.viewer.words["no_frames"] == "the notebook's own episodes have no pictures"


def test_only_one_recording_at_a_time_and_stop_keeps_whole_episodes(made, monkeypatch):
    lab, bench, tab = made
    begun, go = threading.Event(), threading.Event()
    real = lab.episodes.record

    def held(*args, progress, **kwargs):
        def tell(what):
            progress(what)
            if what.ended and what.episode == 2:
                begun.set()
                assert go.wait(PATIENCE)

        return real(*args, progress=tell, **kwargs)

    monkeypatch.setattr(lab.episodes, "record", held)
    tab.panel._count.value = 9
    tab.panel._images.value = False
    tab.panel._record.click()
    assert begun.wait(PATIENCE)
    assert (tab.panel._record.disabled, tab.panel.busy) == (True, True)
    first = tab.panel._thread
    tab.panel.start()  # from another view of the same panel
    assert tab.panel._thread is first
    tab.panel._stop.click()
    go.set()
    assert tab.panel.wait(PATIENCE)
    assert tab.panel._words.value.startswith("Stopped: 2 episodes of random")
    assert (len(bench.keys), tab.panel._record.disabled, tab.panel._stop.disabled) == (7, False, True)


def test_a_policy_that_fails_is_one_sentence(made):
    _lab, bench, tab = made
    said = record(tab, "failing", 1)
    assert "failing failed while it was recorded (ValueError: no idea)" in said
    assert "leaving failed while it was recorded (SystemExit: 1)" in record(tab, "leaving", 1)
    assert len(bench.keys) == 5
    assert record(tab, "idle", 1).startswith("1 episode of idle, ")


def test_why_there_are_no_pictures_is_still_known_later(made, monkeypatch):
    _lab, bench, tab = made
    monkeypatch.setattr(
        "rlnb.envs.rollouts.make_drawn", lambda factory: (factory(), "there is no screen")
    )  # fmt: skip
    said = record(tab, "idle", 1, images=True)
    sentence = "There are no frames, because CartPole-v1 cannot draw itself (there is no screen)."
    assert said.endswith(sentence)
    bench.select(5)
    assert tab.viewer.words["no_frames"] == sentence


def test_removed_at_the_second_click_and_never_the_last(made):
    lab, bench, tab = made
    record(tab, "sticky", 1)
    rows = tab.recordings._rows.children
    assert rows == ()  # folded
    one, two = buttons(tab)
    assert tab.recordings._rows.children[1].children[-1].value == "from the notebook"
    one.click()
    two.click()
    assert (one.description, two.description) == ("Remove", "Really?")
    assert len(bench.keys) == 6
    two.click()
    assert len(bench.keys) == 5
    assert tab.recordings.widget.titles[0].startswith("1 recording on disk (")
    lab.episodes.demo = None
    (last,) = buttons(tab)
    last.click()
    last.click()
    assert "These are the last episodes" in tab.recordings._message.value
    assert len(lab.episodes.entries()) == 1


def test_renamed_in_its_row(made):
    lab, bench, tab = made
    buttons(tab)
    key = bench.keys[4]
    tab.recordings._rows.children[2].children[0].value = "by chance"
    assert (bench.label_of(4), bench.keys[4]) == ("by chance", key)
    tab.recordings._rows.children[2].children[0].value = "  "
    assert "needs a label" in tab.recordings._message.value
    assert [entry.label for entry in lab.episodes.entries()] == ["by chance"]


def test_a_damaged_recording_is_a_sentence(made):
    lab, bench, tab = made
    record(tab, "sticky", 1)
    entry = lab.episodes.entries()[-1]
    entry.path.write_bytes(entry.path.read_bytes()[:100])
    assert record(tab, "idle", 1).startswith("1 episode of idle")
    assert tab.recordings.trouble.value.startswith(f"{entry.path.name} is left out: ")
    assert len(bench.keys) == 6


def test_many_components_begin_with_those_that_vary_most(tmp_path):
    lab = rlnb.Lab("LunarLander-v3", design=tmp_path / "l.yaml", episodes=2, frames=0)
    bench = lab.bench
    assert isinstance(bench, Workbench)
    tab = EpisodesTab(bench, lab.episodes)
    matrix = bench.batch.obs.matrix
    names = np.array(bench.batch.obs.names)[np.argsort(-matrix.std(axis=0), kind="stable")]
    assert by_variation(bench.batch.obs) == names.tolist()
    assert [one["name"] for one in tab.viewer.words["components"]] == names[:6].tolist()
    assert tab._choose(("y", "vy"))
    bench.select(1)
    assert [one["name"] for one in tab.viewer.words["components"]] == ["y", "vy"]
    assert tab._choose(None)
    assert len(tab.viewer.words["components"]) == 8
    rows = episode_rows(bench)
    assert [row.place for row in ordered(rows, "length")] == np.argsort(bench.preview.lengths).tolist()
    lab.close()


class Scored(gym.Env):
    """Two steps an episode; `info` has a score only after somebody has taught it."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    taught = False

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, self.steps == 2, False, {"score": 1.0} if Scored.taught else {}


def test_what_only_the_removed_episodes_have_keeps_them(tmp_path, monkeypatch):
    lab = rlnb.Lab(Scored, design=tmp_path / "a.yaml", episodes=2, frames=0)
    monkeypatch.setattr(Scored, "taught", True)
    lab.record("idle", episodes=1)
    lab.change(reward=[rlnb.Term("score", 'info["score"]', clip=(0, 1))])
    tab = EpisodesTab(lab.bench, lab.episodes)
    for _ in range(2):
        buttons(tab)[1].click()
    assert "idle is not removed, as the design needs it: " in tab.recordings._message.value
    assert len(lab.episodes.entries()) == 2
    for _ in range(2):
        buttons(tab)[0].click()
    assert lab.bench.keys == (f"{lab.episodes.entries()[0].id}:0",)
    lab.close()


def test_pictures_that_cannot_be_read_are_said(made):
    lab, _bench, _ = made
    frames = FrameBudget(megabytes=1)
    lab.episodes.record(BUILT_IN[2], episodes=1, seed=9, frames=frames)
    entry = lab.episodes.entries()[-1]
    entry.frames.write_bytes(b"damaged")
    for _ in range(2):
        assert "cannot be read" in lab.episodes.pictures(f"{entry.id}:0").said
