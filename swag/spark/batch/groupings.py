"""Queries of several groupings over DataFrames: rows go from grouping to grouping, and take their answers along.

    events, requests --> by card --> by (card, country) --> by merchant --> …        each: rows in order, answers
                    shuffle      no shuffle             shuffle

A shuffle per grouping, and none for one that is within the last: (card, country) lies within card. Nothing is joined,
so rows need no numbers: those that Spark gives are others if it computes a part of them again, and a join by them would
put answers to the wrong rows. It would shuffle all answers once more, too. What is answered is carried through the
shuffles that follow, so groupings with many queries come last.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from swag.errors import BadQuery
from swag.query.groupings import By, shown_by
from swag.query.lowering import components, depth
from swag.query.query import Query
from swag.spark import schema
from swag.spark.asked import columns_read
from swag.spark.batch.cuts import Halo
from swag.spark.batch.inputs import checked_inputs, inputs
from swag.spark.batch.layout import Columns, Layout, laid_out_again, laid_out_in_place, pieces_of
from swag.spark.batch.tasks import WindowTask, answers
from swag.spark.places import named
from swag.spark.portable import in_workers, portable
from swag.tables.columns import Clock


def evaluate(
    groups: dict[By, list[Query]], names: list[str], events: DataFrame, at: DataFrame | None, ts: str, default: By,
    layout: Layout,
) -> DataFrame:  # fmt: skip
    """Plain queries, by the key columns that group their events. names: of the answers, as they are wanted."""
    if layout.ordered:
        shown = "; ".join(map(shown_by, groups))
        raise BadQuery(
            f"Layout(ordered=True) is for events that lie as all queries group them, but these have {shown}.",
            "leave it out, or evaluate each grouping by itself",
        )
    for name in default:
        schema.field(events, name, "key is")
    keys = list(dict.fromkeys([*(default if at is None else ()), *(name for by in groups for name in by)]))
    passage = Passage.of(groups, names, events, at, ts, keys, layout)
    order = in_turn(groups)
    for number, by in enumerate(order):
        passage.answer(by, later=order[number + 1 :])
    front = [*keys, ts] if at is None else at.columns
    return named(passage.rows.select(*passage.front, *(f"a{i}" for i in range(len(names)))), [*front, *names])


def in_turn(groups: dict[By, list[Query]]) -> list[By]:
    """Groupings in the order in which they are answered: those within another behind it, those with many queries last.

    The whole stream has all groupings within it, but would have all rows in one task.
    """
    families: dict[By, list[By]] = {}
    for by in sorted(groups, key=len):
        coarser = next((each for each in families if each and set(each) <= set(by)), by)
        families.setdefault(coarser, []).append(by)
    together = sorted(families.values(), key=lambda family: sum(len(groups[by]) for by in family))
    return [by for family in together for by in family]


@dataclass(eq=False)
class Passage:
    """Rows on their way from grouping to grouping: events, requests among them.

    Owns the rows with what was answered so far (a0, a1 … in the order of `names`), and knows by which columns they lie
    together in partitions. Asked of it is to `answer` a grouping after the other; of the last one come the columns that
    users want before the answers (`front`).
    """

    groups: dict[By, list[Query]]
    names: list[str]
    events: DataFrame
    ts: str
    keys: list[str]
    layout: Layout
    types: pa.Schema  # of all answers, by name
    source: DataFrame  # the events as they were, for a look at large substreams before any job
    rows: DataFrame
    columns: Columns  # of all groupings together
    read: list[str]
    lie_by: By = ()  # nothing: anywhere
    answered: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, groups: dict[By, list[Query]], names: list[str], events: DataFrame, at: DataFrame | None, ts: str,
        keys: list[str], layout: Layout,
    ) -> "Passage":  # fmt: skip
        """Rows before the first grouping: all inputs are checked, and requests stand among the events."""
        asked = [query for some in groups.values() for query in some]
        types = checked_inputs(asked, events, at, ts, keys)
        simple = [each for query in asked for each in components(query)]
        read = columns_read(simple, events.columns)
        taken, requests, columns = inputs(simple, events, at, ts, keys, read, False)
        rows = taken
        if requests is not None:
            asking = requests.withColumn("asks", F.lit(True))
            rows = taken.withColumn("asks", F.lit(False)).unionByName(asking, allowMissingColumns=True)
        return cls(groups, names, events, ts, keys, layout, types, taken, rows, columns, read)

    @property
    def front(self) -> list[str]:
        """The columns before the answers: those of the requests, or all keys and ts."""
        return self._lettered("r") if self.columns.asks else [*self.columns.keys, "t"]

    def answer(self, by: By, later: list[By]) -> None:
        """The queries of a grouping. later: those that are still to come."""
        asked = self.groups[by]
        front = self._goes_on(later) if later else [*self.front, *self.answered]
        out = self._out(front, asked, last=not later)
        clock = Clock(schema.arrow_schema(self.events).field(self.ts).type)
        far = depth(asked, clock.unit)
        halo, columns = Halo(far.time, far.rows, columns=len(out)), self._columns(by, front)
        layout = self.layout.for_windows(each.window for query in asked for each in components(query))
        rows, columns = self._laid_out(by, columns, halo, layout)
        read = [self.read[int(name[1:])] for name in columns.others if name.startswith("e")]
        task = WindowTask(
            portable(asked), columns, dict(zip(columns.keys, by, strict=True)), self.ts, tuple(read), clock, halo,
            schema.arrow_of(out, self.events), layout.block_rows, None, tuple(front),
            passes_on=bool(later) and columns.asks,
        )  # fmt: skip
        self.rows = in_workers(rows, partial(answers, task), out)
        self.answered += out.names[len(front) :]

    def _laid_out(self, by: By, columns: Columns, halo: Halo, layout: Layout) -> tuple[DataFrame, Columns]:
        """Keys together, in order of time; as they lie, if what is within this grouping's keys is together already."""
        if self.lie_by and set(self.lie_by) <= set(by):
            return laid_out_in_place(self.rows, columns)
        pieces = pieces_of(self.source, columns.by, halo, layout)
        self.lie_by = by if pieces is None else ()  # the pieces of a substream are in several tasks
        return laid_out_again(self.rows, columns, pieces, layout)

    def _columns(self, by: By, front: list[str]) -> Columns:
        """What workers get of a row for this grouping."""
        keys, known_by = self._key(by)
        needed = dict.fromkeys([*self._read_by([by]), *front])
        others = [name for name in needed if name not in (*keys, *known_by, "t", "asks")]
        return Columns(keys, known_by, self.columns.ties, self.columns.asks, tuple(others))

    def _goes_on(self, later: Iterable[By]) -> list[str]:
        """What is needed of a row after this grouping."""
        names = [] if self.columns.asks else list(self.columns.keys)
        names += [name for by in later for part in self._key(by) for name in part]
        names += ["t", *(["asks"] if self.columns.asks else []), *(["seq"] if self.columns.ties else [])]
        return list(dict.fromkeys([*names, *self._read_by(later), *self._lettered("r"), *self.answered]))

    def _key(self, by: By) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of a grouping's key, and those that tell its keys apart."""
        places = [self.keys.index(name) for name in by]
        return tuple(self.columns.keys[i] for i in places), tuple(self.columns.by[i] for i in places)

    def _read_by(self, groupings: Iterable[By]) -> list[str]:
        """e0, e1 …, as far as queries of these groupings read them."""
        simple = [each for by in groupings for query in self.groups[by] for each in components(query)]
        names = columns_read(simple, self.events.columns)
        return [f"e{self.read.index(name)}" for name in names]

    def _lettered(self, letter: str) -> list[str]:
        return [name for name in self.columns.others if name.startswith(letter)]

    def _out(self, front: list[str], asked: list[Query], last: bool) -> StructType:
        """What workers give: the front, and the answers of this grouping."""
        before = [StructField(name, self.rows.schema[name].dataType, True) for name in front]
        if last:
            when = self.events.schema[self.ts].dataType
            before = [StructField("t", when, True) if each.name == "t" else each for each in before]
        own = {f"a{self.names.index(query.label)}": self.types.field(query.label).type for query in asked}
        return StructType(before + schema.spark_fields(pa.schema(own)))
