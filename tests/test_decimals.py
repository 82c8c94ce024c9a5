"""Decimals: sum, min, max, first, last, arg_max and arg_min are exact decimals, everything else floats."""

import math
import statistics
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw

MONEY = pa.decimal128(12, 2)
WIDE = pa.decimal128(38, 4)
EXACT: dict[str, tuple[Any, Any]] = {
    "sum": (sw.sum("c"), sum), "min": (sw.min("c"), min), "max": (sw.max("c"), max),
    "first": (sw.first("c"), lambda xs: xs[0]), "last": (sw.last("c"), lambda xs: xs[-1]),
    "arg_max": (sw.arg_max("c", "c"), max), "arg_min": (sw.arg_min("c", "c"), min),
    "floor": (sw.quantile("c", 0.5), lambda xs: sorted(xs)[max(1, len(xs) // 2) - 1]),
    "mode": (sw.mode("c"), lambda xs: max(xs, key=lambda x: (xs.count(x), -xs.index(x)))),
}  # fmt: skip
FLOATS: dict[str, tuple[Any, Any]] = {
    "mean": (sw.mean("c"), lambda xs: float(statistics.mean(xs))),
    "median": (sw.median("c"), lambda xs: float(statistics.median(xs))),
    "var": (sw.var("c", ddof=0), lambda xs: float(statistics.pvariance(xs))),
    "std": (sw.std("c", ddof=0), lambda xs: float(statistics.pstdev(xs))),
    "cov": (sw.cov("c", "c", ddof=0), lambda xs: float(statistics.pvariance(xs))),
    "wmean": (sw.wmean("c", "one"), lambda xs: float(statistics.mean(xs))),
    "slope": (sw.slope("twice", "c"), lambda xs: 2.0 if len(set(xs)) > 1 else None),
    "product": (sw.product("c"), lambda xs: math.prod(map(float, xs))),
    "decayed": (sw.decayed_sum("c", half_life=10**12), lambda xs: float(sum(xs))),
}  # fmt: skip
AGGREGATES = EXACT | FLOATS
VALUES = st.lists(st.none() | st.integers(-(10**9), 10**9), min_size=1, max_size=25)


def table_of(units: list[int | None], kind: pa.DataType) -> pa.Table:
    values = [None if each is None else Decimal(each).scaleb(-2) for each in units]
    twice = [None if each is None else 2.0 * float(each) for each in values]
    schema = pa.schema([("ts", pa.int64()), ("c", kind), ("twice", pa.float64()), ("one", pa.int64())])
    return pa.table({"ts": range(len(units)), "c": values, "twice": twice, "one": [1] * len(units)}, schema)


def right(values: list[Any], name: str) -> Any:
    there = [value for value in values if value is not None]
    return AGGREGATES[name][1](there) if there else None


def agrees(found: Any, wanted: Any, name: str, values: list[Any]) -> bool:
    if name in EXACT or wanted is None or found is None:
        return found == wanted or (name == "slope" and (found is None or found != found))
    if name == "product":
        return bool(found == pytest.approx(wanted, rel=1e-12))
    scale = max((abs(float(value)) for value in values if value is not None), default=1) ** (2 if "v" in name else 1)
    return bool(abs(found - wanted) <= 1e-9 * max(1, scale * len(values)))


@pytest.mark.parametrize("kind", [MONEY, WIDE, pa.decimal256(60, 2)], ids=str)
@given(units=VALUES, cut=st.integers(0, 25))
def test_decimals_are_exact_and_the_rest_are_floats(kind: pa.DataType, units: list[int | None], cut: int) -> None:
    table = table_of(units, kind)
    windows = {"rows": sw.Rows(5), "ever": sw.Unbounded()}
    queries = [
        sw.Query(what, window, name=f"{name} {w}")
        for name, (what, _) in AGGREGATES.items()
        for w, window in windows.items()
        if w == "rows" or name not in ("median", "floor", "mode", "decayed")
    ]
    stored = sw.evaluate(queries, table)
    engine = sw.Engine()
    engine.register(queries[:: 1 if cut % 2 else -1])
    for part in (table.slice(0, cut), table.slice(cut)):
        engine.append(part)
    live = engine.lookup_all().to_pylist()[0]
    values = table["c"].to_pylist()
    for query in queries:
        name, w = query.label.split()
        window = values[-5:] if w == "rows" else values
        wanted = right(window, name)
        for found in (stored[query.label].to_pylist()[-1], live[query.label]):
            assert agrees(found, wanted, name, window), (query, found, wanted)
        of = stored[query.label].type
        widest = pa.decimal256(76, kind.scale) if pa.types.is_decimal256(kind) else pa.decimal128(38, kind.scale)
        assert of == (widest if name == "sum" else kind if name in EXACT else pa.float64())


def test_decimals_that_were_only_handed_back_are_summed_from_some_batch_on() -> None:
    engine, values = sw.Engine(), pa.array([Decimal("1.5"), Decimal("-2.25"), Decimal("7")], WIDE)
    engine.register(sw.Query(sw.last("c"), sw.Rows(5), name="last"))
    engine.append({"ts": [1, 2], "c": values.slice(0, 2)})
    engine.register([sw.Query(sw.sum("c"), sw.Rows(5), name="sum"), sw.Query(sw.first("c"), sw.Rows(5), name="first")])
    assert engine.lookup("last") == engine.lookup("first") + Decimal("-3.75")
    engine.append({"ts": [3], "c": values.slice(2)})
    assert (engine.lookup("last"), engine.lookup("first")) == (7, Decimal("1.5"))
    assert engine.lookup("sum") == Decimal("6.25")


def test_decimals_in_statements_conditions_and_functions_that_can_not_have_them() -> None:
    table = table_of([150, 225, -100], MONEY)
    text = "SELECT SUM(c) AS s, SUM(CAST(twice AS DECIMAL(10, 3))) AS d, AVG(c) / 2 AS m FROM t [ROWS 3]"
    found = sw.evaluate(text, table).to_pylist()[-1]
    assert (found["s"], found["d"], round(found["m"], 12)) == (Decimal("2.75"), Decimal("5.5"), round(2.75 / 6, 12))
    having = sw.Query(sw.sum("c"), sw.Rows(3), name="q", having=(">", Decimal("2.75")))
    assert sw.evaluate(having, table)["q"].to_pylist() == [None, Decimal("3.75"), None]
    for column in ("c", "CAST(c AS DOUBLE)", "c * 1.0"):
        product = sw.Query(sw.product(column), sw.Rows(3), name="q")
        assert np.isclose(sw.evaluate(product, table)["q"][2].as_py(), -3.375)
    with pytest.raises(sw.BadType, match='takes true and false, but "c" is a column of type decimal'):
        sw.evaluate(sw.Query(sw.count_if("c"), sw.Rows(3)), table)
