"""Thresholds over decimals: exactly the events for which the same predicate holds, whatever the digits."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frames as fr
import swag as sw

KINDS = [pa.decimal128(5, 2), pa.decimal128(38, 30), pa.decimal256(60, 2)]


@given(
    values=st.lists(st.none() | st.integers(-300, 300), max_size=12),
    kind=st.sampled_from(KINDS),
    op=st.sampled_from(["<", "<=", ">", ">=", "=="]),
    c=st.integers(-3, 3) | st.integers(-300, 300).map(lambda n: n / 100) | st.floats(-4, 4) | st.just(float("inf")),
    partition=st.booleans(),
)
def test_a_threshold_of_decimals_holds_where_the_comparison_does(
    values: list[Any], kind: pa.DataType, op: Any, c: Any, partition: bool
) -> None:
    d = [None if each is None else Decimal(each).scaleb(-2) for each in values]
    spec = fr.Threshold("d", op, c, partition=partition)
    events = pa.table({"ts": pa.array(range(len(d)), pa.int64()), "d": pa.array(d, kind)})
    written = c if isinstance(c, int) else Decimal(repr(c))
    holds = {"<": lambda v: v < written, "<=": lambda v: v <= written, ">": lambda v: v > written,
             ">=": lambda v: v >= written, "==": lambda v: v == written}[op]  # fmt: skip
    flags = {"ts": events["ts"], "f": pa.array([each is not None and holds(each) for each in d], pa.bool_())}
    expected = fr.detect(fr.Threshold("f", partition=partition), flags)
    found = fr.detect(spec, events)
    assert found.to_pylist() == expected.to_pylist()
    detector = fr.Detector(spec)
    for at in range(len(d)):
        detector.push(events.slice(at, 1))
    assert len(d) == 0 or detector.finish().to_pylist() == expected.to_pylist()
    if not partition:
        theirs = fr.theory.final(spec, events)
        assert theirs == [(row["start"], row["end"]) for row in found.to_pylist()]


MONEY = {
    "ts": [1, 2, 2, 3],
    "d": pa.array([Decimal("1.10"), Decimal("0.30"), Decimal("1.20"), None], pa.decimal128(9, 2)),
}


def test_a_number_is_meant_as_it_is_written() -> None:
    for spec in (fr.Threshold("d", ">=", 1.1), fr.Threshold("d >= 1.1"), fr.Threshold("d * 2", ">=", 2.2)):
        assert fr.detect(spec, MONEY)["rows"].to_pylist() == [1, 1]
    found = fr.detect(fr.Threshold("d", ">=", 1.1), MONEY)
    assert fr.summarize(found, MONEY, sw.sum("d"), own=True)["sum(d)"].to_pylist() == [Decimal("1.10"), Decimal("1.20")]
    [answers] = [sw.evaluate("SELECT SUM(d) AS s FROM m [FRAME WHERE d < 1.1]", MONEY)]
    assert answers["s"].to_pylist() == [Decimal("0.30")]


@pytest.mark.parametrize(
    "make",
    [lambda d: fr.Delta(d, 0.5), lambda d: fr.Boundary(d, 0.5), lambda d: fr.Aggregate(sw.sum(d), ">=", 1)],
)
def test_other_frames_over_decimals_are_refused_with_the_cast_to_write(make: Any) -> None:
    with pytest.raises(sw.BadType, match=r'"d", a column of type decimal128\(9, 2\). Hint: CAST\(d AS DOUBLE\)'):
        fr.detect(make("d"), MONEY)
    assert fr.detect(make("CAST(d AS DOUBLE)"), MONEY).num_rows


@pytest.mark.parametrize("condition", ["MAX(d) - MIN(d) > 0.5", "SUM(d * 2) > 2 AND COUNT(*) > 1", "MAX(d) > 1"])
def test_frames_over_aggregates_of_decimals_are_refused_with_the_cast_that_works(condition: str) -> None:
    text = "SELECT COUNT(*) AS n FROM t [FRAME UNTIL {}]"
    with pytest.raises(sw.BadType, match="CAST") as found:
        sw.evaluate(text.format(condition), MONEY)
    cast = found.value.hint.removesuffix(" in it")
    inner = cast[len("CAST(") : -len(" AS DOUBLE)")]
    assert inner in condition
    assert sw.evaluate(text.format(condition.replace(inner, cast)), MONEY)["n"].to_pylist()
