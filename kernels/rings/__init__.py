"""Many keys in one arena: rings of rows, batches by key, window edges by time and by rows."""
