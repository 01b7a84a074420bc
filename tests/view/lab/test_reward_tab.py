"""The reward tab without a browser: its widgets are moved from Python, as a front end's messages do."""

from __future__ import annotations

import numpy as np
import pytest

import rlnb
from rlnb.view.lab.reward.reward_tab import RewardTab
from rlnb.view.lab.reward.term_row import EXPRESSION, PYTHON, SHAPING
from rlnb.view.lab.reward.weight_field import slider_range
from tests.view.lab.conftest import total

TERMS = [rlnb.Term("env", "reward"), rlnb.Term("tilt", "-abs(theta)", weight=2.0, clip=(-0.1, 0.0))]


@pytest.fixture
def tab(bench):
    bench.edit(reward=rlnb.RewardSpec(TERMS), what="begin")
    return RewardTab(bench)


def shown(tab, key):
    return next(figure for figure in tab.plots.figures if figure["key"] == key)


def test_rows_show_the_design(tab):
    rows = tab._rows
    assert [row._name.value for row in rows] == ["env", "tilt"]
    assert rows[1]._expression.value == "-abs(theta)"
    assert (rows[1]._low.value, rows[1]._high.value) == ("-0.1", "0")
    assert (rows[1]._weight.slider.value, rows[1]._weight.exact.value) == (2.0, "2")
    assert (rows[1]._weight.slider.min, rows[1]._weight.slider.max) == (-5.0, 5.0)


def test_a_slider_changes_the_preview_and_one_undo_takes_the_drag_back(tab, bench):
    before = tab.plots.seq
    for value in (1.9, 1.0, 0.5):
        tab._rows[1]._weight.slider.value = value
    assert bench.reward.terms[1].weight == 0.5
    assert tab._rows[1]._weight.exact.value == "0.5"
    assert tab.plots.seq == before + 3
    assert bench.preview.result.total.tobytes() == total(bench).tobytes()
    bench.undo()
    assert bench.reward == rlnb.RewardSpec(TERMS)
    assert tab._rows[1]._weight.slider.value == 2.0


def test_the_exact_field_takes_numbers_and_schedules(tab, bench):
    row = tab._rows[1]
    row._weight.exact.value = "123.25"
    assert (bench.reward.terms[1].weight, row._weight.slider.max) == (123.25, 500.0)
    row._weight.exact.value = "lin_2"
    assert (bench.reward.terms[1].weight, row._weight.slider.disabled) == ("lin_2", True)
    row._weight.exact.value = "much"
    assert bench.reward.terms[1].weight == "lin_2"
    assert "much" in row._error.value
    row._weight.exact.value = "−1.5"
    assert (bench.reward.terms[1].weight, row._error.value) == (-1.5, "")


def test_a_wrong_expression_is_said_in_its_row_and_the_last_good_state_stays(tab, bench):
    row = tab._rows[1]
    row._expression.value = "-abs(thetta)"
    assert "Did you mean 'theta'" in row._expression.error
    assert row._expression.error_position == 5
    assert bench.reward == rlnb.RewardSpec(TERMS)
    tab._rows[0]._weight.slider.value = 0.5  # another row's edit keeps the draft
    assert row._expression.value == "-abs(thetta)"
    row._expression.value = "-abs(theta)**2"
    assert (bench.reward.terms[1].expression, row._expression.error) == ("-abs(theta)**2", "")


def test_names_are_offered_with_their_meaning(tab):
    offered = {one.name: one.about for one in tab._rows[0]._expression.suggestions}
    assert offered["theta"] == "observation before the step"
    assert offered["next_theta"] == "observation after the step"
    assert offered["reward"] == "the environment's own reward"
    assert offered["hypot("] == "function"


def test_clip_name_and_on_off(tab, bench):
    row = tab._rows[1]
    row._low.value = "-0.05"
    assert bench.reward.terms[1].clip == (-0.05, 0.0)
    row._low.value = "lots"
    assert bench.reward.terms[1].clip == (-0.05, 0.0)
    assert "lots" in row._error.value
    row._low.value = row._high.value = ""
    assert bench.reward.terms[1].clip is None
    row._on.value = False
    assert not bench.reward.terms[1].enabled
    assert [layer["name"] for layer in shown(tab, "contributions")["layers"]] == ["env"]
    row._name.value = "env"
    assert "env" in row._error.value
    assert bench.reward.terms[1].name == "tilt"


def test_a_term_that_is_renamed_is_renamed_in_the_combination_too(tab, bench):
    tab._combine.value = "env + 0.5 * tilt"
    assert bench.reward.combine == "env + 0.5 * tilt"
    tab._rows[1]._name.value = "lean"
    assert (bench.reward.combine, tab._combine.value) == ("env + 0.5 * lean", "env + 0.5 * lean")
    tab._combine.value = "env + gone"
    assert "gone" in tab._combine.error
    assert bench.reward.combine == "env + 0.5 * lean"
    tab._combine.value = ""
    assert bench.reward.combine is None


