"""Substream filters: which keys may pass a condition, by indexes over the keys; and hundreds of conditions at once."""
