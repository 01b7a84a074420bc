"""`python -m rlnb.jobs.mirror`."""

from __future__ import annotations

import sys

from rlnb.jobs.mirror.process import main

if __name__ == "__main__":
    sys.exit(main())
