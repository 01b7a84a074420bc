"""Profiles of observations, against numbers computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gymnasium import spaces

from rlnb.design.profile import ImageProfile, profile, profile_images, profile_values
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

NAN, INF = math.nan, math.inf


def one(values, low=-INF, high=INF, dtype=np.float32):
    return profile_values(np.array(values, dtype=dtype)[:, None], np.array([low]), np.array([high]), ("x",))[
        0
    ]


def batch_of(obs, ends=None, next_obs=None):
    n = len(obs)
    t = np.arange(n)
    return Transitions.from_arrays(
        obs, obs if next_obs is None else next_obs, np.zeros(n, dtype=np.int64), reward=np.zeros(n),
        terminated=np.zeros(n, dtype=bool), truncated=np.zeros(n, dtype=bool), t=t,
    )  # fmt: skip


def test_numbers_of_a_component():
    found = one([1, 2, 3, 6], low=1, high=6)
    assert (found.name, found.dtype, found.low, found.high) == ("x", "float32", 1, 6)
    assert (found.seen_low, found.seen_high, found.mean) == (1, 6, 3)
    assert found.spread == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 4), rel=1e-15)
    assert found.saturated == 0.5  # 1 and 6, of four values
    assert not found.constant
    assert len(found.edges) == 25
    assert (found.edges[0], found.edges[-1]) == (1, 6)
    # 2 lies a fifth of the way along 24 bins, 3 two fifths, 6 in the last one
    assert np.flatnonzero(found.counts).tolist() == [0, 4, 9, 23]


def test_missing_and_infinite_numbers_are_counted_and_left_out():
    found = one([1, NAN, 3, INF, -INF, NAN], low=-INF, high=3)
    assert (found.missing, found.infinite, found.mean, found.spread) == (2, 2, 2, 1)
    assert found.saturated == pytest.approx(1 / 6)
    assert found.counts.sum() == 2
    assert not found.constant


def test_nothing_finite():
    found = one([NAN, NAN])
    assert found.missing == 2
    assert math.isnan(found.mean)
    assert found.counts.size == 0


def test_a_constant():
    found = one([0.1, 0.1, 0.1])
    assert found.constant
    assert found.spread == 0
    assert found.counts.tolist() == [3]
    assert found.edges.tolist() == pytest.approx([-0.4, 0.6])


@pytest.mark.parametrize(
    "values", [[1e300, 1e300], [-1.7e308, 1.7e308], [5e-324, 0.0], [1.0, np.nextafter(1, 2)]]
)
def test_histograms_hold_every_value_of_odd_ranges(values):
    found = one(values, dtype=np.float64)
    assert found.counts.sum() == 2
    assert (found.edges[1:] > found.edges[:-1]).all()


def test_whole_numbers_have_a_bin_each():
    found = one([3, 1, 3, 0], low=0, high=3, dtype=np.int64)
    assert found.edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]
    assert found.counts.tolist() == [1, 1, 0, 2]
    assert found.saturated == 0.75
    assert one([True, False, True], low=0, high=1, dtype=bool).counts.tolist() == [1, 2]


def test_a_bound_that_float32_rounds_is_still_met():
    bound = float(np.float32(0.1))
    assert one([0.1, 0.05], low=-0.1, high=0.1).saturated == 0.5
    assert one([bound, 0.05], low=-bound, high=bound).saturated == 0.5


def test_the_last_observation_of_an_episode_counts():
    obs = np.array([[0.0], [1.0]], dtype=np.float32)
    batch = batch_of(obs, next_obs=np.array([[1.0], [5.0]], dtype=np.float32))
    found = profile(batch, spaces.Box(-1, 2, (1,), np.float32), ("x",))[0]
    assert (found.seen_low, found.seen_high, found.mean) == (0, 5, 2)


def test_the_parts_of_a_dict_keep_their_dtypes():
    space = spaces.Dict({"a": spaces.Box(-1, 1, (2,), np.float32), "b": spaces.Discrete(3, start=1)})
    batch = batch_of(np.array([[0.5, 0, 1], [1, 0, 3]]))
    found = profile(batch, space, ("a_0", "a_1", "b"))
    assert [part.dtype for part in found] == ["float32", "float32", "int64"]
    assert [(part.low, part.high) for part in found] == [(-1, 1), (-1, 1), (1, 3)]
    assert found[1].constant


def test_images_are_described_as_such():
    images = np.arange(10 * 8 * 6 * 3, dtype=np.uint8).reshape(10, 8, 6, 3)
    space = spaces.Box(0, 255, (8, 6, 3), np.uint8)
    found = profile(batch_of(images), space, ())
    assert isinstance(found, ImageProfile)
    assert (found.shape, found.dtype, found.bytes_each) == ((8, 6, 3), "uint8", 144)
    assert found.rows.tolist() == [0, 2, 4, 5, 7, 9]
    assert (found.examples == images[found.rows]).all()
    floats = profile_images(images / np.float32(255), spaces.Box(0, 1, (8, 6, 3), np.float32))
    assert (floats.bytes_each, floats.low, floats.high) == (576, 0, 1)


def test_what_cannot_be_profiled_says_why():
    with pytest.raises(DesignError, match="2 bounds and 1 names"):
        profile_values(np.zeros((3, 2)), np.zeros(2), np.ones(2), ("x",))
    with pytest.raises(DesignError, match="record some episodes"):
        profile(batch_of(np.zeros((0, 1), dtype=np.float32)), spaces.Box(0, 1, (1,)), ("x",))
    with pytest.raises(DesignError, match="Tuple"):
        profile(batch_of(np.zeros((2, 1))), spaces.Tuple([spaces.Discrete(2)]), ("x",))


def test_whole_numbers_beyond_the_halves_of_a_double_have_a_histogram():
    largest = one([2**63 - 1, 2**63 - 1], dtype=np.int64)
    assert largest.constant
    assert largest.counts.tolist() == [2]
    apart = one([2**60, 2**60 + 512, 2**60 + 1024], dtype=np.int64)
    assert apart.counts.sum() == 3
    assert (np.diff(apart.edges) > 0).all()
