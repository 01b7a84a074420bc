"""The Lab's workbench and its tabs: a reward and a state shaped by hand on recorded rollouts."""
