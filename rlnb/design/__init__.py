"""Meaning: transitions, reward and state specifications. Arrays in, arrays out."""
