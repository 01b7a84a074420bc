"""Freezing a notebook: what ran, what it needs, and what is wrong with it."""
