"""How frames are found: a scan per kind takes events in order of ts and remembers a few numbers of every key.

scan.py has what all scans share, kinds.py says which scan finds the frames of which spec, bounds.py turns comparisons
into the intervals that kernels know. The loops over events are in kernels/frames.
"""
