"""Lookups: what queries ask of structures, together for all of them, and what is computed of the answers."""
