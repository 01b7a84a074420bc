"""What it means that two runs have the same history."""

from __future__ import annotations

from typing import Any

from rlnb.run.layout import RunLayout
from rlnb.run.metrics import MetricReader, one_history

#: The clock and the memory differ between two runs, everything else must not.
CLOCKS = ("speed/", "memory/", "time/fps")


def rows(layout: RunLayout, kind: str) -> list[dict[str, Any]]:
    """Returns the run's one history of a kind of rows, without clock readings."""
    history = one_history(MetricReader(layout).read()[0])
    return [
        {key: value for key, value in row.items() if key != "time" and not key.startswith(CLOCKS)}
        for row in history
        if row["kind"] == kind
    ]


def assert_same_rows(layout: RunLayout, reference: RunLayout) -> None:
    """Asserts that both runs' episodes and training rows are the same: no gap, no repetition, no difference."""
    for kind in ("episode", "train"):
        mine, other = rows(layout, kind), rows(reference, kind)
        for index, (ours, theirs) in enumerate(zip(mine, other, strict=False)):
            assert ours == theirs, f"{kind} {index} of {len(other)} differs: {ours} instead of {theirs}"
        assert len(mine) == len(other), f"there are {len(mine)} {kind} rows instead of {len(other)}"
    assert rows(reference, "train"), "the reference has no training rows"
