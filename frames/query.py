"""A query over frames: which frames, and what to say of each. A frozen value, for `sw.evaluate` and engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from frames.detection import search
from frames.filling import Summary
from frames.owning.meeting import Meeting
from frames.owning.origin import Fingerprint, Origin
from frames.owning.owning import Owner, of_found
from frames.specs import Spec, check_spec, spec_from_json
from frames.tables import Key, key_of
from swag.arguments import LARGEST, check_flag, check_name, key_columns
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate
from swag.query.as_call import as_call
from swag.query.as_json import has_functions, term_from_json, term_to_json
from swag.query.calculation import calculate, holds
from swag.query.expression import Expression, Operators, Windowed, leaves
from swag.query.kinds import count
from swag.query.over_frames import ContinuousFrames, OverFrames
from swag.query.query import Query, check_options
from swag.query.reading import aggregated_texts
from swag.query.windows import Rows
from swag.tables.columns import as_table, one_chunk
from swag.tables.key_columns import apart, joined, key_name
from swag.tables.predicate import canonical, columns_of, conjunction
from swag.tables.times.durations import Duration, distance
from swag.tables.times.durations import canonical as written

FIELDS = ("stream", "name", "fragments", "fill_from", "before", "after")  # that JSON holds as they are
NO_STREAMS: Mapping[str, Any] = {}
FILLING = 'fr.FrameQuery(…, fill_from="messages", before="2m")'
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

    `name`: what it is called in an engine (else by its SQL), which has a row for each frame once that has ended.
    `fragments`: in an engine, a row for each piece of a frame, batch by batch, from when it is certain.

    `fill_from`: the name of another stream, whose events are aggregated: those of the frame's key with
    start - before <= ts <= end + after. sw.evaluate takes it by that name, sw.evaluate(query, reports, messages=table),
    an engine as engine.append(events, stream="messages"). It may be the stream that frames are found in, `stream`,
    which is not given again: then margins reach beyond a frame's own events.
    """

    spec: Spec
    values: Any
    where: str | None = None
    having: Expression | None = None
    by: Any = field(default=None, compare=False, kw_only=True)  # a tuple of names, or None
    stream: str | None = field(default=None, compare=False, kw_only=True)
    name: str | None = field(default=None, compare=False, kw_only=True)
    fragments: bool = field(default=False, kw_only=True)
    fill_from: str | None = field(default=None, kw_only=True)
    before: Duration = field(default=0, kw_only=True)
    after: Duration = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        check_spec(self.spec)
        object.__setattr__(self, "values", _named(self.values))
        if self.where is not None:
            object.__setattr__(self, "where", canonical(self.where))
        check_options(self.name, self.stream)
        check_flag(self.fragments, "fragments")
        self._check_filling()
        if self.by is not None:
            object.__setattr__(self, "by", key_columns(self.by, "by", 'fr.FrameQuery(…, by=("router",))'))
        if self.having is not None and not (isinstance(self.having, Expression) and self.having.is_condition):
            raise BadQuery(f"having={self.having!r} is no condition over aggregates.", "having=sw.count() > 5")

    def _check_filling(self) -> None:
        """Refuse margins without a stream to fill from, and a row for each piece of frames that are filled later."""
        for name in ("before", "after"):
            if abs(distance(getattr(self, name), name)) > LARGEST:
                raise BadQuery(f"{name}={getattr(self, name)!r} does not fit int64.", FILLING)
            object.__setattr__(self, name, written(getattr(self, name)))
        if self.fills_itself and not (distance(self.before, "before") or distance(self.after, "after")):
            object.__setattr__(self, "fill_from", None)  # a frame owns its events
        if self.fill_from is not None:
            check_name(self.fill_from, "fill_from", FILLING)
            if self.fragments:
                raise BadQuery("frames that are filled from another stream are reported as a whole.", "fragments=False")
        elif self.before or self.after:
            raise BadQuery("before and after move the edges of frames that are filled from another stream.", FILLING)

    __repr__ = as_call

    @property
    def label(self) -> str:
        if self.name is not None:
            return self.name
        try:
            return str(self)
        except BadQuery:
            kind = type(self.spec).__name__
            why = f"a query is called by its SQL, and {kind} has no FRAME clause in SQL."
            raise BadQuery(why, f'fr.FrameQuery(fr.{kind}(…), …, name="q")') from None

    @property
    def fills_itself(self) -> bool:
        """Are frames filled from the very stream that they are found in?"""
        return self.fill_from is not None and self.fill_from == self.stream

    @property
    def other(self) -> str | None:
        """The stream that frames are filled from, if that is another one."""
        return None if self.fills_itself else self.fill_from

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read of the events that frames are found in, other than ts and the key."""
        own = self.aggregated if self.fill_from is None or self.fills_itself else ()
        return tuple(dict.fromkeys([*self.spec.columns, *own]))

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Those of them that may be SQL over columns, and how they were written."""
        return self.spec.texts | aggregated_texts(leaf.aggregate for leaf in self.leaves)

    @cached_property
    def leaves(self) -> list[Windowed]:
        """The aggregates that answers are computed from, each once."""
        return list(dict.fromkeys(leaf for term in (*self.values, (None, self.having)) for leaf in leaves(term[1])))

    @cached_property
    def asked(self) -> list[tuple[Aggregate, str | None]]:
        """The same, each with the predicate that its events satisfy."""
        return [(leaf.aggregate, conjunction(self.where, leaf.where)) for leaf in self.leaves]

    @property
    def readers(self) -> list[Query]:
        """What is read of events, as simple queries that read the same. The spec looks at its columns itself."""
        found = readers_of(self.spec, self.label)
        return found + self.filling if self.fill_from is None or self.fills_itself else found

    @property
    def filling(self) -> list[Query]:
        """The same, of the events that frames are filled with."""
        return [Query(each, Rows(1), self.label, where) for each, where in self.asked]

    def named(self) -> "FrameQuery":
        """The same, under its label as its name."""
        return self if self.name is not None else replace(self, name=self.label)

    def check_by(self, by: tuple[str, ...]) -> None:
        """Refuse key columns that are named as others of its rows are."""
        self.check_key(list(key_of(by, self.spec)))

    def running(self, ts: str, by: tuple[str, ...]) -> ContinuousFrames:
        """At work on events that come."""
        from frames.continuous.filled import FilledFrames
        from frames.continuous.running import RunningFrames

        return (RunningFrames if self.fill_from is None else FilledFrames)(self, ts, by)

    @property
    def aggregated(self) -> tuple[str, ...]:
        """Those of them that answers are computed from; frames are found by the others."""
        read = [*(columns_of(self.where) if self.where else ())]
        for leaf in self.leaves:
            read += [*leaf.aggregate.columns, *(columns_of(leaf.where) if leaf.where else ())]
        return tuple(dict.fromkeys(read))

    def evaluate(
        self, events: Any, ts: str = "ts", key: Key = None, streams: Mapping[str, Any] = NO_STREAMS
    ) -> pa.Table:
        """One row per frame: frame_id, [key], start, end, rows, one column per value. streams: others, by name."""
        self._check_streams(streams)
        self._check_again(streams, events)
        by, seen = key_of(key, self.spec), Fingerprint()
        table = joined(as_table(events), by)
        found = search(self.spec, table, ts, key_name(by), seen)
        frames = Origin.of_search(self.spec, ts, by).noted(apart(found.table(), by), seen, whole=True)
        if self.fill_from is not None:
            return self.say(frames, joined(as_table(streams.get(self.fill_from, events)), by), ts, key, None)
        return self.say(frames, table, ts, key, of_found(found))

    def _check_streams(self, streams: Mapping[str, Any]) -> None:
        """Refuse streams that it does not read, and none where it reads one."""
        for name in streams:
            if name not in (self.fill_from, self.stream):
                raise BadQuery(f'"{name}" is no stream that frames are filled from.', f"leave {name}=… out; {FILLING}")
        if self.fill_from is not None and not self.fills_itself and self.fill_from not in streams:
            raise self._not_there()

    def _not_there(self) -> BadQuery:
        return BadQuery(
            f'frames are filled from "{self.fill_from}", which is not there.',
            f"sw.evaluate(…, {self.fill_from}=table); on the command line, --stream {self.fill_from}=PATH",
        )

    def _check_again(self, streams: Mapping[str, Any], events: Any) -> None:
        """Refuse another table under the name of the stream that frames are found in."""
        again = events if self.stream is None else streams.get(self.stream, events)
        if again is not events and not as_table(again).equals(as_table(events)):
            raise BadQuery(
                f'frames are found in "{self.stream}", but {self.stream}=… is another table.',
                f"leave {self.stream}=… out, or name the other stream apart",
            )

    def say(self, found: pa.Table, table: pa.Table, ts: str, key: Key, owner: Owner | None) -> pa.Table:
        """The frames, with a column per value; the table holds all of their events, and owner knows which these are.
        None: they are those of another stream."""
        if owner is not None:
            self._check_own()
        by = key_of(key)
        self.check_key(list(by))
        found = found.select(["frame_id", *by, "start", "end", "rows"])
        answers, passing = self.answers(joined(found, by), joined(table, by), ts, key_name(by), owner)
        return self.with_answers(found, answers, passing)

    def _check_own(self) -> None:
        if self.fill_from is not None:
            raise self._not_there()

    def with_answers(self, found: pa.Table, answers: list[Any], passing: np.ndarray | None) -> pa.Table:
        """Frames, with a column per value; only those that pass."""
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
        meeting = Meeting.of(found, table, ts, key, self.before, self.after)
        return self.computed(Summary(meeting, owner).answers(self.asked))

    def computed(self, said: list[Any]) -> tuple[list[Any], np.ndarray | None]:
        """The same, from what is said of `asked`."""
        columns = {leaf: one_chunk(each) for leaf, each in zip(self.leaves, said, strict=True)}
        passing = None if self.having is None else holds(self.having, columns)
        return [calculate(value, columns, passing) for _, value in self.values], passing

    def to_json(self) -> dict[str, Any]:
        """An entry that `from_json` reads."""
        terms = [[name, term_to_json(value)] for name, value in self.values]
        return {"frames": self.spec.to_json(), "label": self.label, "values": terms, "where": self.where,
                "having": term_to_json(self.having), "group_by": self.by, "stream": self.stream, "name": self.name,
                "fragments": self.fragments, "fill_from": self.fill_from, "before": self.before,
                "after": self.after}  # fmt: skip

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "FrameQuery | None":
        """None: its frames, or what is said of them, are found by functions that a file can not hold."""
        spec = spec_from_json(entry["frames"])
        if spec is None or any(map(has_functions, [entry["having"], *(value for _, value in entry["values"])])):
            return None
        values, by = [(name, term_from_json(value)) for name, value in entry["values"]], entry["group_by"]
        options = {name: entry[name] for name in FIELDS}
        having = term_from_json(entry["having"])
        return cls(spec, values, entry["where"], having, by=None if by is None else tuple(by), **options)

    def __str__(self) -> str:
        """SQL that reads back as this query."""
        from swag.query.as_sql import frame_statement

        return frame_statement(self, self.spec.clause())


def readers_of(spec: Spec, label: str) -> list[Query]:
    """What a spec reads of events, as simple queries that read the same."""
    texts = [text for name in spec.columns for text in spec.texts.get(name, (name,))]
    return [Query(count(text), Rows(1), label) for text in texts]


def _named(values: Any) -> tuple[tuple[str, Any], ...]:
    """What a query says of each frame, as pairs of a name and a value; no two columns may have the same name."""
    if isinstance(values, Operators | str):
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
