"""How kernels are compiled: one decorator, its cache on disk, parts that are inlined, and functions of a user's."""
