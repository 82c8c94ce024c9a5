"""What outlives a process: the protocol by which classes hand over state, snapshots, and files that appear whole."""
