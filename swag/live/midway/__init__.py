"""Queries that come while events flow: what they start from, and since when their answers are complete."""
