from __future__ import annotations

import re

import numpy as np
import psutil
import pytest
from gymnasium import spaces

import rlnb
from rlnb.design.profile import profile_values
from rlnb.view.lab.state.component_table import component_table_html
from rlnb.view.lab.state.number_text import parse_number, short_number
from rlnb.view.lab.state.state_look import ROWS, StateLooks
from rlnb.view.lab.state.state_tab import StateTab
from tests.view.lab.benches import NAMES, bench_of, picture_bench, point_batch


def add(tab, kind):
    tab.operations._add.value = kind


def field(tab, row, place):
    return tab.operations.rows[row]._fields[place]


def press(tab, row, tip):
    line = tab.operations.rows[row].widget.children[0]
    next(child for child in line.children if getattr(child, "tooltip", None) == tip).click()


@pytest.fixture
def bench():
    return bench_of()


@pytest.fixture
def tab(bench):
    return StateTab(bench)


def test_without_operations_the_agent_sees_what_the_environment_gives(bench, tab):
    assert bench.state.is_identity
    assert "8 components" not in tab._before.value
    assert "3 components, 100 steps" in tab._before.value
    assert "The same" in tab._after.value
    assert '<span class="rlnb-tag rlnb-tag-warn">constant</span>' in tab._before.value.split(">flag<")[1]
    assert "<b>3 dimensions, float32</b>" in tab._space.value


def test_operations_are_added_moved_removed_and_taken_back(bench, tab):
    add(tab, "clip")
    add(tab, "delta")
    assert [op.kind for op in bench.state.ops] == ["clip", "delta"]
    assert bench.plan.names == (*NAMES, "d_x", "d_v", "d_flag")
    assert "6 components" in tab._after.value
    assert tab._after.value.count("rlnb-tag-new") == 3
    press(tab, 1, "move up")
    assert [op.kind for op in bench.state.ops] == ["delta", "clip"]
    assert [row._kind.value for row in tab.operations.rows] == ["delta", "clip"]
    press(tab, 0, "move up")  # it is the first already
    press(tab, 0, "remove this operation")
    assert bench.plan.names == NAMES
    assert bench.undoes == "remove delta"
    bench.undo()
    assert len(tab.operations.rows) == len(tab.operations._box.children) == 2
    assert "6 components" in tab._after.value


def test_fields_change_the_operation_and_numbers_are_read(bench, tab):
    add(tab, "clip")
    _names, low, high = (field(tab, 0, place) for place in range(3))
    low._text.value = "−0.25"
    high._text.value = "0.25"
    assert bench.state.ops == (rlnb.Clip(low=-0.25, high=0.25),)
    assert np.abs(bench.plan.preview(bench.batch)[0]).max() == np.float32(0.25)
    low._text.value = ""
    assert bench.state.ops[0].low == -np.inf
    low._text.value = "a quarter"
    assert "a quarter" in tab.operations.rows[0].error
    assert bench.state.ops[0].low == -np.inf
    low._text.value = "-1"
    assert tab.operations.rows[0].error == ""


def test_components_are_ticked_and_all_is_all(bench, tab):
    add(tab, "clip")
    picker = field(tab, 0, 0)._picker
    assert picker.widget.description == "all components"
    picker.widget.value = True
    assert picker.box.layout.display == "flex"
    boxes = {box.description: box for box in picker._boxes}
    assert list(boxes) == list(NAMES)
    boxes["flag"].value = False
    assert bench.state.ops[0].names == ("x", "v")
    assert picker.widget.description == "x, v"
    picker._all.click()
    assert bench.state.ops[0].names is None
    assert all(box.value for box in boxes.values())


def test_selecting_nothing_is_said_in_the_row_and_nothing_changes(bench, tab):
    add(tab, "select")
    picker = field(tab, 0, 0)._picker
    picker.widget.value = True
    for box in picker._boxes:
        box.value = False
    assert "keeps nothing" in tab.operations.rows[0].error
    assert bench.state.ops == (rlnb.Select(["flag"]),)


