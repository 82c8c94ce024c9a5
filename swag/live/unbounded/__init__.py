"""Unbounded windows: running aggregates, of which no row is kept."""
