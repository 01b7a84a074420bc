"""What it means that two runs are the same."""

from __future__ import annotations

from typing import Any

from rlnb.job import Job
from rlnb.run.metrics import MetricReader, one_history

#: The clock and the memory differ between two runs, everything else must not.
CLOCKS = ("time", "speed/", "memory/", "time/")


def rows(job: Job, kind: str) -> list[dict[str, Any]]:
    """Returns the run's one history of a kind of rows, without clock readings."""
    history = one_history(MetricReader(job.layout).read()[0])
    return [
        {key: value for key, value in row.items() if not key.startswith(CLOCKS)}
        for row in history
        if row["kind"] == kind
    ]


def assert_same_history(job: Job, reference: Job) -> None:
    """Asserts equal final weights, and one history without a gap, a repetition or a difference."""
    assert job.record["weights_sha256"] == reference.record["weights_sha256"]
    assert job.record["exact_resume"] is True
    mine, other = rows(job, "episode"), rows(reference, "episode")
    for index, (ours, theirs) in enumerate(zip(mine, other, strict=False)):
        assert ours == theirs, f"episode {index} of {len(other)} differs: {ours} instead of {theirs}"
    assert len(mine) == len(other)
    # Which steps get a row of SB3's values depends on the clock; what stands in it does not.
    by_step = {row["step"]: row for row in rows(reference, "train")}
    steps = [row["step"] for row in rows(job, "train")]
    assert steps == sorted(set(steps)), "a training row was written twice or out of order"
    for row in rows(job, "train"):
        assert row == by_step.get(row["step"], row)
