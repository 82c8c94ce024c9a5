"""Aggregates as monoids (lift, combine, take off, lower), and the arithmetic that all kernels share."""