def test_add_copy_move_and_remove(tab, bench):
    tab._add()
    tab._act(1, "copy")
    assert [part.name for part in bench.reward.terms] == ["env", "tilt", "tilt_2", "term"]
    tab._act(3, "up")
    tab._act(0, "up")  # nothing above
    assert [part.name for part in bench.reward.terms] == ["env", "tilt", "term", "tilt_2"]
    tab._act(0, "remove")
    assert [row._name.value for row in tab._rows] == ["tilt", "term", "tilt_2"]
    assert len(tab._box.children) == 3
    tab._act(0, "remove")
    tab._act(0, "remove")
    tab._act(0, "remove")
    assert "at least one term" in tab._message.value
    assert [part.name for part in bench.reward.terms] == ["tilt_2"]


def test_a_term_becomes_a_shaping_a_python_term_and_an_expression_again(tab, bench):
    @rlnb.reward_term
    def centred(batch):
        return -np.abs(batch.obs["x"])

    @rlnb.reward_term
    def of_another_environment(batch):
        return batch.obs["no_such_component"]

    row = tab._rows[1]
    row._low.value = row._high.value = ""
    row._kind.value = SHAPING
    assert bench.reward.terms[1] == rlnb.Shaping("tilt", "-abs(theta)", weight=2.0)
    row._gamma.value = "0.9"
    assert bench.reward.terms[1].gamma == 0.9
    row._kind.value = PYTHON
    row._function.value = "centred"
    assert bench.reward.terms[1].python == "centred"
    assert (
        bench.preview.result.terms["tilt"].tobytes()
        == (-np.abs(bench.batch.obs["x"].astype(np.float64))).tobytes()
    )
    row._kind.value = EXPRESSION
    assert bench.reward.terms[1].expression == "0.0"


def test_groups_are_made_by_naming_them_and_weigh_their_terms(tab, bench):
    tab._rows[1]._group.value = "comfort"
    assert [group.name for group in bench.reward.groups] == ["comfort"]
    group = tab._groups._rows[0]
    group._weight.slider.value = 0.5
    assert bench.reward.groups[0].weight == 0.5
    assert bench.preview.result.total.tobytes() == total(bench).tobytes()
    group._combine.value = "tilt * 2"
    assert bench.reward.groups[0].combine == "tilt * 2"
    group._combine.value = "env * 2"
    assert "env" in group._combine.error
    group._name.value = "ease"
    assert bench.reward.terms[1].group == "ease"
    group._remove()
    assert (bench.reward.groups, bench.reward.terms[1].group) == ((), None)


def test_a_colour_is_a_note_and_no_edit(tab, bench):
    tab._rows[1]._colour.value = "#123456"
    assert bench.notes.colours == {"tilt": "#123456"}
    layers = {layer["name"]: layer["color"] for layer in shown(tab, "contributions")["layers"]}
    assert layers["tilt"] == "#123456"
    assert bench.undoes == "begin"


def test_preferences_are_counted_fitted_and_taken_back(tab, bench):
    bench.edit(
        reward=rlnb.RewardSpec([rlnb.Term("alive", "1.0", weight=-1.0), rlnb.Term("tilt", "-abs(theta)")]),
        what="wrong way round",
    )
    panel = tab._preferences
    for random in range(3):
        panel._prefer(4, random)
    assert "0 of 3" in panel._words.value
    panel._fit()
    assert "agree with 3 of 3" in panel._words.value
    assert bench.reward.terms[0].weight > 0
    bench.undo()
    assert bench.reward.terms[0].weight == -1.0
    panel._forget()
    assert bench.notes.preferences == (("e:4", "e:0"), ("e:4", "e:1"))
    panel._guard(lambda: panel._prefer(1, 1))
    assert "better than itself" in panel._words.value


def test_a_click_on_an_episode_looks_at_it(tab, bench):
    tab._select("returns", 4)
    assert bench.episode == 4
    assert shown(tab, "contributions")["title"] == "Reward along balance 2"


@pytest.mark.parametrize(
    ("weight", "reach"),
    [(0.0, 2.0), (1.0, 2.0), (0.3, 1.0), (2.0, 5.0), (123.25, 500.0), (-40.0, 100.0), (1e-3, 2e-3)],
)
def test_a_slider_reaches_about_twice_the_weight(weight, reach):
    assert slider_range(weight) == pytest.approx(reach)


@pytest.mark.parametrize("weight", [1e308, -1.7e308, 5e-324])
def test_a_sliders_reach_is_a_number_for_every_weight(weight):
    reach = slider_range(weight)
    assert 0 < reach / 200 < np.inf
    assert np.isfinite(2 * reach)


def test_a_reward_beyond_all_numbers_is_drawn(tab, bench):
    bench.edit(reward=rlnb.RewardSpec([rlnb.Term("a", "1e10", weight=1e308)]), what="huge")
    assert bench.preview.result.total.tolist() == [np.inf] * len(bench.batch)
    assert tab._rows[0]._weight.exact.value == "1e+308"
    assert bench.settle()
