"""Where a job runs: one module per place, one seam for all."""
