from __future__ import annotations

import pytest

from rlnb.design.schedule import read_weight, weight_at
from rlnb.errors import DesignError


@pytest.mark.parametrize(
    ("weight", "progress", "value"),
    [
        (2.5, 0.7, 2.5),
        ("lin_1", 0.0, 1.0),
        ("lin_1", 0.25, 0.75),
        ("lin_1", 1.0, 0.0),
        ("lin_1e-3", 0.5, 0.0005),
        ("lin_-2_2", 0.5, 0.0),
        ("lin_0_.5", 1.0, 0.5),
        ("lin_1", -3.0, 1.0),
        ("lin_1", 9.0, 0.0),
    ],
)
def test_weights(weight, progress, value):
    assert weight_at(read_weight(weight, "a"), progress) == value


@pytest.mark.parametrize("weight", ["lin", "lin_", "lin_x", "lin_1_", "1.0", None, True, float("inf"), [1]])
def test_what_is_no_weight_is_refused(weight):
    with pytest.raises(DesignError, match="The weight of term 'a' is .*'lin_1'"):
        read_weight(weight, "term 'a'")
