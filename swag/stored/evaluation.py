"""Many windows over stored events at once: edges times aggregates, chunk by chunk, on all cores."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadQuery, BadType, SumOverflow
from swag.progress import Progress
from swag.query import families
from swag.query.aggregates import Aggregate
from swag.query.groupings import By
from swag.query.kind import KINDS, TIME
from swag.query.lowering import Lowered, components, lower
from swag.query.query import Query
from swag.query.reading import Reading
from swag.query.windows import Reach, reach
from swag.stored import blocks as chunks
from swag.stored.aggregators import Aggregator, Count, End, Extreme, Quantile, Swept
from swag.stored.blocks import Chunk, Output
from swag.stored.distinct import Distinct, Mode
from swag.stored.ordered_rows import Requests, Selection, Stored
from swag.stored.rows_and_times import Age, DecayedSums, ExtremeRow, Lists
from swag.stored.skew import Skew
from swag.stored.sums import DecimalSums, IntegerSums, Sums, Variance, WeightedMean
from swag.tables.columns import Field, as_table, column, is_discrete
from swag.tables.decimals import is_wide
from swag.tables.predicate import holds
from swag.tables.times.points import is_point

MANY_ROWS = 1 << 17  # from which on threads pay: to start two takes as long as to put 100,000 answers in order
Call = Callable[[], None]
T = TypeVar("T")


def requests_table(at: Any, ts: str, keys: list[str]) -> pa.Table:
    """The requests, which are a table: times alone are none."""
    arrays = isinstance(at, np.ndarray | pa.Array | pa.ChunkedArray) or hasattr(type(at), "dtype")  # a Series, an Index
    if arrays or (not isinstance(at, pa.Table | dict) and is_point(at[0] if isinstance(at, list) and at else at)):
        columns = ", ".join(f'"{name}": […]' for name in [ts, *keys])
        raise BadType("at is a time, or several, not a table of requests.", f"at={{{columns}}}")
    return as_table(at, what="at is")


def answered_by(
    queries: list[Query], table: pa.Table, at: Any, ts: str, default: By, progress: Progress | None = None
) -> pa.Table:
    """Plain queries, each grouped as its own `by` says, at every event (columns: the default key, those of other
    groupings, ts, then one per query), or at every request of `at`."""
    groups: dict[By, list[Query]] = {}
    for query in queries:
        groups.setdefault(default if query.by is None else query.by, []).append(query)
    for name, asked_by in [(ts, "ts is"), *((name, "key is") for by in (default, *groups) for name in by)]:
        column(table, name, asked_by)
    keys = dict.fromkeys([*default, *(name for by in groups for name in by)])
    front = table.select([*keys, ts]) if at is None else requests_table(at, ts, [*keys])
    keep_apart(queries, front)
    computed = [part for query in queries if query.reads_sql for part in components(query)]
    table = Reading(computed).extended(table) if computed else table
    progress = progress or Progress()
    fields: dict[str, Field] = {}
    counted = np.arange(1, table.num_rows + 1) if at is None else None
    found: dict[str, Any] = {}

    def prepared(by: By) -> Evaluation:
        stored = Stored.of(table, ts, by, fields)
        requests = Requests.at_events(stored, counted) if at is None else Requests.at_times(stored, front, ts, by)
        evaluation = Evaluation(stored, requests, progress)
        for query in groups[by]:
            found[query.label] = stored, evaluation.add(query)
        return evaluation

    run_all(at_once([partial(prepared, by) for by in groups], table.num_rows))
    arrays = [answer.array(stored) for stored, answer in (found[query.label] for query in queries)]
    fields_of = [pa.field(query.label, array.type) for query, array in zip(queries, arrays, strict=True)]
    schema = pa.schema([*front.schema, *fields_of], metadata=front.schema.metadata)
    return pa.Table.from_arrays(front.columns + arrays, schema=schema)


def with_derived(table: pa.Table, query: Query) -> pa.Table:
    """The events, with the columns that a query computes by SQL over theirs."""
    return Reading(components(query)).extended(table)


def keep_apart(queries: list[Query], front: pa.Table) -> None:
    """Raise if a query has the name of a column that comes before the answers."""
    taken = set(front.column_names)
    for query in queries:
        if query.label in taken:
            columns = ", ".join(front.column_names)
            raise BadQuery(
                f'query "{query.label}" has the name of a column that comes before the answers: {columns}.',
                'name it apart: sw.Query(…, name="…")',
            )


@dataclass(eq=False)
class AnswerColumn:
    """Answers that are being computed: where, and of what type they will be. unit: what floats are still to be divided
    by. events: how many are in the window."""

    query: Query
    output: Output
    part: Aggregator
    type: pa.DataType
    unit: float
    events: Output | None

    def array(self, stored: Stored) -> pa.Array | pa.ChunkedArray:
        """The answers as an Arrow column, in the unit they should have; null where `having` does not hold."""
        answers, condition = self.part.array(self.output, self.type), self.query.condition
        answers = answers if self.unit == 1 else pc.divide(answers, self.unit)
        if condition is None:
            return answers
        passing = condition.holds(answers)
        if self.events is not None:
            passing = passing & (self.events.values > 0)
        return pc.if_else(pa.array(passing), answers, pa.scalar(None, answers.type))


@dataclass(eq=False)
class ComputedColumn:
    """Answers of a query over an expression: computed from those of simple queries, once they are there."""

    lowered: Lowered
    columns: dict[Query, AnswerColumn]
    events: list[Output]

    def array(self, stored: Stored) -> pa.Array | pa.ChunkedArray:
        answers = {query: found.array(stored) for query, found in self.columns.items()}
        if self.lowered.query.having is None:
            return self.lowered.value(answers)
        wanted = np.any([output.values > 0 for output in self.events], axis=0)
        wanted &= self.lowered.passing(answers, wanted)
        value = self.lowered.value(answers, wanted)
        return pc.if_else(pa.array(wanted), value, pa.scalar(None, value.type))


@dataclass(eq=False)
class Evaluation:
    """Queries over stored events, by window and by what they read: equal ones are answered once.

    It owns what is read of the events, and the columns of answers while they are computed. Asked of it: to `add`
    queries, and to `run`, after which each column has its array.
    """

    stored: Stored
    requests: Requests
    progress: Progress = field(default_factory=Progress)
    parts: dict[Any, Aggregator] = field(default_factory=dict)
    selections: dict[Any, Selection] = field(default_factory=dict)
    windows: dict[Reach, dict[Aggregator, dict[Aggregate, Output]]] = field(default_factory=dict)
    columns: list[AnswerColumn] = field(default_factory=list)

    def add(self, query: Query) -> AnswerColumn | ComputedColumn:
        """A query to be answered: its column, once `run` is done."""
        if query.is_simple:
            return self._add(query)
        lowered = lower(query)
        columns = {each: self._add(each) for each in lowered.components.values()}
        return ComputedColumn(
            lowered, columns, [self.events(each) for each in lowered.presence if query.having is not None]
        )

    def _add(self, query: Query) -> AnswerColumn:
        """A simple query to be answered, by the part and output that equal ones share."""
        aggregate, window = query.aggregate, reach(query.window, self.stored.clock.unit)
        kinds, selection = self._read(query)
        part, output = self._share(aggregate, window, kinds, selection)
        events = None
        if query.having is not None and KINDS[aggregate.kind].counts:  # no event, no group: a 0 of it passes nothing
            events = self.events(query)
        kind, unit = families.result_type(aggregate, kinds), families.unit_of(aggregate, kinds)
        self.columns.append(AnswerColumn(query, output, part, kind, unit, events))
        return self.columns[-1]

    def events(self, query: Query) -> Output:
        """How many events are in the window of a simple query, null or not."""
        window, selection = reach(query.window, self.stored.clock.unit), self._selection(query.where, {})
        return self._share(Aggregate("count"), window, {}, selection)[1]

    def _share(
        self, aggregate: Aggregate, window: Reach, kinds: dict[str, pa.DataType], selection: Selection
    ) -> tuple[Aggregator, Output]:
        """The part that answers an aggregate, and where it will: both are there already if an equal query was added."""
        kind, family = aggregator_of(aggregate, kinds)
        columns = families.columns_kept(aggregate, kinds)
        part = self.parts.setdefault((kind, family, columns, selection), kind(columns, selection))
        part.reaches.add(window)
        outputs = self.windows.setdefault(window, {}).setdefault(part, {})
        if aggregate not in outputs:
            outputs[aggregate] = part.output(self.requests, aggregate)
        return part, outputs[aggregate]

    def _read(self, query: Query) -> tuple[dict[str, pa.DataType], Selection]:
        """The types of a query's columns, and the rows that count for it."""
        aggregate, table = query.aggregate, self.stored.table
        asked_by = f'query "{query.title}" {"sums" if aggregate.kind == "sum" else "reads"}'
        kinds = {name: column(table, name, asked_by).type for name in aggregate.columns}
        fields = {}
        for name in families.check_columns(aggregate, kinds):
            kept = families.kept_for(aggregate, name, kinds[name])
            as_it_came = kept == (name,)
            fields[name] = self.stored.field(name, asked_by) if as_it_came else self.stored.summed(name, asked_by, kept)
        present = {name: self.stored.present(name, asked_by) for name in kinds if name not in fields}
        present |= {name: f.valid for name, f in fields.items()}
        kinds |= {name: f.type for name, f in fields.items()} | {TIME: self.stored.clock.type}
        return kinds, self._selection(query.where, present)

    def _selection(self, where: str | None, nullable: dict[str, np.ndarray | None]) -> Selection:
        """The rows where a predicate is true and these columns are not null; kept here, as a cycle with what is stored
        would hold all of it in memory until the garbage collector comes by."""
        masks = {name: mask for name, mask in nullable.items() if mask is not None}
        known = (where, frozenset(masks))
        if known not in self.selections:
            if where is not None:
                masks[""] = holds(where, self.stored.table)
            self.selections[known] = Selection.of(self.stored, list(masks.values()))
        return self.selections[known]

    def run(self) -> None:
        run_all([self])

    def answering(self) -> list[Call]:
        """Calls that answer everything, each a part of the requests."""
        return [partial(self._answer, chunk) for chunk in self._chunks()] if self.windows else []

    def arranging(self) -> list[Call]:
        """Calls that then put answers into the order of the input, each a column."""
        request_of = self.requests.request_of
        outputs = [output for parts in self.windows.values() for some in parts.values() for output in some.values()]
        return [] if request_of is None else [partial(output.arrange, request_of) for output in outputs]

    def _chunks(self) -> list[Chunk]:
        """Chunks of requests; smaller ones where requests are few, so that all cores have some; larger ones where
        windows are so long that chunks would read most rows over and over. Within a chunk, edges never go back."""
        count, rows, restarts = self.requests.count, self.stored.ts.size, self.requests.restarts
        for window in self.windows:
            if window.since is not None:
                self.requests.look_up(window.since, self.stored.clock)
        size = min(chunks.CHUNK, max(1, chunks.MOST_ROWS * count // max(rows, 1)))
        timeline = self.stored.timeline(count * sum(window.by_time for window in self.windows))
        while True:
            bounds = sorted({*range(0, count, size), *restarts, count})
            cut = [Chunk(self.requests, timeline, a, b) for a, b in itertools.pairwise(bounds)]
            read = sum(hi - lo for lo, hi in (chunk.seen_by(self.windows) for chunk in cut))
            if len(cut) <= 2 + len(restarts) or read <= 2 * rows:
                return cut
            size *= 2

    def _answer(self, chunk: Chunk) -> None:
        """Answer the requests of one chunk: for every window, block after block, by all parts that ask for it."""
        for window, parts in self.windows.items():
            answers = [(part.selection, part.start(chunk, outputs)) for part, outputs in parts.items()]
            for first in range(chunk.first, chunk.last, chunks.BLOCK):
                block = chunk.block(window, first, min(first + chunks.BLOCK, chunk.last))
                for selection, answer in answers:
                    answer(block.within(selection))
            self.progress.done += 1
        chunk.made.clear()  # what was built is of no use to other chunks, of which there may be many

    def refuse_overflow(self) -> None:
        """Raise if a sum of integers or decimals did not fit, with the first input row where that is so."""
        for found in self.columns:
            if isinstance(found.part, IntegerSums):
                rows = [found.output.row(request) for request, output in found.part.beyond if output is found.output]
                if rows:
                    name, what = found.query.aggregate.columns[0], found.part.holds
                    raise SumOverflow(
                        f'query "{found.query.title}": the sum of "{name}" at row {min(rows)} does not fit {what}.',
                        f'cast "{name}" to float64',
                    )


def run_all(evaluations: list[Evaluation]) -> None:
    """Answer everything, on all cores: what goes on one core alone for each, goes on beside that of another."""
    rows = sum(each.requests.count + each.stored.ts.size for each in evaluations)
    for calls_of in (Evaluation.answering, Evaluation.arranging):
        calls = at_once([partial(calls_of, each) for each in evaluations], rows)
        for evaluation, some in zip(evaluations, calls, strict=True):
            evaluation.progress.total += len(some) * len(evaluation.windows) * (calls_of is Evaluation.answering)
        at_once(list(itertools.chain(*calls)), rows)
    for evaluation in evaluations:
        evaluation.refuse_overflow()


def at_once(calls: list[Callable[[], T]], rows: int) -> list[T]:
    """What calls give, made on all cores; one after the other where there are so few rows that threads cost more."""
    threads = min(thread_count(), len(calls)) if rows >= MANY_ROWS else 1
    if threads <= 1:
        return [call() for call in calls]
    with ThreadPoolExecutor(threads) as pool:
        return [waiting.result() for waiting in [pool.submit(call) for call in calls]]


def thread_count() -> int:
    """$SWAG_THREADS, else one thread per core."""
    chosen = os.environ.get("SWAG_THREADS", "")
    return max(1, int(chosen)) if chosen.isdigit() else os.cpu_count() or 1


def aggregator_of(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> tuple[type[Aggregator], Any]:
    """What answers an aggregate, and its family: of one family, columns and selection, all are answered by one part."""
    parts = families.parts_of(aggregate, kinds)
    if aggregate.kind in SUMMED:
        of = kinds[aggregate.columns[0]]
        if is_wide(of):
            return DecimalSums, parts
        whole = is_discrete(of) or pa.types.is_decimal(of) or aggregate.kind not in families.OF_LIMBS
        return IntegerSums if whole else Sums, parts
    if len(parts) == 1:  # whatever is made of one operator can be swept
        return BY_KIND.get(aggregate.kind, Swept), parts
    return BY_KIND[aggregate.kind], parts or aggregate.kind


SUMMED = {"sum", "mean", "any", "all", "count_if"}
BY_KIND: dict[str, type[Aggregator]] = {
    "count": Count, "first": End, "last": End, "first_n": Lists, "last_n": Lists, "age": Age, "wmean": WeightedMean,
    "decayed_sum": DecayedSums, "decayed_mean": DecayedSums, "decayed_count": DecayedSums,
    "count_distinct": Distinct, "approx_count_distinct": Distinct, "mode": Mode, "var": Variance, "std": Variance,
    "skew": Skew, "min": Extreme, "max": Extreme, "quantile": Quantile, "arg_max": ExtremeRow, "arg_min": ExtremeRow,
}  # fmt: skip
