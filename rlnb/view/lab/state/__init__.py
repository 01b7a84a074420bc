"""The tab State."""
