"""Substreams cut in time: which piece an event is in, and which pieces have to do with a frame.

    cuts      |            |            |
    frames      [a]     [b......]  [c]

a and c lie inside a piece, b spans a cut. To fill, b is told to both pieces, and each looks for its own events in it.
To summarise, b is answered apart, over a copy of the events from its start to its end: see `with_spans`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from swag.spark.batch.cuts import CutPieces
from swag.spark.batch.layout import WHOLE

BESIDE = -2  # BESIDE - p: the frames that begin in piece p and end behind it, with their events


def placed(rows: DataFrame, by: tuple[str, ...], pieces: CutPieces) -> DataFrame:
    """Each event with its piece; those of keys that are not cut, and of none, are WHOLE's."""
    return pieces.around(rows, by).select(*rows.columns, _piece().alias("piece"))


def told(frames: DataFrame, by: tuple[str, ...], pieces: DataFrame) -> DataFrame:
    """Frames t .. b, each once for every piece that it reaches, where it begins with the piece if it did before.

    So rows of a key are in order of pieces when they are in order of t.
    """
    reaches = (F.col("t") <= F.col("until")) & (F.col("b") >= F.col("start"))
    rest = [name for name in frames.columns if name != "t"]
    begin = F.greatest("t", "start").alias("t")  # the greatest of those that are not null
    return _joined(frames, by, pieces, reaches).select(*rest, begin, _piece().alias("piece"))


def with_spans(frames: DataFrame, by: tuple[str, ...], pieces: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Frames a .. b, each in the one piece that answers it; and all pieces, with those for frames that span a cut.

    The frames are used twice; Spark finds one by the shuffle of the other, and detects them once.
    """
    joined = _joined(frames, by, pieces, F.col("a").between(F.col("start"), F.col("until")))
    piece = F.when(F.col("b") > F.col("until"), BESIDE - F.col("piece")).otherwise(_piece())
    mine = joined.select(*frames.columns, piece.alias("piece"))
    whole = [F.min("a").alias("start"), F.max("b").alias("until")]
    beside = mine.where(F.col("piece") <= BESIDE).groupBy(*by, "piece").agg(*whole)
    names = [F.col(name).alias(f"cut_{name}") for name in by]
    beside = beside.select(*names, "piece", "start", "until")
    return mine, pieces.select(*beside.columns).union(beside)


def _joined(rows: DataFrame, by: tuple[str, ...], pieces: DataFrame, inside: Column) -> DataFrame:
    for name in by:
        inside = inside & F.col(name).eqNullSafe(F.col(f"cut_{name}"))
    return rows.join(F.broadcast(pieces), inside, "left")


def _piece() -> Column:
    return F.coalesce("piece", F.lit(WHOLE).cast("long"))


def spread(rows: DataFrame, by: tuple[str, ...], tasks: int) -> DataFrame:
    """Keys by their hash, the pieces of each to one task after the other."""
    first = F.hash(*by).cast("long") if by else F.lit(0)
    return rows.repartitionById(tasks, F.pmod(first + F.col("piece"), F.lit(tasks)).cast("int"))
