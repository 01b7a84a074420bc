"""Coverage maps: counts by hand, principal components with known directions."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.design.checks.finding import Severity
from rlnb.design.checks.state.coverage import check_coverage, coverage
from rlnb.design.checks.state.sample import take_sample
from rlnb.design.state import StateSpec
from rlnb.errors import DesignError
from tests.design.batches import NAMES, make_batch

VALUES = np.array([[0, 0], [1, 0], [4, 4], [4, 4], [0, 4]], dtype=np.float32)
LABELS = np.array(["random", "random", "demo", "demo", "random"], dtype=object)


def test_counts_shares_and_own_cells_of_each_policy():
    found = coverage(VALUES, ("x", "y"), LABELS, ("x", "y"), bins=4)
    assert found.axes == ("x", "y")
    assert found.x_edges.tolist() == found.y_edges.tolist() == [0, 1, 2, 3, 4]
    assert {label: np.argwhere(counts).tolist() for label, counts in found.counts.items()} == {
        "random": [[0, 0], [0, 3], [1, 0]],
        "demo": [[3, 3]],
    }
    assert found.counts["demo"][3, 3] == 2
    assert found.occupied == {"random": 0.75, "demo": 0.25}
    assert {label: int(cells.sum()) for label, cells in found.only.items()} == {"random": 3, "demo": 1}
    assert found.reached("demo", by="random") == 0
    assert found.reached("demo", by="demo") == 1


def test_axes_may_be_turned_and_rows_that_are_not_finite_are_counted():
    values = np.vstack([VALUES, [[np.nan, 1]]])
    found = coverage(values, ("x", "y"), [*LABELS, "demo"], ("y", "x"), bins=4)
    assert found.dropped == 1
    assert sum(int(counts.sum()) for counts in found.counts.values()) == 5
    assert np.argwhere(found.counts["random"]).tolist() == [[0, 0], [0, 1], [3, 0]]


def test_principal_components_explain_what_varies():
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal(4000)
    # Two copies of one number in different units, one of another, and a constant: 2 and 1 of 3 units of variance.
    values = np.column_stack([hidden, 1000 * hidden, rng.standard_normal(4000), np.full(4000, 0.1)])
    found = coverage(values, ("a", "b", "c", "d"), ["p"] * 4000)
    assert found.axes == ("PC1 (67 % of variance)", "PC2 (33 % of variance)")
    assert found.weights == pytest.approx(np.array([[0.5**0.5, 0.5**0.5, 0, 0], [0, 0, 1, 0]]), abs=0.05)
    assert found.counts["p"].sum() == 4000


def test_one_component_and_one_value_still_make_a_map():
    found = coverage(np.full((3, 1), 7.0), ("x",), ["p"] * 3, bins=2)
    assert found.counts["p"].sum() == 3
    assert found.axes[0] == "PC1 (0 % of variance)"


def test_labels_may_come_from_the_batch():
    batch = make_batch(12)
    values = batch.obs.matrix
    theirs, ours = (coverage(values, NAMES, labels) for labels in (batch, batch.policy))
    assert list(theirs.counts) == list(ours.counts) == ["random", "trained", ""]
    assert all((theirs.counts[label] == ours.counts[label]).all() for label in ours.counts)


def test_what_cannot_be_mapped_says_why():
    with pytest.raises(DesignError, match=r"no component 'z' .*x and y"):
        coverage(VALUES, ("x", "y"), LABELS, ("x", "z"))
    with pytest.raises(DesignError, match="4 labels for 5 rows"):
        coverage(VALUES, ("x", "y"), LABELS[:4])
    with pytest.raises(DesignError, match="No row"):
        coverage(VALUES * np.nan, ("x", "y"), LABELS)
    with pytest.raises(DesignError, match="No row"):
        coverage(VALUES[:0], ("x", "y"), LABELS[:0])


def test_the_finding_compares_random_with_each_other_policy():
    from gymnasium import spaces

    batch = make_batch(10)  # five rows of random, five of trained
    space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    matrix = np.zeros((10, 4), dtype=np.float32)
    matrix[:, 0] = [0, 1, 2, 3, 4, 0, 0, 10, 20, 30]
    batch = type(batch).from_arrays(
        matrix, matrix, batch.action, reward=batch.reward, terminated=batch.terminated, truncated=batch.truncated,
        t=batch.t, names=NAMES, labels=batch.labels,
    )  # fmt: skip
    found = check_coverage(take_sample(batch, StateSpec().plan(space, NAMES)))
    assert (found.code, found.severity, found.value) == ("state.coverage", Severity.HINT, 0.25)
    assert found.sentence.startswith(
        "Random rollouts reach 25 % of what trained visits (40 x 40 cells of PC1 (100 %"
    )


def test_values_whose_squares_or_ranges_are_infinite_are_mapped():
    values = np.array([[-1e308, 1.0], [0.0, 2.0], [1e308, 3.0]])
    found = coverage(values, ("x", "y"), LABELS[:3], bins=4)
    assert found.axes[0].startswith("PC1 (100 % of variance")
    by_axes = coverage(values, ("x", "y"), LABELS[:3], ("x", "y"), bins=4)
    assert {label: np.argwhere(counts).tolist() for label, counts in by_axes.counts.items()} == {
        "random": [[0, 0], [2, 2]],
        "demo": [[3, 3]],
    }
    assert by_axes.x_edges.tolist() == [-1e308, -0.5e308, 0, 0.5e308, 1e308]
