"""Which events are a frame's own, where others share its first or last ts.

origin.py notes with the frames where they were found, by a fingerprint of the events; meeting.py brings frames and
events onto one clock and one set of keys; owning.py tells the events of a frame from the others.
"""
