from __future__ import annotations

import numpy as np
import pytest

from rlnb.errors import UsageError
from rlnb.run.layout import RunLayout
from rlnb.run.status import State
from rlnb.testing.synthetic_run import SyntheticRun
from rlnb.view.group import GroupMember, show_group
from rlnb.view.group_figures import Member, group_figure, group_panel
from rlnb.view.history import History
from rlnb.view.panels import LineStyle


def returns(level: float, *, until: int = 1000) -> History:
    rows = [
        {"kind": "episode", "step": step, "episode/return_env": level} for step in range(0, until + 1, 10)
    ]
    return History(rows)


def solid(panel):
    return {
        line.label: y for line, y in zip(panel.lines, panel.ys, strict=True) if line.style is LineStyle.LINE
    }


def test_mean_and_one_standard_deviation():
    members = [Member("", f"seed={seed}", returns(level)) for seed, level in enumerate((1.0, 2.0, 3.0))]
    panel = group_panel(members)
    styles = [line.style for line in panel.lines]
    assert styles == [LineStyle.FAINT] * 3 + [LineStyle.UPPER, LineStyle.LOWER, LineStyle.LINE]
    np.testing.assert_allclose(panel.ys[-1], 2.0)
    np.testing.assert_allclose(panel.ys[3], 3.0)
    np.testing.assert_allclose(panel.ys[4], 1.0)
    assert panel.note == "mean ± one standard deviation over 3 runs, each the mean of 20 episodes"


def test_each_setting_has_its_own_mean():
    members = [Member(f"lr={lr}", f"seed={s}", returns(lr)) for lr in (1.0, 5.0) for s in range(2)]
    means = solid(group_panel(members))
    assert list(means) == ["lr=1.0", "lr=5.0"]
    np.testing.assert_allclose(means["lr=5.0"], 5.0)


def test_the_mean_ends_where_half_of_the_runs_have_come():
    ends = (250, 500, 1000, 1000)
    members = [Member("", str(end), returns(1.0, until=end)) for end in ends]
    panel = group_panel(members)
    mean = panel.ys[-1]
    assert np.isfinite(mean[panel.x <= 1000]).all()
    lonely = group_panel([*members[:3], Member("", "x", returns(1.0, until=100))])
    reached = lonely.x[np.isfinite(lonely.ys[-1])].max()
    assert 490 < reached <= 500


def test_one_run_is_a_line_without_a_band():
    panel = group_panel([Member("", "seed=0", returns(1.0))])
    assert [line.style for line in panel.lines] == [LineStyle.LINE]
    assert panel.note == "mean of 20 episodes"


def test_a_group_without_rows():
    panel = group_panel([Member("", "a", History()), Member("", "b", History())])
    assert panel.x.size == 0


def test_figure_has_a_filled_band():
    members = [Member("", str(level), returns(level)) for level in (1.0, 3.0)]
    figure = group_figure(members, title="seeds")
    assert [trace.fill for trace in figure.data] == [None, None, None, "tonexty", None]
    assert figure.layout.yaxis.title.text == "reward per episode"


def test_shown_as_text_and_image(tmp_path):
    members = []
    for seed in range(3):
        run = SyntheticRun(RunLayout(tmp_path / f"exp-{seed}"), total=10_000, seed=seed)
        run.begin()
        run.advance(5000)
        if seed == 2:
            run.advance(5000)
            run.end(State.COMPLETED)
        members.append(GroupMember(run.layout, f"seed={seed}"))
    shown = show_group(members, title="sweep")
    lines = repr(shown).splitlines()
    assert lines[0] == "sweep: 2 running, 1 completed"
    assert [line.split()[0] for line in lines[1:4]] == ["seed=0", "seed=1", "seed=2"]
    assert "completed" in lines[3]
    assert "of 30,000 steps" in lines[4]
    assert "left for the slowest" in lines[4]
    data, _ = shown._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    head = shown.subject.head(busy=False, answer="")
    assert head["buttons"] == []
    assert head["state"] == "2 running, 1 completed"
    assert not shown.subject.ended


def test_an_empty_group_is_refused():
    with pytest.raises(
        UsageError, match="The group 'sweep' has no runs, so there is nothing to show; promote with a grid"
    ):
        show_group([], title="sweep")
