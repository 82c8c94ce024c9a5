"""What is asked, as frozen values: aggregates, windows, conditions, expressions, queries, and their normal forms."""
