"""`python -m tests.benchmarks [NAME …]`: prints `name value unit target ok` a line."""

from __future__ import annotations

import importlib
import os
import sys

# One thread everywhere, before NumPy or torch is loaded: the plain and the instrumented side alike.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tests.benchmarks import harness  # noqa: E402

if __name__ == "__main__":
    for module in ("startup", "listing", "training", "design", "promotion", "lab_engine", "lab_screen"):
        importlib.import_module(f"tests.benchmarks.{module}")
    sys.exit(harness.run(sys.argv[1:]))
