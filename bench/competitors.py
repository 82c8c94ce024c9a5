"""Who answers the same questions: one class each, with the data in its own format before the clock starts.

Every `range`, `rows`, `quantile` answers all its windows in one call and leaves the answers in the contender's own
format; `column(answers, i)` is those of window i as floats, nulls as NaN. tests/test_bench.py holds them against each
other.
"""

from typing import Any

import bottleneck
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import swag as sw
from bench.data import Stream

FEATURES = ("count", "sum", "mean", "max")


class Swag:
    name = "swag"

    def __init__(self, events: Stream) -> None:
        self.table = arrow(events)

    def range(self, kind: str, widths: list[int]) -> pa.Table:
        aggregate = getattr(sw, kind)("x")
        return self._each([sw.Query(aggregate, sw.Range(f"{w}ms"), name=f"w{i}") for i, w in enumerate(widths)])

    def rows(self, kind: str, widths: list[int]) -> pa.Table:
        aggregate = getattr(sw, kind)("x")
        return self._each([sw.Query(aggregate, sw.Rows(w), name=f"w{i}") for i, w in enumerate(widths)])

    def quantile(self, phi: float, widths: list[int]) -> pa.Table:
        aggregate = sw.quantile("x", phi, method="linear")
        return self._each([sw.Query(aggregate, sw.Range(f"{w}ms"), name=f"w{i}") for i, w in enumerate(widths)])

    def features(self, requests: Stream, widths: list[int]) -> pa.Table:
        kinds = [sw.count(), *(getattr(sw, kind)("x") for kind in FEATURES[1:])]
        queries = [
            sw.Query(kind, sw.Range(f"{w}ms"), name=f"{kind.kind}{i}") for i, w in enumerate(widths) for kind in kinds
        ]
        return sw.evaluate(queries, self.table, at=arrow(requests).drop_columns("x"), ts="ts", key="key")

    def _each(self, queries: list[sw.Query]) -> pa.Table:
        return sw.evaluate(queries, self.table, ts="ts")

    @staticmethod
    def column(answers: pa.Table, i: int) -> np.ndarray:
        return np.asarray(answers[f"w{i}"].to_numpy(), np.float64)


class Polars:
    """All windows in one `select`: Polars runs them on all cores."""

    name = "Polars"

    def __init__(self, events: Stream) -> None:
        self.frame = pl.DataFrame({"ts": events.ts.astype("datetime64[ms]"), "x": events.x})

    def range(self, kind: str, widths: list[int]) -> pl.DataFrame:
        rolling = getattr(pl.col("x"), f"rolling_{kind}_by")
        return self.frame.select(rolling("ts", window_size=f"{w}ms").alias(f"w{i}") for i, w in enumerate(widths))

    def quantile(self, phi: float, widths: list[int]) -> pl.DataFrame:
        rolling = pl.col("x").rolling_quantile_by
        return self.frame.select(
            rolling("ts", window_size=f"{w}ms", quantile=phi, interpolation="linear").alias(f"w{i}")
            for i, w in enumerate(widths)
        )

    @staticmethod
    def column(answers: pl.DataFrame, i: int) -> np.ndarray:
        return answers[f"w{i}"].cast(pl.Float64).fill_null(float("nan")).to_numpy()


class DuckDB:
    """One query with a window function per window; ts as an integer, which it is faster with than with timestamps."""

    name = "DuckDB"
    functions = {"mean": "avg", "std": "stddev_samp"}

    def __init__(self, events: Stream) -> None:
        self.connection = duckdb.connect()
        self._create("events", events)

    def range(self, kind: str, widths: list[int]) -> pa.Table:
        function = self.functions.get(kind, kind)
        over = [
            f"{function}(x) OVER (ORDER BY ts RANGE BETWEEN {w - 1} PRECEDING AND CURRENT ROW) AS w{i}"
            for i, w in enumerate(widths)
        ]
        return self.connection.sql(f"SELECT {', '.join(over)} FROM events").to_arrow_table()

    def load_requests(self, requests: Stream) -> None:
        self._create("requests", requests)

    def features(self, widths: list[int]) -> pa.Table:
        """Requests are rows of the window query, without a value; they see the events up to their own time."""
        over = [
            f"{self.functions.get(kind, kind)}(x) OVER "
            f"(PARTITION BY key ORDER BY ts RANGE BETWEEN {w - 1} PRECEDING AND CURRENT ROW)"
            f" AS {kind}{i}"
            for i, w in enumerate(widths)
            for kind in FEATURES
        ]
        joined = "SELECT ts, key, x, -1 AS row FROM events UNION ALL SELECT ts, key, NULL, row FROM requests"
        wide = f"SELECT row, {', '.join(over)} FROM joined"
        query = f"WITH joined AS ({joined}), wide AS ({wide}) SELECT * FROM wide WHERE row >= 0"
        return self.connection.sql(query).to_arrow_table()

    def _create(self, name: str, events: Stream) -> None:
        columns = {"ts": events.ts, "x": events.x, "row": np.arange(events.ts.size)}
        table = pa.table(columns if events.key is None else columns | {"key": events.key})
        self.connection.register("arriving", table)
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM arriving")
        self.connection.unregister("arriving")

    column = staticmethod(Swag.column)


class Bottleneck:
    """One call per window, on one core: it has no other way."""

    name = "bottleneck"

    def __init__(self, events: Stream) -> None:
        self.x = events.x

    def rows(self, kind: str, widths: list[int]) -> list[np.ndarray]:
        move = getattr(bottleneck, f"move_{kind}")
        return [move(self.x, window=w, min_count=1) for w in widths]

    @staticmethod
    def column(answers: list[np.ndarray], i: int) -> np.ndarray:
        return answers[i]


COMPETITORS: dict[str, list[type[Any]]] = {  # which of them can answer what
    "range": [Swag, Polars, DuckDB],
    "rows": [Swag, Bottleneck],
    "quantile": [Swag, Polars],
    "features": [Swag, DuckDB],
}


def arrow(events: Stream) -> pa.Table:
    columns = {"ts": events.ts.astype("datetime64[ms]"), "x": events.x}
    return pa.table(columns if events.key is None else columns | {"key": events.key})
