"""Implementations of the Storage seam."""
