"""Pictures of frames: the signal of each key with its frames behind it."""
