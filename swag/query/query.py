"""A query: an aggregate over a window, under a name. A frozen value; it runs when evaluated or registered."""

from collections.abc import Container
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from swag.arguments import check_flag, check_name, key_columns
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate
from swag.query.as_call import as_call, called, shown
from swag.query.as_sql import statement, stream_statement
from swag.query.condition import Condition, condition
from swag.query.every import EXAMPLES, Every
from swag.query.expression import Expression, leaves
from swag.query.normal_form import normal
from swag.query.windows import Rows

ALL = Rows(2**40)  # what a relation is over: all that there is of it
HIDDEN = "· "  # how the names of queries begin that others are computed from


@dataclass(frozen=True)
class Query:
    """What is asked: an aggregate over a window, under a name. A value: it runs when it is evaluated or registered.

    >>> import swag as sw
    >>> query = sw.Query(sw.sum("volume"), sw.Range("5m"), name="bought", where="side = 'buy'", having=(">", 1000))
    >>> print(query)
    SELECT SUM(volume) AS bought FROM events [RANGE 5 MINUTES] WHERE side = 'buy' HAVING SUM(volume) > 1000
    >>> events = {"ts": [1, 2, 3], "x": [1.0, 2.0, 4.0]}
    >>> sw.evaluate(sw.Query(sw.mean("x"), sw.Rows(2), name="m"), events)["m"].to_pylist()
    [1.0, 1.5, 3.0]

    `aggregate`: an aggregate, or an expression over several; each may have a window and a filter of its own.

    `where`: an SQL predicate on the event, applied after the window (the matching ones among its rows).

    `having`: a condition on the answer, e.g. (">", 10_000), or one over any aggregates, sw.count() > 5: on a keyed
    stream, the keys that pass. `index`: False answers it without an index over the keys.

    `every`: answers at ticks only, a jumping window. `source`: the stream that this one reads, if not that of all
    events: sw.Events("side = 'buy'"), or a query, whose answers are events: ts, key, the value under its name.

    `by`: the key column, or several, by which its events are grouped; () is the whole stream. None: the key of the
    engine or call. `stream`: what an SQL statement said after FROM.
    """

    aggregate: Any = None  # Aggregate, or of expression.py: Windowed, Expression. None: the condition `having` itself
    window: Any = None  # Rows, Range, Unbounded or Since. None: every aggregate has its own
    name: str | None = None
    where: str | None = None
    having: Any = None  # tuple or Expression
    index: bool = True
    every: Every | None = None
    source: "Source | None" = None
    by: Any = field(default=None, kw_only=True)  # a tuple of names, or None
    stream: str | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self.name, self.stream)
        if self.by is not None:
            object.__setattr__(self, "by", key_columns(self.by, "by", 'sw.Query(…, by=("card", "country"))'))
        check_flag(self.index, "index")
        _check_source(self)
        relation = self.source is not None and self.every is None and _says_no_window(self)
        aggregate, window, having = normal(self.aggregate, ALL if relation else self.window, self.having)
        object.__setattr__(self, "aggregate", aggregate)
        object.__setattr__(self, "window", None if relation else window)
        object.__setattr__(self, "having", having)
        if self.where is not None:
            from swag.tables.predicate import canonical

            # A predicate that can not be read is refused now, not at the first event.
            object.__setattr__(self, "where", canonical(self.where))
        if self.every is not None:
            _check_every(self.every)
        if relation:
            _check_relation(self)
        object.__setattr__(self, "reads_sql", _reads_sql(aggregate, having))

    reads_sql = False  # may a column that it reads be none of the events', but SQL over them?

    @cached_property
    def is_relation(self) -> bool:
        """Over the answers of others at each of their ticks: it has no window, and ticks when they do."""
        return self.source is not None and self.every is None and _says_no_window(self)

    @cached_property
    def at_ticks(self) -> bool:
        """Does it answer at ticks, not on lookup?"""
        return self.every is not None or self.is_relation

    @cached_property
    def is_plain(self) -> bool:
        """Over events, and answered on lookup: without `every` and `source`."""
        return self.every is None and self.source is None

    @cached_property
    def is_simple(self) -> bool:
        """One aggregate over one window: what structures answer. Other queries are computed from such."""
        return isinstance(self.aggregate, Aggregate) and not isinstance(self.having, Expression)

    @cached_property
    def condition(self) -> Condition | None:
        return condition(self.having) if isinstance(self.having, tuple) else None

    @cached_property
    def label(self) -> str:
        """The name of the answer's column: the given one, or what the query says."""
        if self.name is not None:
            return self.name
        clauses = [str(self.window)[1:-1]] * (self.window is not None) + [str(self.every)] * (self.every is not None)
        window = f"[{', '.join(clauses)}]" if clauses else ""
        several = isinstance(self.aggregate, Expression) and clauses
        what = "" if self.aggregate == self.having else f"({self.aggregate})" if several else f"{self.aggregate}"
        source = "" if self.source is None else f" FROM ({self.source.label})"
        where = f" WHERE {self.where}" if self.where else ""
        having = "" if self.having is None else f" HAVING {self.condition or self.having}"
        return f"{what}{window}{source}{where}{having}".strip()

    @cached_property
    def title(self) -> str:
        """The label as messages have it."""
        return self.label.removeprefix(HIDDEN)

    @property
    def column(self) -> str:
        """What the answers are called as the stream of another query: the query's name, or that of its aggregate."""
        return self.name if self.name is not None else str(self.aggregate)

    def __repr__(self) -> str:
        """As it is called, without what is as usual."""
        given = [f"aggregate={shown(self.aggregate)}"] * (self.aggregate is not None and self.aggregate != self.having)
        given += [f"window={shown(self.window)}"] * (self.window is not None)
        if len(given) == 2:
            given = [each.partition("=")[2] for each in given]
        usual = {"name": None, "where": None, "having": None, "index": True, "every": None, "source": None}
        options = {name: getattr(self, name) for name in (*usual, "by", "stream")}
        given += [f"{name}={shown(one)}" for name, one in options.items() if one is not usual.get(name)]
        return called(self, given)

    def __str__(self) -> str:
        """SQL that reads back as this query."""
        return statement(self)


