"""How rows are laid out for the workers: keys together, in order of time, large substreams cut.

    k0 k1 …    the key's columns              t      ts as int64 in its own unit
    g0 …       what tells keys apart, where the key itself does not: 0.0 from -0.0
    piece      of a substream that is cut     seq    where the event stood in its input: ties keep that order
    asks       a request, among events        e0 …   the columns that queries read        r0 …   those of the requests

A substream that is too large for one task is cut at quantiles of its ts. A piece gets, as rows that do not ask, the
halo of earlier events that its first rows can see; so pieces are answered apart, with the answers of the whole.
What follows from the piece is not sent with every row: the key is null, and workers know where its halo ends (`Cut`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kernels.operators.numbers import EARLIEST
from swag.errors import BadQuery, BadType
from swag.query.windows import Window, sees_later
from swag.spark.batch.cuts import CutPieces, Halo, cut

EVERY_ROW = 1 << 62
WHOLE = -1  # the piece that a substream is which is not cut


@dataclass(frozen=True)
class Layout:
    """How the work is spread. The defaults suit; answers are the same whatever is chosen.

    tasks: how many there are after the shuffle (None: Spark's own choice, or one per `task_rows` events where a
    substream is cut). sample: the share of events looked at beforehand to find substreams too large for a task, which
    costs a scan of key and ts; 0 looks at none and cuts nothing. ordered=True: the events are partitioned by key and
    sorted by key, ts within partitions already: no shuffle, no sort; looked at once for keys that are in two
    partitions, and checked by the workers: what is not so raises OutOfOrder. block_rows: rows that a worker holds and
    answers at a time, at least.

    >>> import swag.spark
    >>> swag.spark.Layout(tasks=200)  # doctest: +SKIP
    Layout(tasks=200, sample=0.01, task_rows=250000, ordered=False, block_rows=131072)
    >>> swag.spark.evaluate(query, sorted_trades, key="k", layout=swag.spark.Layout(ordered=True))  # doctest: +SKIP
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

    def for_windows(self, windows: Iterable[Window]) -> "Layout":
        """The same; but where windows hold events that come later, substreams are taken as a whole."""
        return replace(self, sample=0, block_rows=EVERY_ROW) if any(map(sees_later, windows)) else self

    @staticmethod
    def of(given: Any) -> "Layout":
        """What users hand in as a layout; None is the default."""
        if not isinstance(given, Layout | None):
            raise BadType(f"layout={given!r} is no Layout.", "layout=swag.spark.Layout(tasks=200)")
        return given or Layout()


