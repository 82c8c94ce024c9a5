"""Aggregates of intervals of events: answered as `evaluate` answers windows, whose edges are known here.

Events are laid out once, key after key, in order of ts: an interval of a key is then two positions. Aggregates share
what they read, and intervals may overlap: each time they lie inside of others, rows are gone through once more.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from swag.query.aggregates import Aggregate
from swag.query.query import Query
from swag.query.reading import with_aggregated
from swag.query.windows import Rows, reach
from swag.stored.evaluation import Evaluation
from swag.stored.ordered_rows import Requests, Stored

INTERVAL = Rows(1)  # stands for the window of every interval


def over_intervals(
    asked: Sequence[tuple[Aggregate, str | None]], table: pa.Table, order: np.ndarray | None, edges: tuple[Any, Any]
) -> list[pa.Array | pa.ChunkedArray]:
    """A column per aggregate, of the rows at positions edges[0][i] … edges[1][i] for which a predicate holds.

    order: the row at each position (None: as they are).
    """
    table = with_aggregated(table, [aggregate for aggregate, _ in asked])
    stored = Stored.in_order(table, order)
    evaluation = Evaluation(stored, Requests.between(reach(INTERVAL, None), *edges))
    columns = []
    for aggregate, where in asked:
        name = f"{aggregate} of a frame"  # as messages have it
        columns.append(evaluation.add(Query(aggregate.alias(name), INTERVAL, where=where, name=name)))
    evaluation.run()
    return [each.array(stored) for each in columns]
