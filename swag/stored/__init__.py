"""Over events that are all there: rows in order, requests in blocks, an aggregator for every family of aggregates."""
