"""Arrays in, arrays out: the jitted structures behind swag's windows. Nothing here knows Arrow, queries or Spark."""
