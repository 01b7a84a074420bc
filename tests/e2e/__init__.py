"""Whole runs, through the front door: real notebooks, processes, kernels, stores and signals."""
