"""Windows over events that are all there: edges in bulk, then sums by differences, sweeps and ranks."""
