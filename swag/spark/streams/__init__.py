"""Structured Streaming on Spark: shards of keys, each with streams of its own, a log, and a cache in its worker."""
