"""The gymnasium side: make environments, apply designs to them, record rollouts."""
