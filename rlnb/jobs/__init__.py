"""Launches and follows jobs; never imports torch."""
