"""Scalar SQL over the columns of events, row by row: parsed by sqlglot, computed by Arrow a batch at a time."""
