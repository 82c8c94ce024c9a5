"""The rows of many filters in one space: which rows count for which, and where those of a filter and a key lie."""
