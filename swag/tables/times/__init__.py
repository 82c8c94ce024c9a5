"""Time as users write it: lengths of it, points in it, and where the periods of the calendar begin."""
