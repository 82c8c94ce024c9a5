"""Small rehearsals of what users do first, from which processes learn which kernels to compile ahead of them.

Each is a function of what can be pickled: the queries, and a few of the rows. See kernels/compile/ahead.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from swag.query.query import Query
from swag.tables.columns import as_table

ROWS = 48  # enough for several keys, and rows of some of them


def of_append(engine: Any, events: Any) -> Callable[[], Any]:
    """What an engine does with a first batch, and when it is asked afterwards."""
    options = {"ts": engine.ts, "key": engine.key, "lateness": engine.lateness, "algorithm": engine.algorithm}
    return partial(_use_engine, type(engine), options, engine.queries, _few(events))


def _use_engine(make: Callable[..., Any], options: dict[str, Any], queries: list[Query], rows: pa.Table) -> None:
    engine = make(**options)
    engine.register(queries)
    for batch in (rows.slice(0, ROWS // 2), rows.slice(ROWS // 2)):
        engine.append(batch)
    engine.lookup_all()
    engine.filters()
    engine.emitted()


def of_evaluate(
    queries: Any, events: Any, at: Any = None, ts: str = "ts", key: str | None = None, **_: Any
) -> Callable[[], Any]:
    """The same over the first rows."""
    return partial(_use_evaluate, queries, _few(events), None if at is None else _few(at), ts, key)


def _use_evaluate(queries: Any, rows: pa.Table, at: pa.Table | None, ts: str, key: str | None) -> None:
    from swag.evaluate import evaluate

    evaluate(queries, rows, at, ts, key)


def _few(events: Any) -> pa.Table:
    """Rows of the same types; a slice alone would be pickled with all that it is a slice of."""
    table = as_table(events)
    return table.slice(0, ROWS).take(list(range(min(ROWS, table.num_rows))))
