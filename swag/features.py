"""`engine.features`: all features of some keys at once, over all groupings, as a table of one row per entity."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swag.arguments import check_name
from swag.errors import BadEvents, BadQuery, BadType, UnknownColumn, nearest
from swag.live.answering.composites import answer_before_events
from swag.live.answering.features import FeaturePlan
from swag.live.time import Time
from swag.live.turns import require_alone
from swag.query.as_call import shown
from swag.query.groupings import By
from swag.query.over_frames import OverFrames
from swag.query.query import Query
from swag.stored.ordered_rows import as_clock
from swag.tables.columns import Clock, as_table, clock_of, instants
from swag.tables.times.points import is_point
from swag.tables.wide_rows import Entities, WideRows
from swag.ticks.grouped_stream import GroupedStream
from swag.ticks.live_stream import LiveStream

MOST_SETS = 64  # of queries and columns, whose plans are kept
EXAMPLE = 'engine.features({"card": ["c1", "c2"]})'
EXAMPLE_AT = "at=1700000000, or a datetime"


@dataclass(frozen=True)
class Col:
    """The name of a column, where a value could stand, too: sw.col("ts").

    >>> import swag as sw
    >>> engine = sw.Engine(key="card")
    >>> engine.register(sw.Query(sw.sum("x"), sw.Range(10), name="s"))
    's'
    >>> engine.append({"ts": [1, 5], "card": ["a", "a"], "x": [3, 4]})
    2
    >>> engine.features({"card": ["a", "a"], "ts": [4, 5]}, at=sw.col("ts"))["s"].to_pylist()
    [3, 7]
    """

    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "name", 'sw.col("ts")')

    def __repr__(self) -> str:
        return f"sw.col({shown(self.name)})"


def col(name: str) -> Col:
    """A column by its name, where a value could stand, too.

    >>> import swag as sw
    >>> sw.col("ts")
    sw.col("ts")
    """
    return Col(name)


@dataclass(eq=False)
class Answerer:
    """The queries that one stream answers: by which key columns, where in the answer they stand, and in which slots of
    a page those that are words are written. time: that of the stream around, if it is one inside."""

    by: By
    stream: LiveStream
    time: Time
    plan: FeaturePlan
    places: list[int]
    slots: slice


@dataclass(eq=False)
class Prepared:
    """What was worked out for a set of queries: their names in order, who answers them, and how that is written."""

    version: int
    names: list[str]
    parts: list[Answerer]
    rows: WideRows  # of those that are words

    def fits(self, version: int) -> bool:
        return self.version == version and all(part.plan.fits() for part in self.parts)


class Features:
    """The queries of a stream as features. It owns what was worked out for the sets of them that were asked for.

    Asked of it: a table of entities with their features.
    """

    def __init__(self, streams: GroupedStream) -> None:
        self._streams = streams
        self._prepared: dict[Any, Prepared] = {}

    def of(self, front: Entities, at: Any, names: list[str] | None) -> pa.Table:
        """See Engine.features."""
        asked = self._known(front.names, None if names is None else tuple(map(self._label, names)))
        clock = self._streams.time.clock
        instants_of = None if at is None else _instants(at, front, clock)
        if clock is None:
            return self._before_events(front.table, asked)
        page = asked.rows.page(front.rows)
        others: dict[int, Any] = {}
        for part in asked.parts:
            now = instants_of
            if now is None:
                now = max(part.time.now, part.stream.core.time.now)
            own = part.plan.answer(_ids(part, front), now, page.of(part.slots))
            others |= {part.places[i]: column for i, column in own.items()}
        table = asked.rows.table(front, page)
        for i in sorted(others):
            table = table.add_column(len(front.names) + i, asked.names[i], others[i])
        return table

    def _before_events(self, front: pa.Table, asked: Prepared) -> pa.Table:
        """What is known of keys while nothing has come."""
        for part in asked.parts:
            for i, query in zip(part.places, part.plan.queries, strict=True):
                empty = answer_before_events(query)
                column = pa.nulls(front.num_rows) if empty is None else pa.array([empty] * front.num_rows)
                front = front.append_column(asked.names[i], column)
        return front.select([*front.column_names[: -len(asked.names) or None], *asked.names])

    def _label(self, name: Any) -> str:
        """The name of a query, if it is one: what is none need not be hashable."""
        return self._streams.known(name).label

    # -- which queries ------------------------------------------------------------------------------------------------

    def _known(self, columns: list[str], names: tuple[str, ...] | None) -> Prepared:
        """What was worked out for these features (None: all) and entity columns; anew if queries have changed since."""
        of, version = (names, *columns), self._streams.version
        found = self._prepared.get(of)
        if found is None or not found.fits(version):
            require_alone()
            if len(self._prepared) >= MOST_SETS:
                self._prepared.clear()
            found = self._prepared[of] = self._prepare(columns, names, version)
        return found

    def _prepare(self, columns: list[str], names: tuple[str, ...] | None, version: int) -> Prepared:
        """Work out who answers a set of features: the streams, and each feature's place in the rows of the table."""
        chosen = self._chosen(set(columns)) if names is None else [self._named(name, columns) for name in names]
        for name in chosen:
            if name in columns:
                raise BadQuery(f'query "{name}" has the name of a column of the entities.', 'sw.Query(…, name="…")')
        if len(set(chosen)) < len(chosen):
            raise BadQuery(f"queries={list(chosen)!r} names one twice.", EXAMPLE)
        parts: dict[int, tuple[By, LiveStream, list[int], list[Query]]] = {}
        for i, name in enumerate(chosen):
            stream, query = self._streams.of(name).answering(name)
            _, _, places, queries = parts.setdefault(id(stream), (self._streams.grouping(name), stream, [], []))
            places.append(i)
            queries.append(query)
        made: list[Answerer] = []
        direct: list[tuple[int, str, pa.DataType]] = []  # slot by slot: the place, name and type
        for by, stream, places, queries in parts.values():
            plan, time = FeaturePlan(stream.core, queries), self._streams.of(chosen[places[0]]).core.time
            slots = slice(len(direct), len(direct) + len(plan.direct))
            direct += [(places[i], chosen[places[i]], plan.route(i).type) for i in plan.direct]
            made.append(Answerer(by, stream, time, plan, places, slots))
        order = sorted(range(len(direct)), key=lambda slot: direct[slot][0])
        rows = WideRows([direct[slot][1] for slot in order], [direct[slot][2] for slot in order], order)
        return Prepared(version, chosen, made, rows)

    def _chosen(self, columns: set[str]) -> list[str]:
        """All that have neither `having` nor `every`, and whose key columns are there."""
        streams = self._streams
        some = [query for query in streams.queries.values() if query.having is None and not query.at_ticks]
        return [query.label for query in some if columns.issuperset(streams.grouping(query.label))]

    def _named(self, name: Any, columns: list[str]) -> str:
        """A feature by its name; refused if it answers at ticks, or if the entities lack a column of its key."""
        query = self._streams.known(name)
        if query.at_ticks:
            why = "has a row for each frame" if isinstance(query, OverFrames) else "answers at its ticks"
            raise BadQuery(f'query "{name}" {why}, so it is no feature.', f'engine.emitted("{name}")')
        for column in self._streams.grouping(name):
            if column not in columns:
                have = ", ".join(columns)
                raise UnknownColumn(
                    f'query "{name}" is by "{column}", but the entities have: {have}.', nearest(column, columns)
                )
        return query.label


