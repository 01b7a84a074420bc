"""Figures. They print ratios against the plain alternative in the same process, and gate nothing."""
