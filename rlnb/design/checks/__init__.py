"""Checks of a design on recorded rollouts: what would go wrong in training, found without training."""
