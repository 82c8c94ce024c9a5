"""Arrow in and out: columns, keys, predicates, points in time, durations, constants, tables of answers."""
