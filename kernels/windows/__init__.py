"""The structures that answer windows over rings: R-INT, B-INT, L-INT and sorted runs (a card each)."""
