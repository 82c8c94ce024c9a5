"""Stored DataFrames on Spark: rows laid out by key and time, and what workers do with them."""