@dataclass(frozen=True)
class Cut:
    """What workers know of pieces: the key of each (k0, k1 …, if rows come without it), where it starts, and since when
    it sees events."""

    keys: pa.Table
    starts: np.ndarray
    since: np.ndarray

    def with_keys(self, rows: pa.Table) -> pa.Table:
        """Rows with the keys of their pieces; those that are in none have their own."""
        piece = pc.if_else(pc.equal(rows["piece"], WHOLE), None, rows["piece"])
        for name in self.keys.column_names:
            place = rows.schema.get_field_index(name)
            wanted = rows.schema.field(place)  # the driver gets timestamps in UTC, workers in the session's time zone
            of_piece = self.keys.column(name).cast(wanted.type).take(piece)
            if piece.null_count:
                of_piece = pc.if_else(piece.is_null(), rows.column(name), of_piece)
            rows = rows.set_column(place, wanted, of_piece)
        return rows

    def asks(self, piece: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Events that are no halo."""
        return (piece == WHOLE) | (t >= self.starts[piece])

    def may_lack(self, piece: np.ndarray) -> np.ndarray:
        """Pieces that do not see all events before them."""
        return (piece != WHOLE) & (self.since[piece] > EARLIEST)


@dataclass(frozen=True)
class Columns:
    """Which columns laid-out rows have. ties: seq is there. asks: that is; else every event that is no halo does."""

    keys: tuple[str, ...]
    by: tuple[str, ...]
    ties: bool
    asks: bool
    others: tuple[str, ...]
    cut: Cut | None = None

    @property
    def all(self) -> list[str]:
        """Those that workers get."""
        apart = [name for name in self.by if name not in self.keys]
        return [*self.keys, *apart, "t", *(["asks"] if self.asks else []), *self.others]


def laid_out(
    events: DataFrame, requests: DataFrame | None, columns: Columns, halo: Halo, layout: Layout
) -> tuple[DataFrame, Columns]:
    """Rows for the workers: events, and requests among them, by task, in order."""
    pieces = pieces_of(events, columns.by, halo, layout)
    rows = _with_pieces(events, "since", columns, pieces)
    if requests is not None:
        asking = _with_pieces(requests, "start", columns, pieces).withColumn("asks", F.lit(True))
        rows = rows.withColumn("asks", F.lit(False)).unionByName(asking, allowMissingColumns=True)
    return _in_order(_spread(rows, columns, pieces, layout), columns, pieces)


def laid_out_again(
    rows: DataFrame, columns: Columns, pieces: CutPieces | None, layout: Layout
) -> tuple[DataFrame, Columns]:
    """Rows that are events, or requests if they ask, wherever they lie: by task, in order."""
    return _in_order(_spread(_with_pieces(rows, "since", columns, pieces), columns, pieces, layout), columns, pieces)


def laid_out_in_place(rows: DataFrame, columns: Columns) -> tuple[DataFrame, Columns]:
    """Rows of which those of a key are in one partition already."""
    return _in_order(rows, columns, None)


def _in_order(rows: DataFrame, columns: Columns, pieces: CutPieces | None) -> tuple[DataFrame, Columns]:
    if pieces is not None:
        known = pieces.keys.select(_follow_from_the_piece(columns))
        columns = replace(columns, by=(*columns.by, "piece"), cut=Cut(known, pieces.starts, pieces.since))
    order = [*columns.by, "t", *(["asks"] if columns.asks else []), *(["seq"] if columns.ties else [])]
    return rows.sortWithinPartitions(*order).select(*columns.all), columns


def pieces_of(events: DataFrame, by: tuple[str, ...], halo: Halo, layout: Layout) -> CutPieces | None:
    """Substreams that are too large for a task, cut; None if there are none."""
    most = layout.tasks or int(str(events.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    fair = 1 if layout.tasks else layout.task_rows  # as many tasks as were asked for
    return cut(events, list(by), halo, layout.sample, fair, most)


def _follow_from_the_piece(columns: Columns) -> list[str]:
    """The columns of the key that are the same wherever keys are equal: not 0.0, which is -0.0."""
    return [name for name in columns.keys if name in columns.by]


def _with_pieces(rows: DataFrame, since: str, columns: Columns, pieces: CutPieces | None) -> DataFrame:
    """Each row once for every piece that it is in; `since`: from where on rows are."""
    if pieces is None:
        return rows
    # Keys that are not cut are in no piece; nor are rows without a time, which are to be refused, not lost.
    joined, known = pieces.around(rows, columns.by, since), _follow_from_the_piece(columns)
    if since == "since" and "asks" in rows.columns:  # a request is no halo
        joined = joined.where(~F.col("asks") | F.col("piece").isNull() | (F.col("t") >= F.col("start")))
    own = [F.when(F.col("piece").isNull(), F.col(name)).alias(name) if name in known else name for name in rows.columns]
    return joined.select(*own, F.coalesce("piece", F.lit(WHOLE).cast("long")).alias("piece"))


def _spread(rows: DataFrame, columns: Columns, pieces: CutPieces | None, layout: Layout) -> DataFrame:
    if pieces is not None:
        hashed = F.hash(*columns.by).cast("long") if columns.by else F.lit(0)
        turn = F.when(F.col("piece") == WHOLE, hashed).otherwise(F.col("piece"))
        return rows.repartitionById(pieces.tasks, F.pmod(turn, F.lit(pieces.tasks)).cast("int"))
    if not columns.by:
        return rows.repartition(1)
    return rows.repartition(*columns.by) if layout.tasks is None else rows.repartition(layout.tasks, *columns.by)
