"""What it means that two runs are the same."""

from __future__ import annotations

from typing import Any

from rlnb.job import Job
from rlnb.run.metrics import MetricReader, one_history

#: The clock and the memory differ between two runs, everything else must not.
CLOCKS = ("time", "speed/", "memory/", "time/")


def history(job: Job) -> list[dict[str, Any]]:
    """Returns the run's rows without clock readings, rewinds and checkpoints."""
    rows = one_history(MetricReader(job.layout).read()[0])
    return [
        {key: value for key, value in row.items() if not key.startswith(CLOCKS)}
        for row in rows
        if row["kind"] in ("train", "episode")
    ]


def assert_same_history(job: Job, reference: Job) -> None:
    """Asserts equal final weights, and equal metric rows without a gap or a repetition."""
    assert job.record["weights_sha256"] == reference.record["weights_sha256"]
    assert job.record["exact_resume"] is True
    assert history(job) == history(reference)
