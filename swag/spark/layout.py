"""How rows are laid out for the workers: keys together, in order of time, large substreams cut.

    k0 k1 …    the key's columns              t      ts as int64 in its own unit
    g0 …       what tells keys apart, where the key itself does not: 0.0 from -0.0
    piece      of a substream that is cut     seq    where the event stood in its input: ties keep that order
    asks       answer at this row             e0 …   the columns that queries read        r0 …   those of the requests

A substream that is too large for one task is cut at quantiles of its ts. A piece gets, as rows that do not ask, the
halo of earlier events that its first rows can see; so pieces are answered apart, with the answers of the whole.
"""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from swag.errors import BadQuery, BadType
from swag.spark.cuts import Halo, Pieces, cut

WHOLE = -1  # the piece that a substream is which is not cut


@dataclass(frozen=True)
class Layout:
    """How the work is spread. The defaults suit; answers are the same whatever is chosen.

    tasks: how many there are after the shuffle (None: Spark's own choice, or one per `task_rows` events where a
    substream is cut). sample: the share of events looked at beforehand to find substreams too large for a task, which
    costs a scan of key and ts; 0 looks at none and cuts nothing. ordered=True: the events are partitioned by key and
    sorted by key, ts within partitions already, as a bucketed and sorted table may be: no shuffle, no sort. block_rows:
    rows that a worker holds and answers at a time, at least.
    """

    tasks: int | None = None
    sample: float = 0.01
    task_rows: int = 250_000
    ordered: bool = False
    block_rows: int = 1 << 17

    def __post_init__(self) -> None:
        if isinstance(self.sample, bool) or not isinstance(self.sample, int | float) or not 0 <= self.sample <= 1:
            raise BadQuery(f"sample={self.sample!r} is not a share of the events, 0 to 1.", "Layout(sample=0.01)")
        for name, example in (("tasks", 200), ("task_rows", 100_000), ("block_rows", 100_000)):
            number = getattr(self, name)
            if (name, number) != ("tasks", None) and (not isinstance(number, Integral) or number < 1):
                raise BadQuery(f"{name}={number!r} is not a whole number >= 1.", f"Layout({name}={example})")

    @staticmethod
    def of(given: Any) -> "Layout":
        """What users hand in as a layout; None is the default."""
        if not isinstance(given, Layout | None):
            raise BadType(f"layout={given!r} is no Layout.", "layout=swag.spark.Layout(tasks=200)")
        return given or Layout()


@dataclass(frozen=True)
class Columns:
    """Which columns laid-out rows have. ties: seq is there. asks: that is; else every row does."""

    keys: tuple[str, ...]
    by: tuple[str, ...]
    ties: bool
    asks: bool
    others: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        """Those that workers get."""
        apart = [name for name in self.by if name not in self.keys]
        return [*self.keys, *apart, "t", *(["asks"] if self.asks else []), *self.others]


def laid_out(
    events: DataFrame, requests: DataFrame | None, columns: Columns, halo: Halo, layout: Layout
) -> tuple[DataFrame, Columns]:
    """Rows for the workers: events, and requests among them, by task, in order."""
    if layout.ordered:
        if requests is not None:
            raise BadQuery("Layout(ordered=True) is for events alone: requests are sorted in among them.")
        return events.select(*columns.all), columns
    pieces = pieces_of(events, columns.by, halo, layout)
    rows = _with_pieces(events, "since", columns, pieces, asks=requests is None)
    if requests is not None:
        asking = _with_pieces(requests, "start", columns, pieces, asks=True)
        rows = rows.unionByName(asking, allowMissingColumns=True)
    rows = _spread(rows, columns, pieces, layout)
    if pieces is not None:
        columns = replace(columns, by=(*columns.by, "piece"), asks=True)
    order = [*columns.by, "t", *(["asks"] if requests is not None else []), *(["seq"] if columns.ties else [])]
    return rows.sortWithinPartitions(*order).select(*columns.all), columns


def pieces_of(events: DataFrame, by: tuple[str, ...], halo: Halo, layout: Layout) -> Pieces | None:
    """Substreams that are too large for a task, cut; None if there are none."""
    most = layout.tasks or int(str(events.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    fair = 1 if layout.tasks else layout.task_rows  # as many tasks as were asked for
    return cut(events, list(by), halo, layout.sample, fair, most)


def _with_pieces(rows: DataFrame, since: str, columns: Columns, pieces: Pieces | None, asks: bool) -> DataFrame:
    """Each row once for every piece that it is in; `since`: from where on rows are."""
    if pieces is None:
        return rows.withColumn("asks", F.lit(asks)) if columns.asks else rows
    inside = (F.col("t") >= F.col(since)) & (F.col("t") <= F.col("until"))
    for name in columns.by:
        inside = inside & F.col(name).eqNullSafe(F.col(f"cut_{name}"))
    # Left: keys that are not cut are in no piece; nor are rows without a time, which are to be refused, not lost.
    joined = rows.join(F.broadcast(pieces.table), inside, "left")
    mine = F.coalesce(F.col("t") >= F.col("start"), F.lit(True)) if asks else F.lit(False)
    piece = F.coalesce(F.col("piece"), F.lit(WHOLE)).alias("piece")
    return joined.select(*rows.columns, piece, mine.alias("asks"), "task")


def _spread(rows: DataFrame, columns: Columns, pieces: Pieces | None, layout: Layout) -> DataFrame:
    if pieces is not None:
        hashed = F.pmod(F.hash(*columns.by), F.lit(pieces.tasks)) if columns.by else F.lit(0)
        return rows.repartitionById(pieces.tasks, F.coalesce(F.col("task"), hashed).cast("int"))
    if not columns.by:
        return rows.repartition(1)
    return rows.repartition(*columns.by) if layout.tasks is None else rows.repartition(layout.tasks, *columns.by)
