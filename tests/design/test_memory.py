from __future__ import annotations

import numpy as np
import pytest

from rlnb.design.memory import Live, Recorded, RunningStatistics


def test_statistics_merge_like_those_of_all_rows():
    rows = np.random.default_rng(0).standard_normal((100, 3)) * [1, 5, 0.1] + [0, 3, -2]
    found = RunningStatistics.fresh(3)
    for part in np.split(rows, [7, 8, 60]):
        found.update(part)
    found.update(rows[:0])
    assert found.count == pytest.approx(100.0001)
    assert found.mean == pytest.approx(rows.mean(axis=0), abs=1e-4)
    assert found.variance == pytest.approx(rows.var(axis=0), rel=1e-3)


def test_live_rows_are_kept_for_each_environment():
    memory = Live(3)

    def ask(values, **how):
        memory.begin(**{"envs": None, "starts": None, "peek": False, **how})
        before = memory.previous(0, np.array(values, dtype=float)[:, None])[:, 0].tolist()
        memory.end()
        return before

    assert ask([1, 2, 3]) == [1, 2, 3]
    assert ask([9], envs=np.array([2]), peek=True) == [3]
    assert ask([7], envs=np.array([1])) == [2]
    assert ask([4, 5, 6], starts=np.array([True, False, False])) == [4, 7, 3]


def test_a_state_is_a_copy():
    memory = Live(2)
    memory.begin(envs=None, starts=None, peek=False)
    memory.previous(1, np.ones((2, 1)))
    memory.statistics(3, np.ones((2, 1)))
    memory.end()
    state = memory.state_dict()
    assert sorted(state) == ["1.past", "3.count", "3.mean", "3.variance", "known"]
    again = Live(2)
    again.load_state_dict(state)
    state["1.past"][:] = 99
    state["3.mean"][:] = 99
    assert again.state_dict()["1.past"].tolist() == memory.state_dict()["1.past"].tolist() == [[[1]], [[1]]]
    assert again.known_statistics()[3].mean.tolist() == memory.known_statistics()[3].mean.tolist()


def test_recorded_rows_stand_in_the_batch():
    memory = Recorded(np.array([True, False, True]), {})
    values = np.array([[1.0], [2.0], [5.0]])
    assert memory.previous(0, values).tolist() == [[1], [1], [5]]
    after = memory.following()
    assert after.previous(0, values + 1).tolist() == values.tolist()
    assert memory.statistics(1, values) is after.statistics(1, values)


def test_history_pads_an_episode_with_its_first_row():
    live = Live(2)
    seen = []
    for rows, starts in (([1, 10], None), ([2, 20], None), ([3, 99], [False, True]), ([4, 98], None)):
        live.begin(envs=None, starts=None if starts is None else np.array(starts), peek=False)
        seen.append([row.tolist() for row in live.history(0, np.array(rows, dtype=np.uint8), 3)])
        live.end()
    assert seen == [
        [[1, 10]] * 3, [[1, 10], [1, 10], [2, 20]], [[1, 99], [2, 99], [3, 99]], [[2, 99], [3, 99], [4, 98]],
    ]  # fmt: skip
    assert live.state_dict()["0.past"].dtype == np.uint8
    live.begin(envs=np.array([1]), starts=None, peek=True)
    assert [row.tolist() for row in live.history(0, np.array([7], dtype=np.uint8), 3)] == [[99], [98], [7]]
    recorded = Recorded(np.array([True, False, False, True, False]), {})
    values = np.array([1, 2, 3, 99, 98])
    assert [row.tolist() for row in recorded.history(0, values, 3)] == [
        [1, 1, 1, 99, 99], [1, 1, 2, 99, 99], [1, 2, 3, 99, 98],
    ]  # fmt: skip
    assert [row.tolist() for row in recorded.following().history(0, values + 1, 3)] == [
        [1, 1, 2, 99, 99], [1, 2, 3, 99, 98], [2, 3, 4, 100, 99],
    ]  # fmt: skip


def test_a_state_of_an_earlier_version_is_read():
    memory = Live(2)
    memory.load_state_dict({"known": np.array([True, True]), "1.rows": np.array([[4.0], [5.0]])})
    memory.begin(envs=None, starts=np.array([False, True]), peek=False)
    assert memory.previous(1, np.array([[6.0], [7.0]])).tolist() == [[4.0], [7.0]]
