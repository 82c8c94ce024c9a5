"""`engine.explain()`: what shares what, the structure chosen for each group, what it costs, and why."""

from collections.abc import Mapping
from typing import Any

from swag.live.core import Core
from swag.live.indexing.key_filters import NAMES
from swag.live.planner import Group
from swag.live.space import Space
from swag.live.unbounded.total import Total
from swag.query.every import Every
from swag.query.families import parts_of
from swag.query.lowering import lower
from swag.query.query import HIDDEN, Events, Query
from swag.ticks.inside.answer_streams import Answers
from swag.ticks.live_stream import LiveStream
from swag.ticks.ticker import Ticker

# The paper tells operators apart (definition 4): what a local one gives for an instant follows from the tuples of that
# instant; a non-local one remembers others.
LOCAL, NON_LOCAL = "local: each instant by itself", "non-local: others are remembered"


class Text(str):
    """Text that a prompt or a notebook shows as lines, not in quotes with "\\n" in them."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def explain(streams: Mapping[tuple[str, ...], LiveStream], held: int, events: int) -> str:
    """Of the groupings of a stream, each by its key columns. held: events that wait in front of it; events: that came
    before those."""
    if len(streams) == 1:
        return _of_stream(next(iter(streams.values())), held)
    queries = sum(len(stream.queries) for stream in streams.values())
    kept, size = sum(stream.kept for stream in streams.values()), sum(stream.bytes for stream in streams.values())
    lines = [
        f"{queries} queries over one stream, grouped in {len(streams)} ways",
        f"{events + held:,} events seen, {kept:,} rows kept, {_size(size)}",
    ]
    for by, stream in streams.items():
        lines += ["", f"by {', '.join(by) or 'nothing: the whole stream'}"]
        lines += ["    " + line if line else "" for line in _of_stream(stream, held).split("\n")]
    return "\n".join(lines)


def _of_stream(stream: LiveStream, held: int = 0) -> str:
    """Of a stream and those inside it."""
    head = _head(stream.core, len(stream.queries), stream.kept, stream.bytes, held)
    if not stream.core.store.events:
        return "\n".join([*head, "No events yet: structures are chosen when the columns are known."])
    return "\n".join([*head, *_lookups(stream.core), *_ticks(stream), *_foot(stream.core)])


def _of_core(core: Core) -> str:
    head = _head(core, len(core.queries), core.kept, core.bytes, 0)
    if not core.store.events:
        return "\n".join([*head, "No events yet: structures are chosen when the columns are known."])
    return "\n".join([*head, *_lookups(core), *_foot(core)])


def _head(core: Core, queries: int, kept: int, size: int, held: int) -> list[str]:
    """The first two lines of a plan: queries, key, order and algorithm; events seen and kept, keys, memory."""
    core.plan.settle()
    core.filters.prepare()
    stream = f'one stream per "{core.key}"' if core.key else "one stream"
    keys = core.store.key_count if core.key is not None else 0
    ordered = f', ordered by "{core.ts}"' if core.ts else ""
    return [
        f"{queries} {'query' if queries == 1 else 'queries'} over {stream}{ordered}; algorithm: {core.algorithm}",
        f"{core.store.events + held:,} events seen, {kept:,} kept, {keys:,} keys, {_size(size)}",
    ]


def _lookups(core: Core) -> list[str]:
    """The groups of queries that are answered on lookup, and the indexes over keys."""
    lines = _filters(core)
    for group in core.plan.groups.values():
        lines += ["", *_group(group)]
    for total in core.plan.totals.totals.values():
        lines += ["", *_total(total, core.plan.totals.named(total.of))]
    rest = [query for query in core.plan.queries.values() if query.label not in core.plan.totals.queries]
    free = [query.label for query in rest if not parts_of(query.aggregate) and not core.plan.thresholds.key(query)]
    if free:
        why = "    no structure: counts and ends are read off the window's edges, O(1)"
        lines += ["", f"positions: {_names(free)}", why]
    filters = core.filters.explain(core.queries.values())
    lines += ["", *filters] if filters else []
    combined = [line for query in core.queries.values() if not query.is_simple for line in _combined(core, query)]
    return lines + (["", *combined] if combined else [])


def _filters(core: Core) -> list[str]:
    """How events are led to the filters that they satisfy, and where the rows of those lie."""
    chooser, families, predicates = core.grouping.chooser, core.store.families, core.plan.predicates
    if not families:
        return []
    alone, with_rest, tried = chooser.counts(predicates)
    ways = {"found by constants alone": alone, "by constants, then a rest that is tried": with_rest,
            "tried on every event": tried}  # fmt: skip
    said = ", ".join(f"{count:,} {way}" for way, count in ways.items() if count)
    pairs, size = sum(space.used for space in families), chooser.bytes + sum(space.bytes for space in families)
    places = many(len(families), "arena")
    apart = core.plan.thresholds.explain().items()
    return ["", f"{many(len(predicates), 'where')}: {said}",
            f"    {pairs:,} (filter, key) with rows of their own, in {places}, {_size(size)}",
            *(f"    {count:,} thresholds of {column} among them share no structure: {why}"
              for (column, why), count in apart if count > 1)]  # fmt: skip


def _foot(core: Core) -> list[str]:
    answers, structures = many(len(core.queries), "answer"), many(len(core.plan.groups), "structure")
    return ["", f"{answers} from {structures}"]


def _ticks(stream: LiveStream) -> list[str]:
    """The queries with `every`, and the streams inside."""
    lines, emission = [], stream.emission
    for ticker in emission.own_tickers:
        lines += ["", f"{_often(ticker.every)}: {', '.join(ticker.queries)}", *_ticker(ticker)]
    for label, view in emission.contained.items():
        assert view.query.every is not None
        lines += ["", f"{_often(view.query.every)}: {label}"]
        lines += [f"    contained in {view.view}: reads one in {view.factor:,} of its ticks, and computes nothing"]
    for each in emission.inner.values():
        lines += ["", *_answers(each)]
    for chosen in emission.chosen.values():
        lines += ["", f"{_choice(chosen.events)}, as a stream ({LOCAL if chosen.picks is None else NON_LOCAL})"]
        lines += ["    " + line for line in _of_stream(chosen.stream).split("\n")]
    for name, frames in stream.frames.running.items():
        lines += ["", f"frames: {name}", *("    " + line for line in frames.explain())]
    return lines


def _answers(answers: Answers) -> list[str]:
    """Answers that others read: as a stream, grouped as they are or otherwise, or as the relation of a tick."""
    ticker, label = answers.ticker, answers.source.label
    if ticker is None:
        lines = [f"the relation at each tick, by {', '.join(answers.by) or 'nothing'}: {label} ({LOCAL})"]
    elif answers.shared:
        lines = [
            f"{_often(ticker.every)}, as a stream: {label}",
            "    computed once: these are the ticks of that query",
        ]
    else:
        lines = [f"{_often(ticker.every)}, as a stream: {label}", *_ticker(ticker)]
    for by, each in answers.streams.items():
        lines += [f"    grouped otherwise, by {', '.join(by) or 'nothing'}"] if by != answers.by else []
        lines += ["    " + line for line in _of_stream(each.stream).split("\n")]
    for relation in answers.relations.values():
        lines += ["    " + line for line in _answers(relation)]
    return lines


def _choice(events: Events) -> str:
    where = "" if events.where is None else f" where {events.where}"
    if events.every is None:
        return f"events{where}"
    by = f" of each {', '.join(events.every.by)}" if events.every.by else ""
    much = f"one every {events.every.time} of time" if events.every.by_time else f"every {events.every.rows:,}th"
    return f"tuples picked, {much}{by or ' of each key' * events.every.per_key}{where}"


def _often(every: Every) -> str:
    much = f"every {every.time} of time" if every.by_time else f"every {every.rows:,} rows"
    anchor = f", anchored at the {every.anchor}" if every.by_time else ""
    of = ", key by key" if every.per_key else ", of its key alone" if every.own else ""
    return f"{much}{anchor}{of}"


def _ticker(ticker: Ticker) -> list[str]:
    return [
        f"    {NON_LOCAL}, as far back as its windows reach",
        f"    pushed down: {ticker.pending.count:,} rows wait, untouched, until a tick is decided; it is a lookup then",
        f"    so far: {ticker.ticks:,} answers at ticks",
        *("    " + line for line in _of_core(ticker.lookback.core).split("\n")),
    ]


def _group(group: Group) -> list[str]:
    """The lines of a group: what its queries share, the structure chosen, what it costs, why, and how often used."""
    structure = group.structure
    rows = group.space.label()
    return [
        f"{group.part} over {rows}: {_names(group.queries)}",
        f"    {structure.name}: update {structure.update_cost}, lookup {structure.lookup_cost}, "
        f"{_size(structure.bytes)}",
        f"    because: {group.reason}",
        f"    so far: {structure.updates:,} updates, {structure.lookups:,} lookups",
    ]


def _total(total: Total, names: list[str]) -> list[str]:
    """Of an unbounded window."""
    kept = ", ".join(map(str, total.whats))
    rows = Space(total.of.mask).label()
    return [
        f"running {kept or 'count'} over {rows}: {_names(names) if names else 'which keys have any'}",
        f"    totals: update O(1), lookup O(1), {_size(total.bytes)}, one partial per key",
        "    because: an unbounded window lets go of no row, so none is kept"
        + f"; {total.ts.size:,} wait until they are folded in" * bool(total.ts.size),
    ]


def _combined(core: Core, query: Query) -> list[str]:
    """How a query over an expression is computed, and which keys it looks at."""
    lowered = lower(query)
    parts = [part.title for part in lowered.answered]
    lines = [f"combined {query.label}: from {', '.join(parts)}"]
    if query.having is None:
        return lines
    if lowered.guard is None or (why := core.filters.why_not(lowered.guard)):
        why = why if lowered.guard is not None else "index=False" if not query.index else "no condition with an index"
        return [*lines, f"    filter: every key is looked at ({why})"]
    index, guard = NAMES[lowered.guard.aggregate.kind], lowered.guard.title
    return [*lines, f"    filter: {index} names the candidates for {guard}; the rest is checked over these alone"]


def _names(names: list[str], most: int = 4) -> str:
    shown = ", ".join(name.removeprefix(HIDDEN) for name in names[:most])
    return f"{shown}{', …' if len(names) > most else ''} ({many(len(names), 'query')})"


def many(count: int, what: str) -> str:
    """How many of something: 1 query, 2 queries."""
    plural = what[:-1] + "ies" if what == "query" else what + "s"
    return f"{count:,} {what if count == 1 else plural}"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"
