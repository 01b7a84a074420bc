"""The process that brings a run's working copy to its store."""
