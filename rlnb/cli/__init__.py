"""The command line: `rlnb` and `python -m rlnb`."""