def _ids(part: Answerer, front: Entities) -> np.ndarray:
    """The number of each entity's key, -1 for one that is not known."""
    if not part.by:
        return np.zeros(front.rows, np.int64)
    keys = part.stream.core.store.keys
    if keys is None:
        return np.full(front.rows, -1)
    return keys.find_any(front.columns(part.by), part.by)


def _instants(at: Any, front: Entities, clock: Clock | None) -> int | np.ndarray:
    """A time for all entities, or one for each. clock: what time is; before the first event, any kind will do."""
    if isinstance(at, Col):
        if at.name not in front.names:
            have = ", ".join(front.names)
            raise UnknownColumn(f'at is "{at.name}", but the entities have: {have}.', nearest(at.name, front.names))
        at = front.table.column(at.name)
    if isinstance(at, str | bytes) or not hasattr(at, "__len__"):
        if clock is None and not is_point(at):
            raise BadType(f"at={at!r} is no point in time.", EXAMPLE_AT)
        return 0 if clock is None else clock.instant(at)
    if not isinstance(at, pa.ChunkedArray):
        at = as_table({"at": at}).column("at")
    if len(at) != front.rows:
        raise BadEvents(f"at has {len(at)} times for {front.rows} entities.", "a time for each, or one for all")
    return instants(as_clock(at, clock or clock_of(at, "at"), "at"), "at")
