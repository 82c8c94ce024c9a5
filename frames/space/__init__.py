"""Frames over keys and space: frames of keys that lie next to each other, joined into episodes."""
