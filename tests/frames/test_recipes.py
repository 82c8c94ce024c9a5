"""Specs read back from JSON as they were."""

import datetime
import json
import math

import numpy as np
import pytest

import frames as fr
import swag as sw
from frames.specs import spec_from_json
from tests.frames.cases import SPECS

MORE = [
    fr.Threshold("a column", ">", math.inf, True, min_rows=np.int64(3), min_duration="2m"),
    fr.Threshold("x", "==", np.float32(0.1), min_duration=datetime.timedelta(milliseconds=1500)),
    fr.Threshold("x", "<", 2**62 + 1, min_duration=np.timedelta64(7, "s")),
    fr.Boundary({"y": np.array([0.1, 2]), "x": np.int32(4)}),
    fr.Delta({"y": np.float64(0.1), "x": 2**60 + 1}, measure="range", op=">"),
    fr.Aggregate(sw.quantile("x", 0.1, method="linear").alias("q"), "<=", -math.inf),
]


@pytest.mark.parametrize("spec", [*SPECS.values(), *MORE])
def test_a_spec_reads_back(spec):
    again = spec_from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec
    assert again.columns == spec.columns
