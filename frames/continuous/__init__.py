"""Queries over frames while events come: what is said of a frame grows with it, event by event, without keeping these.

batches     a batch by key, and the pieces that frames, runs and gaps have in it
partials    what is known of pieces, as the monoids of windows: folded, joined, handed on
kept_events events of open frames, for aggregates of which nothing less than these can be kept
summaries   both, for the frames that a detector finds
event_summary   the same of frames that overlap and of matches, by the events alone
running     a query over frames at work in an engine; matches: a statement over matches; filled: from another stream
"""
