"""From events to frames: what lies between a table of events and the scans, and between these and a table of frames.

Events in: intake.py (ts and keys as numbers), layout.py (key after key).
Frames out: core.py (while events arrive), key_memory.py (what it remembers of some keys), numbering.py (stored events,
searched on all cores), ties.py (which of the events at one ts a frame begins with), quantiles.py (values that only the
events themselves tell) and intervals.py (aggregates of runs of events).
"""
