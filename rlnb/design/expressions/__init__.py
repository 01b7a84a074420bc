"""The small language of rewards and derived components: parsed, checked, bounded, evaluated over a batch."""
