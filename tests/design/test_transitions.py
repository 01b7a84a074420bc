"""Transitions: names, slices, episodes, flat columns and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.columns import InfoColumns, UnknownName
from rlnb.design.transitions import Transitions, shift_actions
from rlnb.errors import DesignError
from tests.design.batches import make_batch


def _same(one: Transitions, other: Transitions) -> None:
    ours, theirs = one.to_columns(), other.to_columns()
    assert list(ours) == list(theirs)
    for name, column in ours.items():
        assert column.dtype == theirs[name].dtype, name
        assert column.tolist() == theirs[name].tolist(), name
    assert one.meta() == other.meta()
    assert dict(one.labels) == dict(other.labels)


def test_columns_are_float64_views_of_what_is_stored():
    batch = make_batch()
    assert batch.obs["vy"].dtype == np.float64
    assert batch.obs.matrix.dtype == np.float32
    assert batch.obs["vy"].tolist() == batch.obs.matrix[:, 3].tolist()
    assert batch.info["success"].dtype == bool
    with pytest.raises(ValueError, match="read-only"):
        batch.obs["vy"][0] = 1.0


def test_a_long_matrix_gives_the_same_columns():
    batch = make_batch(10_000)
    assert batch.obs["vy"].dtype == np.float64
    assert batch.obs["vy"].tolist() == batch.obs.matrix[:, 3].tolist()
    assert batch.obs["vy"].flags.c_contiguous


def test_an_unknown_component_names_the_nearest():
    with pytest.raises(
        UnknownName, match=r'obs\["vyy"\] is not in this batch. Did you mean .*It has: x, y, vx, vy'
    ):
        make_batch().obs["vyy"]
    assert make_batch().obs.get("vyy") is None
    with pytest.raises(DesignError, match="obs has 4 component.* but 3 names"):
        Transitions.from_arrays(
            np.zeros((1, 4)), np.zeros((1, 4)), np.zeros(1), reward=np.zeros(1), t=np.zeros(1, int),
            terminated=np.zeros(1, bool), truncated=np.zeros(1, bool), names=["a", "b", "c"],
        )  # fmt: skip


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(DesignError, match="obs has 2 rows, but next_obs 2, action 3"):
        Transitions.from_arrays(
            np.zeros((2, 4)), np.zeros((2, 4)), np.zeros(3), reward=np.zeros(2), t=np.zeros(2, int),
            terminated=np.zeros(2, bool), truncated=np.zeros(2, bool), prev_action=np.zeros(3),
        )  # fmt: skip


def test_names_of_an_expression():
    batch = make_batch(vector_action=True)
    names = batch.namespace
    assert names["a1"].tolist() == batch.action["a1"].tolist()
    assert names["next_vx"].tolist() == batch.next_obs["vx"].tolist()
    assert names['info["success"]'].tolist() == batch.info["success"].astype(float).tolist()
    assert names["force"].tolist() == names['signals["force"]'].tolist()
    assert names["terminated"].dtype == np.float64
    assert "action" not in names
    assert "speed" not in names
    assert "action" in make_batch().namespace
    assert {"x", "next_x", "t", "reward", 'obs["x"]', 'info["speed"]'} <= set(names)
    assert len(names) == len(list(names))
    with pytest.raises(DesignError, match="'nxt_x' is not a name of this batch. Did you mean 'next_x'"):
        names["nxt_x"]
    message = r"'speed' is not a name of this batch\. It stands in info; write info\[\"speed\"\]\. It has: .*info\[\"speed\"\]"
    with pytest.raises(DesignError, match=message):
        names["speed"]
    with pytest.raises(
        DesignError, match=r"'obs' is not a name of this batch\. Write a part of it, as in obs\[\"x\"\]"
    ):
        names["obs"]


def test_the_first_of_two_equal_names_wins():
    batch = make_batch(3)
    clash = Transitions.from_arrays(
        batch.obs.matrix, batch.next_obs.matrix, batch.action, reward=batch.reward, t=batch.t,
        terminated=batch.terminated, truncated=batch.truncated, names=["t", "force", "a", "b"],
        signals={"force": np.full(3, 9.0)},
    )  # fmt: skip
    assert clash.namespace["t"].tolist() == [0, 1, 2]
    assert clash.namespace["force"].tolist() == batch.obs["y"].tolist()
    assert clash.namespace['signals["force"]'].tolist() == [9.0] * 3
    assert clash.namespace['obs["t"]'].tolist() == batch.obs["x"].tolist()


def test_a_single_component_action_goes_by_both_names():
    names = Transitions.from_arrays(
        np.zeros((2, 1)), np.zeros((2, 1)), np.array([[1.5], [2.5]]), reward=np.zeros(2), t=np.arange(2),
        terminated=np.zeros(2, bool), truncated=np.zeros(2, bool),
    ).namespace  # fmt: skip
    assert names["action"].tolist() == names["a0"].tolist() == [1.5, 2.5]
    assert names["prev_action"].tolist() == [0.0, 1.5]


def test_previous_actions_stop_at_the_start_of_an_episode():
    assert shift_actions(np.array([5, 6, 7, 8]), np.array([0, 1, 0, 1])).tolist() == [0, 5, 0, 7]


def test_episodes_and_labels():
    batch = make_batch(12)
    episodes = batch.episodes()
    assert [len(episode) for episode in episodes] == [5, 5, 2]
    assert [dict(episode.labels) for episode in episodes] == [{0: "random"}, {1: "trained"}, {}]
    assert batch.starts.tolist() == [0, 5, 10]
    assert batch.policy.tolist() == ["random"] * 5 + ["trained"] * 5 + [""] * 2
    assert repr(batch) == "Transitions(12 steps, 3 episodes by random, trained, obs: x, y, vx, vy)"
    _same(Transitions.concat(episodes), batch)


def test_rows_can_be_taken_by_slice_index_and_mask():
    batch = make_batch(6)
    mask = np.array([0, 1, 0, 1, 1, 0], dtype=bool)
    _same(batch.slice(mask), batch.slice(np.array([1, 3, 4])))
    assert batch.slice(slice(1, 3)).obs["x"].tolist() == batch.obs["x"][1:3].tolist()
    assert np.shares_memory(batch.slice(slice(1, 3)).obs.matrix, batch.obs.matrix)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(0, 99), st.booleans(), st.booleans())
def test_columns_round_trip_without_loss(n, seed, vector_action, with_meta):
    batch = make_batch(n, seed=seed, vector_action=vector_action)
    meta = json.loads(json.dumps(batch.meta())) if with_meta else None
    _same(Transitions.from_columns(batch.to_columns(), meta), batch)


def test_images_and_numbers_round_trip():
    pixels = np.arange(2 * 3 * 3 * 1, dtype=np.uint8).reshape(2, 3, 3, 1)
    batch = Transitions.from_arrays(
        pixels, pixels[::-1], np.array([0, 1]), reward=np.zeros(2), t=np.arange(2),
        terminated=np.zeros(2, bool), truncated=np.array([False, True]),
    )  # fmt: skip
    again = Transitions.from_columns(batch.to_columns(), batch.meta())
    assert again.obs.matrix.dtype == np.uint8
    assert again.obs.matrix.tolist() == pixels.tolist()
    assert batch.to_columns()["obs"].shape == (2, 9)
    number = np.array([3, 4])
    states = Transitions.from_arrays(
        number, number, number, reward=np.zeros(2), t=np.arange(2), terminated=np.zeros(2, bool),
        truncated=np.zeros(2, bool), names=["obs0"],
    )  # fmt: skip
    assert states.obs["obs0"].dtype == np.int64
    assert Transitions.from_columns(states.to_columns(), states.meta()).obs.matrix.shape == (2,)


def test_concat_numbers_episodes_anew_and_fills_info_keys():
    one, other = make_batch(5), make_batch(7)
    columns = {name: values for name, values in other.to_columns().items() if name != "info.speed"}
    both = Transitions.concat([one, Transitions.from_columns(columns, other.meta())])
    assert both.episode.tolist() == [0] * 5 + [1] * 5 + [2] * 2
    assert dict(both.labels) == {0: "random", 1: "random", 2: "trained"}
    assert np.isnan(both.info["speed"][5:]).all()
    with pytest.raises(DesignError, match=r"differ in action, action\.a0"):
        Transitions.concat([one, make_batch(5, vector_action=True)])
    with pytest.raises(DesignError, match="at least one batch"):
        Transitions.concat([])


def test_a_missing_column_is_named():
    columns = make_batch().to_columns()
    del columns["t"]
    with pytest.raises(DesignError, match="needs the column 't'; it has obs.x"):
        Transitions.from_columns(columns)
    columns = {
        name: values for name, values in make_batch().to_columns().items() if not name.startswith("obs.")
    }
    with pytest.raises(DesignError, match="needs the column 'obs'"):
        Transitions.from_columns(columns)


def test_info_dicts_are_read_when_asked_for():
    infos = [{"a": 1, "text": "no"}, {"a": np.float32(0.5), "flag": True, "b": np.array([2])}, {}]
    info = InfoColumns("info", infos)
    assert info.names == ("a", "flag", "b")
    np.testing.assert_array_equal(info["a"], [1.0, 0.5, np.nan])
    np.testing.assert_array_equal(info["flag"], [np.nan, 1.0, np.nan])
    assert np.isnan(info["never"]).all()
    with pytest.raises(DesignError, match=r'info\["text"\] is a str .*only numbers'):
        info["text"]
    assert info.stored().names == ("a", "flag", "b")
    np.testing.assert_array_equal(info.take(slice(1, 3))["a"], [0.5, np.nan])
    np.testing.assert_array_equal(info.take(np.array([2, 0]))["a"], [np.nan, 1.0])


def test_only_keys_that_info_has_are_hinted_at():
    infos = [{"dist": 1.0}, {"dist": 2.0}]
    batch = Transitions.from_arrays(
        np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2), reward=np.zeros(2), t=np.arange(2),
        terminated=np.zeros(2, bool), truncated=np.zeros(2, bool), infos=infos,
    )  # fmt: skip
    assert 'info["nope"]' in batch.namespace  # it may come at the end of an episode
    with pytest.raises(DesignError, match=r"'nope' is not a name of this batch\. It has: "):
        batch.namespace["nope"]
    with pytest.raises(
        DesignError, match=r"'dist' is not a name of this batch\. It stands in info; write info"
    ):
        batch.namespace["dist"]


def test_what_vector_environments_add_to_info_is_no_column():
    info = InfoColumns("info", [{"TimeLimit.truncated": True, "rlnb.episode": 3, "x": 1}])
    assert info.names == ("x",)


def test_vector_columns_are_arrays_too():
    batch = make_batch(3, vector_action=True)
    assert np.square(batch.action).dtype == np.float64
    assert np.square(batch.action).shape == (3, 2)
    assert repr(batch.action) == "action[a0, a1]"


def test_plain_lists_get_the_documented_dtypes():
    batch = Transitions.from_arrays(
        [[1.0], [2.0]], [[2.0], [3.0]], [0, 1], reward=[1, 0], terminated=[0, 1], truncated=[0, 0], t=[0, 1],
        names=["x"],
    )  # fmt: skip
    assert [column.dtype.char for column in (batch.reward, batch.t, batch.terminated)] == ["d", "l", "?"]
    assert batch.prev_action.tolist() == [0, 0]
    assert batch.episode.tolist() == [0, 0]
