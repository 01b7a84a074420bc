from __future__ import annotations

import json

import numpy as np
import pytest

from rlnb.view.figures import PALETTE
from rlnb.view.lab.charts.figures import Bars, HeatMap, Layer, LinesFigure, Points, Stacked, Strips
from rlnb.view.lab.charts.packing import Packer, bin_means, choose, jitter, pack, themed
from rlnb.view.lab.charts.plots import PlotsWidget
from tests.view.lab.shown import figures


def packed(figure):
    packer = Packer()
    words = pack(figure, packer)
    numbers = np.frombuffer(packer.bytes(), dtype=np.float32)
    return words, lambda place: numbers[place[0] : place[0] + place[1]]


def stacked(y, x=None):
    x = np.arange(len(y), dtype=float) if x is None else x
    return Stacked(
        "a", "Terms", "reward per step", "step", x, [Layer("one", 0, y)], [Layer("total", "ink", y)]
    )


def test_every_kind_packs_into_json_and_float32():
    for figure in figures():
        words, array = packed(figure)
        json.dumps(words, allow_nan=False)
        assert words["said"].startswith(figure.title)
    words, array = packed(stacked(np.array([1.0, -2.0, np.nan])))
    assert array(words["x"]).tolist() == [0, 1, 2]
    assert array(words["layers"][0]["y"])[:2].tolist() == [1, -2]
    assert words["end"] == 3
    assert words["said"] == "Terms, reward per step: sums over 3 steps: total -1.00, one -1.00"


def test_long_stacks_are_means_that_still_add_up_and_say_so():
    y = np.arange(2000.0)
    words, array = packed(stacked(y))
    assert words["layers"][0]["y"][1] == 667
    assert words["note"] == "mean of every 3 steps"
    assert array(words["layers"][0]["y"])[:2].tolist() == [1, 4]
    assert words["end"] == 1998 + 3


def test_bin_means_leave_out_what_is_not_finite():
    x, means, size = bin_means(np.arange(4.0), np.array([[1.0, np.nan, np.nan, np.nan]]), bins=2)
    assert (x.tolist(), size) == ([0, 2], 2)
    assert means[0, 0] == 1
    assert np.isnan(means[0, 1])


def test_long_lines_keep_their_peaks():
    y = np.zeros(50_000)
    y[31_234] = 9.0
    words, array = packed(LinesFigure("a", "A", "m", "step", np.arange(50_000.0), [Layer("y", 0, y)]))
    assert words["x"][1] <= 2000
    assert array(words["lines"][0]["y"]).max() == 9


def test_too_many_episodes_are_thinned_evenly_with_both_ends():
    values = np.concatenate([np.arange(9999.0)[::-1], [np.nan]])
    chosen = choose(values, 100)
    assert len(chosen) == 100
    assert {0.0, 9998.0} <= set(values[chosen])
    labels = ["a"] * 10_000
    words, array = packed(Strips("s", "S", "r", values, labels, labels, {"a": 0}))
    assert words["groups"][0]["count"] == 9999
    assert words["groups"][0]["mean"] == 4999
    assert words["note"] == "7,999 episodes are not drawn"
    # Places in the arrays, so that a click tells which episode was meant.
    index = array(words["groups"][0]["index"]).astype(int)
    assert values[index].tolist() == array(words["groups"][0]["x"]).tolist()


def test_points_keep_their_places_over_labels_and_gaps():
    labels = ["a", "b", "a", "b"]
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, np.nan, 5.0, 6.0])
    words, array = packed(Points("p", "P", "x", "y", x, y, labels, list("wxyz"), {"a": 0, "b": 1}))
    assert [array(group["index"]).tolist() for group in words["groups"]] == [[0, 2], [3]]
    assert words["groups"][1]["names"] == ["z"]


def test_jitter_is_the_same_each_time_and_spreads():
    assert jitter(5).tolist() == jitter(5).tolist()
    assert np.histogram(jitter(1000), bins=10, range=(-0.5, 0.5))[0].min() >= 99


def test_counts_are_never_stacked_on_a_logarithmic_axis():
    edges, layer = np.array([0.0, 1.0, 2.0]), Layer("a", 0, np.array([3.0, 1.0]))
    words, _ = packed(Bars("b", "B", "steps", "reward", edges, [layer], stacked=True, log=True))
    assert words["stacked"] is False
    assert words["said"] == "B, steps: a: 4 steps, most near 0.5"


def test_a_map_tells_its_share_of_cells():
    counts = np.array([[0.0, 2.0], [0.0, 0.0]])
    edges = np.array([0.0, 1.0, 2.0])
    words, array = packed(HeatMap("m", "M", "x", "y", edges, edges, {"a": counts}, {"a": 0}))
    assert words["maps"][0]["share"] == "25 % of the map"
    assert array(words["maps"][0]["counts"]).tolist() == [0, 2, 0, 0]


def test_palette_colours_follow_the_theme_and_chosen_ones_stay():
    assert themed(PALETTE[3]) == 3
    assert themed("#7a7a7a") == "#7a7a7a"


def test_an_update_is_one_message_and_marks_only_what_changed(monkeypatch):
    widget, sent = PlotsWidget(), []
    monkeypatch.setattr(widget, "send_state", lambda key=None: sent.append(set(key)))
    widget.show(figures(), stamp=1.0)
    assert sent == [{"figures", "data", "stamp", "seq"}]
    widget.show(figures(scale=2.0), stamp=2.0)
    assert {word["key"]: word["change"] for word in widget.figures} == {
        figure.key: 2 if figure.key == "terms" else 1 for figure in figures()
    }


def test_partly_keeps_the_other_figures():
    widget = PlotsWidget()
    widget.show(figures())
    keys = [word["key"] for word in widget.figures]
    widget.show([stacked(np.ones(3))], partly=True)
    assert [word["key"] for word in widget.figures] == [*keys, "a"]
    widget.show([stacked(np.ones(3))])
    assert [word["key"] for word in widget.figures] == ["a"]
    assert set(widget.data) == {"a"}
    assert widget.figures[0]["change"] == 2


def test_two_figures_of_one_key_are_refused():
    with pytest.raises(ValueError, match="given: a, a"):
        PlotsWidget().show([stacked(np.ones(1)), stacked(np.ones(1))])


def test_only_well_formed_messages_are_heard():
    widget, selected, drawn, places = PlotsWidget(), [], [], []
    widget.on_select(lambda key, index: selected.append((key, index)))
    widget.on_drawn(lambda *told: drawn.append(told))
    widget.on_cursor(places.append)
    for content in (
        {"select": "a", "index": 3},
        {"select": "a"},
        {"drawn": 2, "stamp": 0.5, "at": 9.0},
        "x",
        {},
    ):
        widget._msg_callbacks(widget, content, [])
    widget.cursor = 4.0
    assert (selected, drawn, places) == ([("a", 3)], [(2, 0.5, 9.0)], [4.0])


def test_rings_carry_a_word():
    widget = PlotsWidget()
    widget.select([np.int64(3), 5], ["A", "B"])
    assert widget.marks == [{"index": 3, "text": "A"}, {"index": 5, "text": "B"}]
