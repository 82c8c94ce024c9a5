"""Frames in one pass over events: a scan per kind of frame, their operators, their order, and rows that fill gaps."""
