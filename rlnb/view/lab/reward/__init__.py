"""The tab Reward."""
