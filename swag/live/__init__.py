"""Over events that come: rows in rings, structures over them, lookups, filters over keys. A core is all of it."""
