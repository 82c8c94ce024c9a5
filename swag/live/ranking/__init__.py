"""Structures that answer by rank, of sorted runs: quantiles, distinct values, and modes beside them."""