def test_a_derived_component_knows_the_names_at_that_point(bench, tab):
    add(tab, "derive")
    add(tab, "derive")
    first, second = field(tab, 0, 1)._field, field(tab, 1, 1)._field
    field(tab, 0, 0)._text.value = "speed"
    assert [one.name for one in second.suggestions][:4] == [*NAMES, "speed"]
    assert "speed" not in [one.name for one in first.suggestions]
    first._receive(None, {"text": "abs(v)", "edit": "a:1"}, [])
    assert bench.plan.names == (*NAMES, "speed", "derived_2")
    first._receive(None, {"text": "abs(w)", "edit": "a:2"}, [])
    assert first.error.startswith("'w' in 'abs(w)' is not a known name")
    assert first.error_position == 4
    assert first.value == "abs(w)"  # what was typed stays
    assert bench.state.ops[0].expression == "abs(v)"
    bench.undo()
    assert first.error == ""


def test_an_operation_that_others_need_cannot_go(bench, tab):
    add(tab, "delta")
    add(tab, "clip")
    field(tab, 1, 0)._picker.widget.value = True
    next(box for box in field(tab, 1, 0)._picker._boxes if box.description == "x").value = False
    press(tab, 0, "remove this operation")
    assert "which is not there at that point" in tab.operations.rows[0].error
    assert len(bench.state.ops) == 2


def test_statistics_come_from_the_episodes_at_that_point(bench, tab):
    add(tab, "scale")
    field(tab, 0, 1)._text.value = "2"
    add(tab, "zscore")
    x = bench.batch.obs["x"].astype(np.float64)
    stored = bench.state.ops[1]
    assert stored.mean[0] == pytest.approx(2 * x.mean(), rel=1e-5)
    assert stored.std[2] == 1.0  # of a constant
    statistics = field(tab, 1, 0)
    statistics._source.value = True
    statistics.widgets[1].click()
    demo = x[bench.batch.policy == "demo"]
    assert bench.state.ops[1].std[0] == pytest.approx(2 * demo.std(), rel=1e-5)
    assert f"{2 * demo.std():.3g}" in statistics._words.value
    statistics._picker.widget.value = True
    next(box for box in statistics._picker._boxes if box.description == "v").value = False
    assert bench.state.ops[1].names == ("x", "flag")
    assert len(bench.state.ops[1].mean) == 2


def test_every_kind_can_be_added_and_turned_into_every_other(bench, tab):
    kinds = tab.operations.kinds
    assert kinds == ["select", "derive", "zscore", "running_zscore", "clip", "delta", "scale", "stack"]
    add(tab, "clip")
    for kind in kinds:
        tab.operations.rows[0]._kind.value = kind
        assert [op.kind for op in bench.state.ops] == [kind]
    add(tab, "stack")  # twice, of what has no older frame yet
    assert tab.operations.message == ""
    assert bench.plan.space.shape == (9,)


def test_the_replay_buffer_is_reckoned_and_warned_about(bench, tab, monkeypatch):
    tab._size.value = 1000
    assert bench.notes.buffer_size == 1000
    # 2 observations of 3 float32, an int64 action, and 12 bytes for reward, done and time-out
    assert "44 kB" in tab._memory.value
    assert "Warning" not in tab._memory.value
    ram = psutil.virtual_memory()._replace(total=64_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: ram)
    bench.note(buffer_size=1001)
    assert tab._size.value == 1001
    assert "▲" in tab._memory.value
    assert "<b>69 %</b>" in tab._memory.value


def test_the_coverage_map_follows_axes_and_state(bench, tab):
    panel = tab.coverage
    assert "PC1" in panel.plots.figures[0]["x_label"]
    panel._x.value = "x"
    assert bench.notes.axes == ("x", "v")
    assert (panel._x.value, panel._y.value) == ("x", "v")
    assert re.search(r"random \d+ % \(\d+ only there\), demo \d+ %", panel.words)
    add(tab, "select")
    field(tab, 0, 0)._picker.widget.value = True
    field(tab, 0, 0)._picker._boxes[1].value = False
    assert bench.plan.names == ("x", "flag")
    assert panel._x.value == "PCA"  # v is gone, and the notes still know it
    bench.undo()
    bench.undo()
    assert panel._y.value == "v"
    panel._y.value = "PCA"
    assert bench.notes.axes is None


