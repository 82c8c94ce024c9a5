"""Rehearsals of what users do first, from which processes learn which kernels to compile ahead of them.

Each is a call that can be pickled, over the first few of the user's own rows. See kernels/compile/ahead.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from swag.query.query import Query
from swag.tables.columns import as_table

ROWS = 48  # enough for several keys, and rows of some of them


def few(events: Any) -> pa.Table:
    """The first rows. Raises where they can not be had without reading much, or for good: files, streams."""
    if isinstance(events, dict):
        events = {name: values[:ROWS] for name, values in events.items()}
    elif isinstance(events, list):
        events = events[:ROWS]
    elif isinstance(events, pa.Table | pa.RecordBatch):
        events = events.slice(0, ROWS)
    else:
        events = events.head(ROWS)  # frames of pandas and Polars
    table = as_table(events)
    return table.take(pa.array(range(table.num_rows)))  # a slice would be pickled with all that it is a slice of


def of_append(engine: Any, events: Any, stream: str | None = None) -> Callable[[], Any]:
    """What an engine does with a first batch, and when it is asked afterwards. Other streams are not rehearsed."""
    options = {"ts": engine.ts, "key": engine.key, "lateness": engine.lateness, "algorithm": engine.algorithm}
    options["hold"] = engine.hold
    return partial(use_engine, type(engine), options, engine.queries, few(events))


def use_engine(make: Callable[..., Any], options: dict[str, Any], queries: list[Query], rows: pa.Table) -> None:
    """Append and look up, in all ways. make: sw.Engine."""
    engine = make(**options)
    engine.register(queries)
    late = [] if options.get("hold", True) else [rows]  # once more: in their place they displace others
    for batch in (rows.slice(0, ROWS // 2), rows.slice(ROWS // 2), *late):
        engine.append(batch)
    engine.lookup_all()
    engine.filters()
    engine.emitted()
