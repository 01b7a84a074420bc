"""Contract suites for the seams and real small implementations to run them against."""
