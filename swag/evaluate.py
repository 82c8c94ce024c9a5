"""`sw.evaluate`: queries of any kind over stored events."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pyarrow as pa

from kernels.compile.ahead import rehearsed
from swag.arguments import as_list, is_option, key_columns
from swag.errors import BadQuery, BadType, nearest
from swag.first_use import few
from swag.over.answering import evaluate_over
from swag.progress import Progress, shown
from swag.query.groupings import By, by_grouping, grouping_of, one_or_several, shown_by
from swag.query.over_frames import OverFrames
from swag.query.over_statement import OverStatement
from swag.query.query import Events, Query, check_names, example_of
from swag.sql import sql
from swag.sql.places import placed
from swag.stored.evaluation import answered_by, requests_table
from swag.tables.columns import as_table
from swag.tables.outputs import as_frame, check_out
from swag.ticks.nested import chosen_events, evaluate_ticks

EXAMPLE = 'sw.evaluate([sw.Query(sw.sum("volume"), sw.Range("5m"))], events)'
ARROW = "arrow"  # tables as they are
BRIEF = 1 << 16  # answers that are there long before anybody would be told how far they are


OPTIONS = ("at", "ts", "key", "progress", "out")


def _rehearsal(queries: Any, events: Any, at: Any = None, *options: Any, **named: Any) -> Callable[[], Any]:
    named = {name: each if name in OPTIONS else few(each) for name, each in named.items()}
    return partial(evaluate, queries, few(events), None if at is None else few(at), *options, **named)


@rehearsed(_rehearsal)
def evaluate(
    queries: Iterable[Query] | Query | str, events: Any, at: Any = None, ts: str = "ts",
    key: str | Iterable[str] | None = None, *, progress: bool | None = None, out: str = "arrow", **streams: Any,
) -> Any:  # fmt: skip
    """Every query at every event, or at every request: one row each, in input order. Queries may be written in SQL.

    At each event: columns key, ts, then one per query; an event sees the rows up to its own. A key may have several
    columns; queries that are grouped otherwise (`by`) are answered in the same table, which then has their key columns,
    too. With `at`, a table of requests with columns ts (and keys): the requests' own columns, then one per query; a
    request sees all events with an equal or older ts. Events and requests may come in any order.

    Queries with `every`: one row per tick (and key), columns tick, ts, key, then one per query. They share one `every`.

    progress: how far it is, on stderr or below the cell, once it has taken two seconds. None: on a terminal and in a
    notebook. out: the kind of table, "arrow", "pandas" or "polars". streams: others that frames are filled from (FILL
    FROM messages), by their names: messages=table.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 4], "k": ["a", "b", "a"], "x": [1, 2, 3]}
    >>> query = sw.Query(sw.sum("x"), sw.Range(5), name="s")
    >>> sw.evaluate(query, events, key="k").to_pylist()[-1]
    {'k': 'a', 'ts': 4, 's': 4}
    >>> sw.evaluate(query, events, at={"ts": [3], "k": ["b"]}, key="k").to_pylist()
    [{'ts': 3, 'k': 'b', 's': 2}]
    """
    asked = asked_queries(queries)
    if not isinstance(ts, str):
        raise BadType(f"ts={ts!r} is not the name of a column.", 'ts="ts"')
    default = key_columns(key, "key", 'sw.evaluate(…, key="symbol")')
    of_text = placed(queries) if isinstance(queries, str) else nullcontext()
    if not is_option(out, (ARROW,)):
        check_out(out)
    alone = one_alone(asked, at)
    if alone is not None:
        with shown(progress) as steps, of_text:
            answers = _evaluate_alone(alone, events, streams, ts, default, steps)
        return answers if out == ARROW else as_frame(answers, out)
    if streams:
        raise _no_option(next(iter(streams)))
    table = as_table(events)
    with of_text:
        answers = _evaluate_together(asked, table, at, ts, default, progress)
    return answers if out == ARROW else as_frame(answers, out)


def _evaluate_together(
    asked: list[Any], table: pa.Table, at: Any, ts: str, default: By, progress: bool | None
) -> pa.Table:
    """Queries over windows, or the events that SELECT * chooses; few rows show no progress."""
    if isinstance(asked[0], Events):
        if at is not None:
            raise BadQuery("SELECT * gives events as they are, not at requests.", "leave `at` out")
        return chosen_events(asked[0], table, ts, default)
    plain = all(query.is_plain for query in asked)  # of ticks there may be many more than of rows
    if progress is None and at is None and plain and table.num_rows * len(asked) < BRIEF:
        return answered_by(asked, table, at, ts, default)
    with shown(progress) as steps:
        return answered_by(asked, table, at, ts, default, steps) if plain else _ticks(asked, table, at, ts, default)


def _ticks(asked: list[Query], table: pa.Table, at: Any, ts: str, default: By) -> pa.Table:
    """Of queries with `every` or `source`: a row for each tick (and key)."""
    by, queries = one_of(by_grouping(asked, default))
    for query in asked:
        if query.label in grouping_of(query, default):
            raise BadQuery(f'query "{query.label}" has the name of a key column.', 'sw.Query(…, name="…")')
    return evaluate_ticks(queries, table, None if at is None else requests_table(at, ts, [*by]), ts, by)


def one_of(groups: dict[By, list[Query]]) -> tuple[By, list[Query]]:
    """The grouping that queries with `every` or `source` share."""
    if len(groups) > 1:
        shown = "; ".join(shown_by(by) for by in groups)
        raise BadQuery(
            f"queries with `every` or `source` that are evaluated together share one grouping, but these have {shown}.",
            "one sw.evaluate for each grouping; or an engine",
        )
    return next(iter(groups.items()))


def one_alone(asked: list[Any], at: Any) -> OverFrames | OverStatement | None:
    """A query over frames has rows of its own, and so has a statement with OVER ( … )."""
    alone = None
    for query in asked:
        if isinstance(query, OverFrames | OverStatement):
            alone = query
            break
    if alone is not None and (len(asked) > 1 or at is not None):
        over = isinstance(alone, OverStatement)
        what = "a statement with OVER ( … ) gives the rows" if over else "a query over frames gives one row per frame,"
        raise BadQuery(
            f"{what} {'that it selects, ' * over}which no other query has; nor does it take requests.",
            "evaluate it by itself, without `at`",
        )
    return alone


def _no_option(name: str) -> BadQuery:
    return BadQuery(
        f"{name}=… is no option, nor a stream that a query is filled from.",
        ('key="symbol", or sw.Query(…, by="symbol")' if name == "by" else nearest(name, list(OPTIONS)))
        or "FROM reports [FRAME …] FILL FROM messages, with messages=table",
    )


def _evaluate_alone(
    alone: Any, events: Any, streams: dict[str, Any], ts: str, default: By, progress: Progress
) -> pa.Table:
    """A query over frames, or a statement with OVER ( … ), each in its own way."""
    if isinstance(alone, OverFrames):
        return alone.evaluate(events, ts, one_or_several(grouping_of(alone, default)), streams)
    if streams:
        raise _no_option(next(iter(streams)))
    if default:
        raise BadQuery("a statement with OVER ( … ) says itself what it groups by: PARTITION BY.", "leave `key` out")
    return evaluate_over(alone, events, ts, progress)


def asked_queries(queries: Any) -> list[Any]:
    """What was asked for, as a list: queries, or one over frames. Their names are found to be apart."""
    if isinstance(queries, str):
        with placed(queries):
            return asked_queries(sql(queries))
    if isinstance(queries, Query | Events | OverFrames | OverStatement):
        return [queries]
    asked = queries if isinstance(queries, list) else as_list(queries, "queries", example_of(queries, EXAMPLE))
    if not asked:
        raise BadQuery("there is no query to answer.", EXAMPLE)
    if len(asked) == 1 and isinstance(asked[0], Events | OverFrames | OverStatement):
        return asked
    check_names([query for query in asked if not isinstance(query, OverStatement)], also=(OverFrames,))
    return asked
