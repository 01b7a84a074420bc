from __future__ import annotations

import math

import numpy as np
import pytest

from rlnb.view.series import MAX_POINTS, decimate, running_mean


def test_running_mean_uses_fewer_values_at_the_start():
    np.testing.assert_allclose(running_mean(np.array([1.0, 2.0, 3.0, 10.0]), 2), [1.0, 1.5, 2.5, 6.5])


def test_running_mean_passes_over_what_is_not_finite():
    values = np.array([math.nan, 2.0, math.inf, 4.0])
    np.testing.assert_allclose(running_mean(values, 2), [math.nan, 2.0, 2.0, 4.0])


def test_running_mean_of_large_values_loses_no_digits():
    values = 1e9 + np.tile([0.0, 1.0], 50_000)
    np.testing.assert_allclose(running_mean(values, 2)[1:] - 1e9, 0.5, atol=1e-3)


def test_running_mean_of_nothing():
    assert running_mean(np.empty(0), 20).shape == (0,)


def test_short_lines_stay_as_they_are():
    x, ys = np.arange(10.0), np.ones((2, 10))
    assert decimate(x, ys, 10) == (x, ys)


@pytest.mark.parametrize("count", [2001, 5000, 123_457])
def test_long_lines_keep_their_peaks_and_their_end(count):
    rng = np.random.default_rng(0)
    x, ys = np.arange(float(count)), rng.normal(size=(3, count))
    ys[0, count // 3], ys[1, count // 2] = 99.0, -99.0
    thin_x, thin = decimate(x, ys)
    assert thin_x.size <= MAX_POINTS
    assert thin.shape == (3, thin_x.size)
    assert np.all(np.diff(thin_x) >= 0)
    assert thin[0].max() == 99.0
    assert thin[1].min() == -99.0
    np.testing.assert_array_equal(thin[:, -1], ys[:, -1])
    assert (thin_x[0], thin_x[-1]) == (0.0, count - 1)


def test_gaps_stay_gaps():
    x, ys = np.arange(10_000.0), np.ones((1, 10_000))
    ys[0, 2000:4000] = math.nan
    thin_x, thin = decimate(x, ys, 100)
    inside = (thin_x > 2200) & (thin_x < 3800)
    assert inside.any()
    assert np.isnan(thin[0, inside]).all()
    assert np.isfinite(thin[0, ~((thin_x > 1800) & (thin_x < 4200))]).all()