@dataclass(frozen=True)
class Events:
    """Some events as a stream of their own: those for which a condition holds, or that a frequency picks.

    Rows(10) over it is the last ten of these.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": [5, 1, 7, 2]}
    >>> big = sw.Query(sw.sum("x"), sw.Rows(2), name="big", source=sw.Events("x > 3"))
    >>> engine = sw.Engine()
    >>> engine.register(big)
    'big'
    >>> engine.append(events)
    4
    >>> engine.lookup("big")
    12

    `where`: an SQL predicate. `source`: of the answers of a query (None: of all events). `every`: of these, the tuples
    that a frequency picks, sw.Every(10) every tenth, sw.Every("1m", by="id") one a minute of each id; `where` then is
    about those. `stream`: as in a Query.
    """

    where: str | None = None
    source: "Source | None" = None
    every: Every | None = None
    stream: str | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        from swag.tables.predicate import canonical, conjunction

        check_options(None, self.stream)
        _check_source(self)
        if self.where is None and self.every is None:
            raise BadQuery("Events() chooses nothing.", 'sw.Events("price > 20"), or sw.Events(every=sw.Every(10))')
        where = None if self.where is None else canonical(self.where)
        if self.every is not None:
            _check_every(self.every)
            object.__setattr__(self, "every", replace(self.every, anchor="tuple", own=False))  # it picks tuples
        elif isinstance(self.source, Events):  # those of those: both hold
            object.__setattr__(self, "stream", self.stream or self.source.stream)
            object.__setattr__(self, "every", self.source.every)
            where = conjunction(self.source.where, where) or where
            object.__setattr__(self, "source", self.source.source)
        object.__setattr__(self, "where", where)

    def __repr__(self) -> str:
        return as_call(self).replace("(where=", "(", 1)

    @property
    def label(self) -> str:
        often = "" if self.every is None else f"[{self.every}]"
        where = "" if self.where is None else f" WHERE {self.where}"
        return f"*{often}{'' if self.source is None else f' FROM ({self.source.label})'}{where}"

    def __str__(self) -> str:
        return stream_statement(self)


def check_options(name: Any, stream: Any) -> None:
    """Names that are no names are refused."""
    for what, value in (("name", name), ("stream", stream)):
        if value is not None:
            check_name(value, what, f'sw.Query(…, {what}="…")')


def _reads_sql(*terms: Any) -> bool:
    for term in terms:
        for leaf in [term] if isinstance(term, Aggregate) else [leaf.aggregate for leaf in leaves(term)]:
            if leaf.written or not all(map(str.isidentifier, leaf.columns)):
                return True
    return False


def _check_every(every: Any) -> None:
    if not isinstance(every, Every):
        raise BadQuery(f"every={every!r} is no frequency.", EXAMPLES)


def _check_source(reader: "Query | Events") -> None:
    """What it reads is a stream; several queries are one, of several columns."""
    source: Any = reader.source
    if isinstance(source, list | tuple):
        source = source[0] if len(source) == 1 else Several(tuple(source))
        object.__setattr__(reader, "source", source)
    if source is not None and not isinstance(source, Query | Several | Events):
        raise BadQuery(
            f"source={source!r} is no stream.", 'sw.Query(…, source=sw.Query(…)), or source=sw.Events("price > 20")'
        )


def _says_no_window(query: Query) -> bool:
    return query.window is None and not any(
        leaf.window is not None for term in (query.aggregate, query.having) for leaf in leaves(term)
    )


