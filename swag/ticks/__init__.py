"""Queries that answer at ticks: when they tick, rows that wait for it, and streams inside of streams."""
