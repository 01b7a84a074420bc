"""`python -m rlnb.jobs.worker`."""

from __future__ import annotations

import sys

from rlnb.jobs.worker.process import main

if __name__ == "__main__":
    sys.exit(main())
