"""The histogram of steps: counts as numpy's, edges that stand still."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.preview.preview import RewardPreview
from rlnb.design.preview.step_histogram import Axis, StepHistograms, choose_axis
from rlnb.design.reward import RewardSpec, Term
from rlnb.errors import DesignError
from tests.design.batches import make_batch


def counter(rows: int) -> StepHistograms:
    return StepHistograms(["random"], np.array([rows]))


def check(found, steps):
    """Holds a histogram against numpy's, with what lies beyond put into the end bins."""
    seen = steps[~np.isnan(steps)].astype(np.float64)
    first, last = found.edges[0], found.edges[-1]
    expected = np.histogram(np.clip(seen, first, last), bins=found.edges)[0]
    assert found.counts.tolist() == expected.tolist()
    assert found.below == np.count_nonzero(seen < first)
    assert found.above == np.count_nonzero(seen >= last)
    assert found.missing == len(steps) - len(seen)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(st.floats(width=32, allow_subnormal=False), st.sampled_from([0.0, -1.0, 0.5, 1.0, 100.0])),
        min_size=1,
        max_size=40,
    ),
    bins=st.sampled_from([1, 7, 48]),
)
def test_counts_are_numpys(steps, bins):
    values = np.array(steps, dtype=np.float32)
    found = counter(len(values)).count(values, bins)
    assert len(found.edges) == bins + 1
    check(found, values)


def test_values_on_and_beside_the_edges():
    axis = choose_axis(-3.0, 5.0, 48)
    edges = axis.edges.astype(np.float32)
    steps = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    histograms = counter(len(steps))
    histograms._axes[48] = axis
    check(histograms.count(steps.astype(np.float32), 48), steps.astype(np.float32))


def test_many_blocks_by_label():
    rng = np.random.default_rng(0)
    steps = rng.standard_normal(50_000).astype(np.float32)
    steps[::1000] = np.nan
    lengths = np.full(500, 100)
    labels = [("random", "demo", "idle")[number % 3] for number in range(500)]
    found = StepHistograms(labels, lengths).count(steps, 48)
    check(found, steps)
    assert list(found.by_label) == ["random", "demo", "idle"]
    rows = np.repeat(labels, lengths)
    for label, counts in found.by_label.items():
        of_label = steps[(rows == label) & ~np.isnan(steps)]
        expected = np.histogram(np.clip(of_label, found.edges[0], found.edges[-1]), bins=found.edges)[0]
        assert counts.tolist() == expected.tolist()
    # all but a thousandth at each end lie inside, and fill most of the axis
    assert 0 <= found.below + found.above <= 2 * 0.002 * len(steps)
    assert 4.5 < found.edges[-1] - found.edges[0] < 10


@settings(max_examples=100, deadline=None)
@given(low=st.floats(-1e30, 1e30), size=st.floats(1e-3, 1e30), bins=st.integers(8, 200))
def test_a_chosen_axis_fits_its_range(low, size, bins):
    size = max(size, 1e-5 * abs(low))
    axis = choose_axis(low, low + size, bins)
    assert axis.fits(low, low + size)
    assert axis.bins * axis.width <= 1.6 * (low + size - low)


def test_edges_stand_still_while_a_slider_moves():
    batch = make_batch(2000, seed=1, length=50)

    def edges(weight: float) -> list[float]:
        preview.update(RewardSpec([Term("a", "x", weight=weight)]))
        return preview.step_histogram().edges.tolist()

    preview = RewardPreview(batch, RewardSpec.env())
    first = edges(1.0)
    assert all(edges(weight) == first for weight in (1.05, 1.1, 0.9, 0.8, 0.7))
    wider = edges(3.0)
    assert wider[-1] - wider[0] > 2 * (first[-1] - first[0])
    narrow = edges(0.1)
    assert narrow[-1] - narrow[0] < 0.2 * (first[-1] - first[0])


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([0.0] * 5, -1.0, 1.0), ([-100.0] * 5, -110.0, -90.0), ([0.0] * 2000 + [100.0], 0.0, 100.0)],
)
def test_constant_and_sparse_pay(values, low, high):
    steps = np.array(values, dtype=np.float32)
    found = counter(len(steps)).count(steps, 48)
    assert found.edges[0] <= low
    assert found.edges[-1] >= high
    assert found.edges[-1] - found.edges[0] <= 1.6 * (high - low)
    assert sorted(found.counts[found.counts > 0].tolist(), reverse=True) == [
        count for count in (values.count(values[0]), values.count(100.0)) if count
    ]


def test_nothing_but_missing_values_and_infinities():
    steps = np.array([np.nan, np.inf, -np.inf], dtype=np.float32)
    found = counter(3).count(steps, 4)
    assert (found.missing, found.below, found.above) == (1, 1, 1)
    assert found.counts.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("bins", [0, 10_001, 2.5, True])
def test_wrong_numbers_of_bins(bins):
    with pytest.raises(DesignError, match="ask for 1 to 10,000"):
        counter(1).count(np.zeros(1, dtype=np.float32), bins)


def test_an_axis_by_hand():
    assert Axis(-2, 0.5, 4).edges.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert Axis(-2, 0.5, 4).fits(-1.0, 0.0)
    assert not Axis(-2, 0.5, 4).fits(-1.0, 1.1)
    assert not Axis(-2, 0.5, 4).fits(0.0, 0.5)
