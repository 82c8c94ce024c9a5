"""Decimals of many digits on Spark: batches and streams give the answers of an engine."""

import datetime
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest

import swag as sw
import swag.spark
from swag.spark import Layout
from tests.spark.compare import assert_same
from tests.spark.streams import run, source, write

CUT = Layout(tasks=3, sample=1.0, task_rows=20, block_rows=50)
LARGEST = {38: 10**35, 18: 10**18 - 1}


def events(digits: int, rows: int = 300) -> pa.Table:
    """Sums of either type leave int64 and come back."""
    rng = np.random.default_rng(digits)
    units = [
        int(sign) * LARGEST[digits] // int(by)
        for sign, by in zip(rng.choice([-1, 1, 1], rows), rng.integers(1, 9, rows))
    ]
    values = [None if i % 11 == 0 else Decimal(u).scaleb(-2, Context(prec=99)) for i, u in enumerate(units)]
    columns = {
        "ts": np.arange(rows),
        "k": rng.choice(["a", "b", "c"], rows),
        "d": pa.array(values, pa.decimal128(digits, 2)),
    }
    return pa.table(columns)


def queries(window: sw.Range | sw.Rows) -> list[sw.Query]:
    asked = {
        "sum": sw.sum("d"), "max": sw.max("d"), "arg": sw.arg_min("ts", "d"), "mean": sw.mean("d"), "std": sw.std("d"),
        "spread": sw.max("d") - sw.min("d"), "first": sw.first("d"), "product": sw.product("d"),
    }  # fmt: skip
    return [sw.Query(what, window, name=name) for name, what in asked.items()]


@pytest.mark.parametrize("digits", LARGEST)
def test_stored_decimals(spark, digits):
    table, asked = events(digits), queries(sw.Rows(40))
    df = spark.createDataFrame(table, f"ts long, k string, d decimal({digits}, 2)")
    assert_same(
        swag.spark.evaluate(asked, df, key="k", layout=CUT).toArrow(), sw.evaluate(asked, table, key="k"), by="ts"
    )


def test_streams_of_decimals(spark, tmp_path):
    seconds = events(38)["ts"].to_numpy()
    table = events(38).set_column(0, "ts", pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")))
    write(tmp_path / "in", [table.slice(0, 100), table.slice(100, 100), table.slice(200)])
    asked = [sw.Query(sw.sum("d"), sw.Range(f"{width}s"), name=f"sum{width}") for width in (20, 90)]
    frame = source(spark, tmp_path / "in", "ts timestamp, k string, d decimal(38, 2)")
    sink, _ = run(swag.spark.stream(asked, frame, ts="ts", key="k", lateness="5 seconds"), tmp_path / "checkpoint")
    looked = 0
    for rows in (rows for rows in sink.batches.values() if rows):
        upto = rows[0][2].replace(tzinfo=datetime.UTC)
        engine = sw.Engine(key="k")
        engine.register(asked)
        engine.append(table.filter(pa.array(seconds <= upto.timestamp())))
        engine.advance(upto)
        for name in ("sum20", "sum90"):
            found = {row[3]: row[4] for row in rows if row[0] == name}
            assert found == dict(zip(*engine.lookup(name).to_pydict().values(), strict=True))
            looked += len(found)
    assert looked > 10
