"""Values that are no numbers, as an engine keeps them: each once, under a number that rows hold in its place."""
