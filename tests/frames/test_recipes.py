"""Specs read back from JSON and from SQL as they were."""

import datetime
import json
import math

import numpy as np
import pytest

import frames as fr
import swag as sw
from frames.specs import spec_from_json
from tests.frames.cases import FURTHER, SPECS

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


@pytest.mark.parametrize("spec", [*SPECS.values(), *FURTHER.values()])
def test_a_spec_reads_back_from_its_clause(spec):
    own = isinstance(spec, fr.Aggregate) and any(each.user is not None for each in spec.aggregates)
    if own or isinstance(spec, fr.Pattern):  # functions have no SQL, patterns have MATCH_RECOGNIZE
        return
    text = f"SELECT COUNT(*) FROM t [FRAME {spec.clause()}]"
    (query,) = sw.sql(text)
    assert query.spec.clause() == spec.clause() and type(query.spec) is type(spec)


def test_a_quantile_is_compared_in_sql():
    (until,) = sw.sql("SELECT COUNT(*) FROM t [FRAME UNTIL MEDIAN(x) >= 1 FOR AT MOST 9 ROWS]")
    assert until.spec == fr.Aggregate(sw.median("x"), ">=", 1, max_rows=9)
    (kept,) = sw.sql("SELECT COUNT(*) FROM t [FRAME WHILE QUANTILE(x, 0.9) > 1]")
    assert kept.spec == fr.Aggregate(sw.quantile("x", 0.9), ">", 1, close="before")
    with pytest.raises(sw.BadSQL, match=r"column 31: median.*by itself"):
        sw.sql("SELECT COUNT(*) FROM t [FRAME UNTIL MEDIAN(x) - MIN(x) >= 1]")
