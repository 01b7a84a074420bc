from __future__ import annotations

from dataclasses import replace

import pytest

from rlnb.errors import JobFailed
from rlnb.group import Group
from rlnb.job import Job
from rlnb.run.status import EndKind, Evidence, State, read_status, write_status


@pytest.fixture
def members(make_run):
    runs = [make_run(total=1_000, seed=seed) for seed in range(3)]
    for run in runs:
        run.begin()
        run.advance(1_000)
    return runs


@pytest.fixture
def group(members):
    return Group("lander-ab12", [Job(run.layout.id, run.layout) for run in members])


def test_a_group_is_a_sequence_of_jobs(group, members):
    assert len(group) == 3
    assert group[1].id == members[1].layout.id
    assert [job.id for job in group] == [run.layout.id for run in members]
    assert set(group.states.values()) == {State.RUNNING}


def test_metrics_carry_run_and_parameters(group):
    frame = group.metrics
    assert list(frame.columns[:2]) == ["run", "parameter.seed"]
    assert sorted(frame["parameter.seed"].unique()) == [0, 1, 2]


def test_waiting_names_the_members_that_failed(group, members):
    members[0].end()
    members[2].end()
    status = read_status(members[1].layout)
    write_status(
        members[1].layout,
        replace(status, state=State.FAILED, evidence=Evidence(EndKind.OOM, "out of memory")),
    )
    with pytest.raises(
        JobFailed, match=r"1 of 3 runs of lander-ab12 failed\.\n.*0002 failed: out of memory"
    ) as caught:
        group.wait(timeout=5)
    assert caught.value.job is group[1]


def test_a_group_that_has_ended_is_returned(group, members):
    for run in members:
        run.end()
    assert group.wait(timeout=5) is group
    assert group.at_rest
    assert group.stop() == {}


def test_one_member_that_does_not_answer_does_not_keep_the_others(group, members, monkeypatch):
    monkeypatch.setattr("rlnb.source.LOCAL_PATIENCE", 0.1)
    members[0].end()
    answers = group.pause()
    assert set(answers) == {members[1].layout.id, members[2].layout.id}
    assert all("did not answer" in answer for answer in answers.values())


def test_the_text_counts_states(group, members):
    members[0].end()
    assert repr(group).splitlines()[0] == "Group('lander-ab12', 3 runs: 1 completed, 2 running)"


def test_the_figure_shows_mean_and_band(group):
    figure = group.plot()
    assert len(figure.data) >= 3


def test_a_group_shows_itself(group, members, capsys):
    for run in members:
        run.end()
    group._ipython_display_()
    assert "lander-ab12" in capsys.readouterr().out
