"""What a state design may do to an observation: numbers one by one, over steps, and images."""
