"""Finding runs among thousands: the index answers without opening a folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rlnb.listing import jobs
from rlnb.run.index import Index
from tests.benchmarks.harness import figure, timed

RUNS = 3500


@figure("list_3500", "s", "<= 0.2")
def list_3500() -> list[float]:
    with tempfile.TemporaryDirectory() as home:
        before = os.environ.get("RLNB_HOME")
        os.environ["RLNB_HOME"] = home
        try:
            index = Index()
            for number in range(RUNS):
                run = f"exp-2026-11-30-bench-{number:04x}"
                index.upsert(
                    run, url=f"/runs/{run}", folder=str(Path(home) / "runs" / run), name="bench", state="completed",
                    step=number, total_timesteps=RUNS, return_mean=float(number), tags=["bench"], algo="PPO",
                    created=f"2026-11-30T00:{number // 60 % 60:02d}:{number % 60:02d}Z",
                )  # fmt: skip
            assert len(jobs()) == RUNS
            return timed(jobs, 9)
        finally:
            os.environ.pop("RLNB_HOME")
            if before is not None:
                os.environ["RLNB_HOME"] = before
