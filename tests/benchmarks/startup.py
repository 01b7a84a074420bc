"""What it costs to have rlnb at all: import time, a metric row, the supervisor's memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rlnb.run.layout import RunLayout
from rlnb.run.metrics import JsonlMetricLog
from tests.benchmarks.harness import figure


@figure("import_time", "s", "< 0.2")
def import_time() -> list[float]:
    def start(code: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begun

    start("import rlnb")
    return [start("import rlnb") - start("pass") for _ in range(7)]


@figure("metric_row", "us", "<= 50")
def metric_row() -> list[float]:
    row = {"kind": "train", "step": 1, **{f"train/value_{i}": 0.123456789 * i for i in range(10)}}
    with tempfile.TemporaryDirectory() as folder:
        log = JsonlMetricLog(RunLayout(Path(folder)), 1)
        values = []
        for _ in range(20):
            begun = time.perf_counter()
            for _ in range(1000):
                log.append(row)
            values.append((time.perf_counter() - begun) * 1e3)  # ms per 1,000 rows = us per row
    return values
