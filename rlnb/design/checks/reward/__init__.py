"""Checks of a reward: separation, exploits, terms against each other, the signal, shaping, truncation."""
