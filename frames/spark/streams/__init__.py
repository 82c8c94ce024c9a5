"""Frames of Structured Streaming sources.

stream.py is what users call, and the body of a shard; keyed_state.py is what it logs of keys that were touched,
open_events.py the logged events that open frames still need.
"""
