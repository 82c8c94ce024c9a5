"""Aggregates of intervals of events: answered as `evaluate` answers windows, whose edges are known here.

Events are laid out once, key after key, in order of ts: an interval of a key is then two positions. Aggregates share
what they read, and intervals may overlap: each time they lie inside of others, rows are gone through once more.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swag.query.aggregates import Aggregate
from swag.query.kind import KINDS
from swag.query.query import Query
from swag.query.reading import with_aggregated
from swag.query.windows import Rows, reach
from swag.stored.evaluation import Evaluation
from swag.stored.ordered_rows import Requests, Stored
from swag.tables.columns import Clock

INTERVAL = Rows(1)  # stands for the window of every interval


class Times(NamedTuple):
    """Of events the time of each row, and of intervals that at which they end: it is `now` to what depends on that."""

    clock: Clock
    rows: np.ndarray
    ends: np.ndarray


def over_intervals(
    asked: Sequence[tuple[Aggregate, str | None]],
    table: pa.Table,
    order: np.ndarray | None,
    edges: tuple[Any, Any],
    times: Times | None = None,
) -> list[pa.Array | pa.ChunkedArray]:
    """A column per aggregate, of the rows at positions edges[0][i] … edges[1][i] for which a predicate holds.

    order: the row at each position (None: as they are). times: needed by aggregates that depend on them.
    """
    table = with_aggregated(table, [aggregate for aggregate, _ in asked])
    stored, requests = Stored.in_order(table, order), Requests.between(reach(INTERVAL, None), *edges)
    if times is not None and any(KINDS[aggregate.kind].timed for aggregate, _ in asked):
        stored.clock, stored.ts = times.clock, times.rows if order is None else times.rows[order]
        requests.now = times.ends if requests.order is None else times.ends[requests.order]
    evaluation = Evaluation(stored, requests)
    columns = []
    for aggregate, where in asked:
        name = f"{aggregate} of a frame"  # as messages have it
        columns.append(evaluation.add(Query(aggregate.alias(name), INTERVAL, where=where, name=name)))
    evaluation.run()
    return [each.array(stored) for each in columns]
