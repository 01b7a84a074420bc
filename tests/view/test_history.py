from __future__ import annotations

import math

import numpy as np
import pytest

from rlnb.view.history import Column, History, Mark


def episode(step: int, value: float) -> dict[str, object]:
    return {"kind": "episode", "step": step, "time": 0.0, "episode/return": value}


def test_rows_become_columns_that_share_their_steps():
    history = History(
        [episode(10, 1.0), {"kind": "episode", "step": 20, "reward/fuel": -2}, episode(30, 3.0)]
    )
    table = history.table("episode")
    assert table.step.tolist() == [10, 20, 30]
    np.testing.assert_array_equal(table.column("episode/return"), [1.0, math.nan, 3.0])
    np.testing.assert_array_equal(table.column("reward/fuel"), [math.nan, -2.0, math.nan])
    assert table.keys == ["episode/return", "reward/fuel"]


def test_words_and_unknown_rows_are_passed_over():
    history = History()
    changed = history.extend(
        [
            {"kind": "episode", "step": 1, "note": "hello", "done": True, "episode/length": 7},
            {"kind": "something", "step": 2},
            {"kind": "episode"},
            {"kind": "episode", "step": None},
        ]
    )
    assert changed
    assert history.table("episode").keys == ["episode/length"]
    assert len(history.table("episode")) == 1
    assert not history.extend([{"kind": "something", "step": 3}])


def test_a_rewind_leaves_one_history():
    history = History([episode(step, step) for step in (100, 200, 300)])
    history.extend([{"kind": "checkpoint", "step": 150}, {"kind": "checkpoint", "step": 290}])
    history.extend([{"kind": "rewind", "step": 150, "attempt": 2}, episode(180, -1.0)])
    assert history.table("episode").step.tolist() == [100, 180]
    assert history.checkpoints == [150]
    assert history.attempts == [Mark(150, "attempt 2")]
    assert history.last_step == 180


def test_an_attempt_that_came_to_nothing_leaves_no_mark():
    history = History([episode(500, 0)])
    history.extend(
        [{"kind": "rewind", "step": 400, "attempt": 2}, {"kind": "rewind", "step": 300, "attempt": 3}]
    )
    assert history.attempts == [Mark(300, "attempt 3")]


def test_the_first_attempt_begins_the_run_and_is_no_mark():
    assert History([{"kind": "rewind", "step": 0, "attempt": 1}, episode(5, 0)]).attempts == []


def test_version_changes_with_the_content_only():
    history = History([episode(1, 0)])
    before = history.version
    history.extend([])
    assert history.version == before
    history.extend([episode(2, 0)])
    assert history.version > before


@pytest.mark.parametrize("rows", [[{"kind": "rewind", "step": 1}], [{"kind": "checkpoint", "step": 3}]])
def test_marks_change_the_version(rows):
    history = History([episode(1, 0), episode(2, 0)])
    before = history.version
    history.extend(rows)
    assert history.version != before


def test_a_view_of_a_column_outlives_its_growth():
    column = Column()
    for value in range(64):
        column.append(value)
    view = column.view()
    for value in range(64, 1000):
        column.append(value)
    assert view.tolist() == list(range(64))
    assert column.view().tolist() == list(range(1000))


def test_a_late_column_is_nan_before_its_first_value():
    history = History([episode(step, 0.0) for step in range(200)])
    history.extend([{"kind": "episode", "step": 200, "reward/new": 5.0}])
    late = history.table("episode").column("reward/new")
    assert late.shape == (201,)
    assert np.isnan(late[:200]).all()
    assert late[200] == 5.0
