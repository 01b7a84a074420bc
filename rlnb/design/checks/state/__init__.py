"""Checks of a state: bounds, values, images, information, coverage, and whether it is enough."""
