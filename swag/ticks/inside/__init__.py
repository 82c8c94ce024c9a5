"""Streams inside of streams: answers that others read, tuples that are picked, relations, ticks among others'."""