def test_pictures_are_shown_before_and_after_with_their_bytes():
    tab = StateTab(picture_bench())
    assert tab.operations.kinds == ["grayscale", "resize", "stack", "to_unit"]
    assert "<b>12 x 8 x 3</b> uint8, <b>288 B</b> each" in tab._before.value
    assert tab._before.value.count("data:image/png;base64,") == 5
    for kind in ("grayscale", "resize", "stack"):
        add(tab, kind)
    field(tab, 1, 0)._count.value = 6
    assert "<b>6 x 8 x 4</b> uint8, <b>192 B</b> each" in tab._after.value
    assert "4 pictures in each" in tab._after.value
    assert "no components to map" in tab.coverage.words
    add(tab, "to_unit")
    assert "float32, <b>768 B</b> each, values 0.0784 to 0.557 of [0, 1]" in tab._after.value


@pytest.mark.parametrize(
    ("space", "obs", "names"),
    [
        (spaces.Discrete(5), np.arange(100) % 5, ("obs0",)),
        (spaces.MultiDiscrete([3, 4]), np.tile([[0, 1], [2, 3]], (50, 1)), ("obs0", "obs1")),
        (
            spaces.Dict(pos=spaces.Box(-1, 1, (2,)), mode=spaces.Discrete(3)),
            np.tile(np.float32([[0, 0.5, -0.5], [2, 1, 1]]), (50, 1)),
            ("mode", "pos_0", "pos_1"),
        ),
    ],
)
def test_odd_spaces_work_as_flattened_numbers(space, obs, names):
    walk = point_batch()
    batch = rlnb.Transitions.from_arrays(
        obs, obs, np.zeros(100), reward=walk.reward, terminated=walk.terminated, truncated=walk.truncated,
        t=walk.t, names=names, labels=walk.labels,
    )  # fmt: skip
    bench = bench_of(space, batch, ())
    tab = StateTab(bench)
    assert all(f">{name}<" in tab._before.value for name in names)
    add(tab, "running_zscore")
    assert bench.plan.space.shape == (len(names),)
    assert f"{len(names)} component" in tab._after.value


def test_what_has_no_names_says_what_is_unsupported():
    space = spaces.Dict(a=spaces.Box(-1, 1, (600,)), b=spaces.Box(-1, 1, (600,)))
    obs = np.zeros((100, 1200), np.float32)
    walk = point_batch()
    batch = rlnb.Transitions.from_arrays(
        obs, obs, np.zeros(100), reward=walk.reward, terminated=walk.terminated, truncated=walk.truncated, t=walk.t
    )  # fmt: skip
    tab = StateTab(bench_of(space, batch, ()))
    assert "1200 components and 0 names" in tab._before.value
    assert tab.operations.kinds == []


def test_of_many_steps_whole_episodes_are_sampled_the_same_before_and_after():
    bench = bench_of(batch=point_batch(episodes=300, steps=100), state=[rlnb.Stack(2)])
    looks = StateLooks(bench)
    before, after = looks.before(), looks.after()
    assert before.phrase == after.phrase == f"{ROWS:,} sampled steps of 30,000"
    assert np.array_equal(before.values, after.values[:, :3])
    assert looks.after() is after


def test_a_long_table_folds_what_is_over_the_limit():
    values = np.arange(8.0).reshape(2, 4)
    found = profile_values(values, np.full(4, -np.inf), np.full(4, 5.0), ["a", "b<i>", "c", "d"])
    html = component_table_html(found, title="A & B", limit=1)
    assert "and 3 more" in html
    assert "A &amp; B" in html
    assert "b&lt;i&gt;" in html
    assert "<i>" not in html
    assert html.count("out of bounds") == 2  # c reaches 6, d 7


def test_missing_and_infinite_values_are_counted():
    values = np.array([[np.nan, np.inf, np.nan], [1.0, 2.0, np.nan]])
    html = component_table_html(profile_values(values, np.zeros(3), np.ones(3), ["a", "b", "c"]), title="t")
    assert html.count("1 NaN") == 1
    assert html.count("1 infinite") == 1
    assert html.count("2 NaN") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (-1.23456, "−1.23"), (1234.5, "1,234"), (3.4028e38, "3.4e38"), (-np.inf, "−∞"),
     (np.nan, "–"), (2e6, "2e6"), (-3e-7, "−3e−7")],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert short_number(value) == text


def test_numbers_are_read_as_people_write_them():
    assert parse_number(" −∞ ") == -np.inf
    assert parse_number("", "inf") == np.inf
    assert parse_number("two") == "two"
