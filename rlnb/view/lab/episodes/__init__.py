"""The tab Episodes, and the recordings behind it."""
