"""Bytes: the run folder, its files, and the stores it is mirrored to. Processes meet only here."""
