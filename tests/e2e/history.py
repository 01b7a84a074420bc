"""What it means that two runs are the same."""

from __future__ import annotations

from rlnb.job import Job
from tests.histories import assert_same_rows


def assert_same_history(job: Job, reference: Job) -> None:
    """Asserts equal final weights, and one history without a gap, a repetition or a difference."""
    assert job.record["weights_sha256"] == reference.record["weights_sha256"]
    assert job.record["exact_resume"] is True
    assert_same_rows(job.layout, reference.layout)
