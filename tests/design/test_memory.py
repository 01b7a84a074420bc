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
    assert sorted(state) == ["1.rows", "3.count", "3.mean", "3.variance", "known"]
    again = Live(2)
    again.load_state_dict(state)
    state["1.rows"][:] = 99
    state["3.mean"][:] = 99
    assert again.state_dict()["1.rows"].tolist() == memory.state_dict()["1.rows"].tolist() == [[1], [1]]
    assert again.known_statistics()[3].mean.tolist() == memory.known_statistics()[3].mean.tolist()


def test_recorded_rows_stand_in_the_batch():
    memory = Recorded(np.array([True, False, True]), {})
    values = np.array([[1.0], [2.0], [5.0]])
    assert memory.previous(0, values).tolist() == [[1], [1], [5]]
    after = memory.following()
    assert after.previous(0, values + 1).tolist() == values.tolist()
    assert memory.statistics(1, values) is after.statistics(1, values)
