"""What Spark forks the tests' Python workers from: pyspark.daemon, after all that they would import.

Spark forks another worker for each that has raised or is still at work, and tests make it do that often. By itself,
each imports pandas, Numba and swag: two seconds of a core. The clusters of test_cluster.py have the daemon of users.
"""

import runpy

import numpy as np
import pyspark.worker  # noqa: F401

import frames.spark.batch.queries
import frames.spark.streams.stream  # noqa: F401
import swag.spark.batch.filter_substreams
import swag.spark.streams.shard
import swag.spark.streams.stream  # noqa: F401
from kernels.keys.hashing import hash_bytes

if __name__ == "__main__":
    hash_bytes(np.zeros(1, np.uint8), np.zeros(1, np.int64), np.empty(0, np.uint64))  # Numba sets itself up: 0.4 s
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
