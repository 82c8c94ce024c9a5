"""Structures: kernels with their state, each over the rows of a space: R-INT, B-INT, L-INT, sorted runs, baselines."""
