"""Tables in files: Parquet, CSV, Arrow, one or several, read batch by batch or whole."""
