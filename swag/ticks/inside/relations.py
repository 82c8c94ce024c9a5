"""Queries over the relation of others' answers at each tick: they have no window, and tick when those do.

    tick 7    id  site  load            site  count() where load < 30
              a   n     10      -->     n     2
              b   n     20              s     1
              c   s     20
              d   s     90

Query 1 of Zhang, Gray & Nutt's "frequency operators" counts machines by their latest load, not readings.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.query.groupings import By
from swag.query.kinds import count
from swag.query.query import ALL, Query
from swag.stored.evaluation import answered_by
from swag.tables.answers import own_name
from swag.tables.columns import order_of
from swag.ticks.inside.picking import partitions


def relations(queries: Sequence[Query], ticks: pa.Table, tick: str, ts: str, by: By) -> pa.Table:
    """Table(tick, ts, [keys], a column per query, by its label) of the answers of others, which are whole ticks."""
    keys = list(dict.fromkeys([tick, *by]))
    asked = _groups(ticks, keys, ts)
    there = own_name("rows", *ticks.column_names, *(query.label for query in queries))
    outer = [replace(query, source=None, window=ALL, by=None, name=f"{i}{there}") for i, query in enumerate(queries)]
    rows = [Query(count(), ALL, f"{there}{i}", query.where) for i, query in enumerate(queries)]
    found = answered_by([*outer, *rows], ticks, asked, ts, tuple(keys))
    columns = {name: found.column(name) for name in (tick, ts, *by)}
    columns |= {query.label: found.column(own.label) for query, own in zip(queries, outer, strict=True)}
    speaks = [
        _speaks(query, found, own.label, f"{there}{i}", by)
        for i, (query, own) in enumerate(zip(queries, outer, strict=True))
    ]
    return pa.table(columns).filter(pa.array(np.logical_or.reduce(speaks)))


def _groups(ticks: pa.Table, keys: list[str], ts: str) -> pa.Table:
    """The groups of every tick, in order of both."""
    _, first = np.unique(partitions(ticks, tuple(keys)), return_index=True)
    found = ticks.select([*keys, ts]).take(pa.array(first))
    return found.take(pa.array(order_of(*(found.column(name) for name in keys))))


def _speaks(query: Query, found: pa.Table, value: str, rows: str, by: By) -> np.ndarray:
    """Where a query has an answer: a group without a row that counts is none, nor is one that does not pass."""
    said = np.ones(found.num_rows, bool) if not by else np.asarray(found.column(rows)) > 0
    return said if query.having is None else said & np.asarray(pc.is_valid(found.column(value)))
