"""A query over frames: which frames, and what to say of each. A frozen value, for `sw.evaluate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from frames.detection import search
from frames.filling import Summary
from frames.owning.meeting import Meeting
from frames.owning.origin import Fingerprint, Origin
from frames.owning.owning import Owner, of_found
from frames.specs import Spec, check_spec
from frames.tables import Key, key_of
from swag.arguments import check_name, key_columns
from swag.errors import BadQuery
from swag.query.as_call import as_call
from swag.query.calculation import calculate, holds
from swag.query.expression import Expression, Operators, leaves
from swag.query.over_frames import OverFrames
from swag.query.query import check_options
from swag.query.reading import aggregated_texts
from swag.tables.columns import as_table, one_chunk
from swag.tables.key_columns import apart, joined, key_name
from swag.tables.predicate import canonical, columns_of, conjunction

EXAMPLE = 'fr.FrameQuery(fr.Delta("fl", 0.05), [sw.mean("depth"), sw.count().alias("n")])'


@dataclass(frozen=True)
class FrameQuery(OverFrames):
    """`values`: aggregates or expressions of the events in a frame: a list, pairs (name, value) or a mapping by name.

    >>> import frames as fr, swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "fl": [0.1, 0.2, 0.9, 0.8], "depth": [1.0, 3.0, 5.0, 9.0]}
    >>> query = fr.FrameQuery(fr.Delta("fl", 0.5), [sw.mean("depth"), sw.count().alias("n")])
    >>> sw.evaluate(query, events).to_pylist()[0]
    {'frame_id': 0, 'start': 1, 'end': 2, 'rows': 2, 'mean(depth)': 2.0, 'n': 2}

    `where`: only events for which it holds are aggregated (frames are found in all). `having`: only frames for which a
    condition over aggregates holds. `by`, `stream`: as an SQL statement has them, see sw.Query.
    """

    spec: Spec
    values: Any
    where: str | None = None
    having: Expression | None = None
    by: Any = field(default=None, compare=False, kw_only=True)  # a tuple of names, or None
    stream: str | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_spec(self.spec)
        object.__setattr__(self, "values", _named(self.values))
        if self.where is not None:
            object.__setattr__(self, "where", canonical(self.where))
        check_options(None, self.stream)
        if self.by is not None:
            object.__setattr__(self, "by", key_columns(self.by, "by", 'fr.FrameQuery(…, by=("router",))'))
        if self.having is not None and not (isinstance(self.having, Expression) and self.having.is_condition):
            raise BadQuery(f"having={self.having!r} is no condition over aggregates.", "having=sw.count() > 5")

    __repr__ = as_call

    @property
    def label(self) -> str:
        return str(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, other than ts and the key."""
        return tuple(dict.fromkeys([*self.spec.columns, *self.aggregated]))

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Those of them that may be SQL over columns, and how they were written."""
        found = [leaf for _, value in self.values for leaf in leaves(value)] + [*leaves(self.having)]
        return self.spec.texts | aggregated_texts(leaf.aggregate for leaf in found)

    @property
    def aggregated(self) -> tuple[str, ...]:
        """Those of them that answers are computed from; frames are found by the others."""
        read = [*(columns_of(self.where) if self.where else ())]
        for leaf in [leaf for _, value in self.values for leaf in leaves(value)] + [*leaves(self.having)]:
            read += [*leaf.aggregate.columns, *(columns_of(leaf.where) if leaf.where else ())]
        return tuple(dict.fromkeys(read))

    def evaluate(self, events: Any, ts: str = "ts", key: Key = None) -> pa.Table:
        """One row per frame: frame_id, [key], start, end, rows, one column per value."""
        by, seen = key_of(key, self.spec), Fingerprint()
        table = joined(as_table(events), by)
        found = search(self.spec, table, ts, key_name(by), seen)
        frames = Origin.of_search(self.spec, ts, by).noted(apart(found.table(), by), seen, whole=True)
        return self.say(frames, table, ts, key, of_found(found))

    def say(self, found: pa.Table, table: pa.Table, ts: str, key: Key, owner: Owner) -> pa.Table:
        """The frames, with a column per value; the table holds all of their events, and owner knows which these are."""
        by = key_of(key)
        self.check_key(list(by))
        found = found.select(["frame_id", *by, "start", "end", "rows"])
        answers, passing = self.answers(joined(found, by), joined(table, by), ts, key_name(by), owner)
        for (name, _), each in zip(self.values, answers, strict=True):
            found = found.append_column(name, each)
        return found if passing is None else found.filter(pa.array(passing))

    def check_key(self, keys: list[str]) -> None:
        for name, value in self.values:
            if name in keys:
                raise BadQuery(f'{value} is named "{name}", as the key is.', "name it apart: AS, or .alias")

    def answers(
        self, found: pa.Table, table: pa.Table, ts: str, key: str | None, owner: Owner | None
    ) -> tuple[list[Any], np.ndarray | None]:
        """What is said of each frame, a column per value; and which frames pass `having`."""
        wanted = dict.fromkeys([leaf for _, value in self.values for leaf in leaves(value)] + [*leaves(self.having)])
        summary = Summary(Meeting.of(found, table, ts, key), owner)
        said = summary.answers([(leaf.aggregate, conjunction(self.where, leaf.where)) for leaf in wanted])
        columns = {leaf: one_chunk(each) for leaf, each in zip(wanted, said, strict=True)}
        passing = None if self.having is None else holds(self.having, columns)
        return [calculate(value, columns) for _, value in self.values], passing

    def __str__(self) -> str:
        """SQL that reads back as this query."""
        from swag.query.as_sql import frame_statement

        return frame_statement(self, self.spec.clause())


def _named(values: Any) -> tuple[tuple[str, Any], ...]:
    """What a query says of each frame, as pairs of a name and a value; no two columns may have the same name."""
    if isinstance(values, Operators):
        values = [values]
    if isinstance(values, Mapping):
        values = list(values.items())
    if not isinstance(values, Sequence) or not values:
        raise BadQuery("a query over frames says something of each.", EXAMPLE)
    pairs = [each if isinstance(each, tuple) else (None, each) for each in values]
    for pair in pairs:
        if len(pair) != 2:
            raise BadQuery(f"{pair!r} is no pair of a name and a value.", EXAMPLE)
        if pair[0] is not None:
            check_name(pair[0], "name", EXAMPLE)
    for _, value in pairs:
        if not isinstance(value, Operators):
            raise BadQuery(f"{value!r} is no aggregate.", EXAMPLE)
        if any(leaf.window is not None for leaf in leaves(value)):
            raise BadQuery(f"{value}: an aggregate over a frame has no window of its own.", EXAMPLE)
    named = tuple((str(value) if name is None else name, value) for name, value in pairs)
    names = ["frame_id", "start", "end", "rows", *(name for name, _ in named)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadQuery(f'two columns would be named "{twice[0]}".', "name them apart: AS, or .alias")
    return named