def _check_relation(query: Query) -> None:
    """What it reads ticks as a whole. A condition on that is one of its own."""
    source = query.source
    if isinstance(source, Events) and source.every is None and source.source is not None:
        from swag.tables.predicate import conjunction

        object.__setattr__(query, "where", conjunction(source.where, query.where))
        object.__setattr__(query, "source", source.source)
        source = query.source
    first = source.queries[0] if isinstance(source, Several) else source
    every = first.every if isinstance(first, Query) and first.at_ticks else Every(1, per_key=True)
    if every is not None and (every.per_key or every.by is not None):
        raise BadQuery(
            f"{query.aggregate} is over no window, and what it reads has no ticks of all keys, whose answers it could "
            "aggregate.",
            "a window: FROM (SELECT …) [RANGE 5 MINUTES]; or FREQUENCY without PARTITIONED BY inside",
        )


@dataclass(frozen=True)
class Several:
    """Queries that are answered together: as a stream, their answers are events with a column for each.

    They have one frequency, one source, one grouping and one condition. Asked of it is what is asked of a query that
    others read.
    """

    queries: tuple[Query, ...]

    def __post_init__(self) -> None:
        first = self.queries[0] if self.queries else None
        if first is None or not all(isinstance(each, Query) for each in self.queries):
            raise BadQuery(f"source={self.queries!r}: these are no queries.", "source=[sw.Query(…), sw.Query(…)]")
        for what in ("every", "source", "by", "where"):
            if len({getattr(each, what) for each in self.queries}) > 1:
                raise BadQuery(f"queries that are read together share one `{what}`: {self.label}.", "the same for all")
        if len({each.having is None for each in self.queries}) > 1:
            raise BadQuery(f"queries that are read together share one `having`: {self.label}.", "the same for all")
        if len({each.column for each in self.queries}) < len(self.queries):
            raise BadQuery(f"queries that are read together have names of their own: {self.label}.", "AS, or name=…")

    every = property(lambda self: self.queries[0].every)
    source = property(lambda self: self.queries[0].source)
    by = property(lambda self: self.queries[0].by)
    having = property(lambda self: self.queries[0].having)
    at_ticks = property(lambda self: self.queries[0].at_ticks)
    is_relation = property(lambda self: self.queries[0].is_relation)

    @cached_property
    def label(self) -> str:
        return "; ".join(each.label for each in self.queries)

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.queries))}]"

    def __str__(self) -> str:
        return statement(*self.queries)


Source = Query | Several | Events


def alone(source: "Query | Several") -> "Query | Several":
    """The same queries over the events of the stream that they are given."""
    if isinstance(source, Several):
        return Several(tuple(replace(each, source=None, by=None) for each in source.queries))
    return replace(source, source=None, by=None)


def queries_in(source: "Query | Several") -> tuple[Query, ...]:
    """The queries whose answers are the columns of a stream."""
    return source.queries if isinstance(source, Several) else (source,)


def titles(labels: "list[str]") -> str:
    """Queries as messages name them."""
    shown = ", ".join(f'"{label.removeprefix(HIDDEN)}"' for label in labels[:3])
    return f"quer{'y' if len(labels) == 1 else 'ies'} {shown}{', …' * (len(labels) > 3)}"


def example_of(meant: Any, usual: str) -> str:
    """A hint: how a query is written; of a spec of frames, one over these; of a statement, where it belongs."""
    if isinstance(meant, str):
        return 'one text, with ; between statements; or *sw.sql("SELECT …") in the list'
    if type(meant).__module__.startswith("frames.specs."):
        return f"fr.FrameQuery({meant!r}, [sw.count()]), or fr.detect(spec, events) for the frames alone"
    return usual


def check_names(queries: "list[Query]", taken: "Container[str]" = (), also: tuple[type, ...] = ()) -> None:
    """A name can be taken once. also: what may stand among queries."""
    seen: set[str] = set()
    for query in queries:
        if isinstance(query, Events):
            raise BadQuery(
                f"{query} gives events as they are; it is no query beside others, nor one to register.",
                f"sw.evaluate of it alone, or a window over it: FROM ({query}) [ROWS 10]",
            )
        if not isinstance(query, (Query, *also)):
            raise BadQuery(
                f"{query!r} is not a query.", example_of(query, 'sw.Query(sw.sum("volume"), sw.Range("5m"))')
            )
        if query.label in seen or query.label in taken:
            raise BadQuery(
                f'two queries are named "{query.label}".', 'name them apart: AS, or sw.Query(…, name="…")', query.label
            )
        if query.label.startswith(HIDDEN):
            raise BadQuery(f'"{query.label}" is a name that the engine gives itself.', "begin it with a letter")
        seen.add(query.label)
