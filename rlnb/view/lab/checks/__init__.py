"""The tab Checks."""
