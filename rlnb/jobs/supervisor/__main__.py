"""`python -m rlnb.jobs.supervisor`."""

from __future__ import annotations

import sys

from rlnb.jobs.supervisor.process import main

if __name__ == "__main__":
    sys.exit(main())
