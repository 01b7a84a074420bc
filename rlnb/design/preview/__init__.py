"""What a reward would have paid for recorded steps, kept up to date while it is edited."""
