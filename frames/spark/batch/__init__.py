"""Frames of stored events on Spark.

stored_frames.py is what users call and plans the jobs, queries.py answers queries over frames; tasks.py runs in
workers. cutting.py cuts large substreams in time, joining.py puts the frames together that a cut went through.
"""
