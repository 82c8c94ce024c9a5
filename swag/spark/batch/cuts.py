"""Which substreams are too large for one task, and where to cut them: from a sample, before the job.

      piece 0          piece 1             until(0) + 1 = start(1), a quantile of ts
    |..............|..............|        events with since(1) <= t < start(1) are piece 1's halo: seen, not answered
              ^ since(1)

Cuts fall between timestamps, never between equal ones. They may lie anywhere: answers do not depend on them. Nor does
a halo in time depend on the events. One by rows does: so many were counted, and workers count them again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from kernels.operators.numbers import EARLIEST, LATEST
from swag.query.windows import Depth

GRAINS = 256  # quantiles that are known of a large substream
# Always the same: Spark writes it into code that it generates, and compiles again for another. None that anyone else
# would choose: F.rand(seed) draws the very numbers that a sample is drawn by.
SEED = 7_264_915_038_411
SHARES = np.arange(GRAINS + 1) / GRAINS
ENOUGH = 100  # rows of a substream in a sample, for the sample to say anything
SAMPLED_ROWS = 1 << 20  # rows of large substreams that the driver gets, at most: their quantiles are those of a sample
WIDE = 20  # columns of answers that cost as much as to bring an event to a worker
WORTHWHILE = 0.8  # of the events, in the first of two pieces
CELLS = 4  # of time per piece
FINER = 1.5  # pieces per fair share: the rest of the keys comes on top


@dataclass(frozen=True)
class Halo(Depth):
    """How much of the past an answer can see: a length of time, and a number of rows. columns: of answers."""

    columns: int = 0

    @property
    def cost(self) -> float:
        """Of an event that is only seen, if one that is answered costs 1."""
        return WIDE / (WIDE + self.columns)


@dataclass(frozen=True)
class Grid:
    """Time in cells of equal length, a few for each piece: an event is compared with the pieces in its cell alone.

    With all pieces of its key, a job over 5M events in 200 pieces took 9.1 s; this way it takes 7.4 s.
    """

    begin: float
    length: float
    cells: int

    @classmethod
    def of(cls, large: "list[Large]", pieces: int) -> "Grid":
        begin, end = (float(f(each.quantiles[at] for each in large)) for f, at in ((min, 0), (max, -1)))
        return cls(begin, max(1.0, (end - begin) / (CELLS * pieces)), CELLS * pieces)

    def cell(self, t: Column) -> Column:
        """Never less for a later time, however it is rounded; all that lies beyond is in the first cell or the last."""
        along = (t.cast("double") - self.begin) / self.length
        return F.least(F.greatest(along, F.lit(0.0)), F.lit(float(self.cells))).cast("long")


@dataclass(frozen=True)
class CutPieces:
    """cut_<key> …, piece, since, start, until: a row per piece. The same as arrays, in order of `piece`: the key of
    each, its `starts`, and `since` when it sees events. tasks: of the whole job, among which pieces take turns."""

    table: DataFrame
    keys: pa.Table
    starts: np.ndarray
    since: np.ndarray
    tasks: int
    grid: Grid

    def around(self, rows: DataFrame, by: Iterable[str], since: str = "start") -> DataFrame:
        """Rows with each piece of their key that since <= t <= until holds for; with nulls where there is none."""
        cells = F.sequence(self.grid.cell(F.col(since)), self.grid.cell(F.col("until")))
        inside = (F.col("t") >= F.col(since)) & (F.col("t") <= F.col("until"))
        inside = inside & (self.grid.cell(F.col("t")) == F.col("cut_cell"))
        return _joined(rows, self.table.withColumn("cut_cell", F.explode(cells)), by, inside, "left")


@dataclass(frozen=True)
class Large:
    """A substream to cut: its row in the table of keys, how many events it has, quantiles of its ts."""

    key: int
    rows: float
    quantiles: np.ndarray

    def starts(self, pieces: int, halo: Halo) -> np.ndarray:
        """Where pieces begin, but the first; fewer of them if the halos would outweigh the half of the events, and none
        if the longest of two would still take most of the time."""
        behind = [self._behind(int(t), halo) for t in self.quantiles]
        while True:
            starts = np.unique(self.quantiles[_level(pieces, behind, halo.cost)])
            starts = starts[starts > self.quantiles[0]]
            if pieces <= 2 or self.replicated(starts, halo) <= self.rows / 2:
                return starts if starts.size and self.rank(int(starts[0])) <= WORTHWHILE else starts[:0]
            pieces = max(2, pieces * 2 // 3)

    def _behind(self, t: int, halo: Halo) -> float:
        """The share of events that is the halo of a piece that begins there."""
        return max(self.rank(t) - self.rank(t - halo.time), min(self.rank(t), halo.rows / self.rows))

    def replicated(self, starts: np.ndarray, halo: Halo) -> float:
        return self.rows * sum(self._behind(int(t), halo) for t in starts)

    def rank(self, t: int) -> float:
        """The share of events before t, about."""
        return float(np.searchsorted(self.quantiles, max(t, EARLIEST))) / GRAINS

    def back(self, start: int, rows: float) -> int:
        """A time so that about so many events lie between it and `start`."""
        share = self.rank(start) - rows / self.rows
        return EARLIEST if share <= 0 else int(self.quantiles[int(share * GRAINS)])


def _level(pieces: int, behind: list[float], cost: float) -> list[int]:
    """The quantiles at which to cut so that all pieces take as long, with the halo behind each but the first.

    cost: of an event in a halo, if one that is answered costs 1.
    """

    def cuts(each: float) -> list[int]:
        found, end = [], each
        while end < GRAINS:
            found.append(round(end))
            end += max(1.0, each - cost * GRAINS * behind[round(end)])
        return found

    low, high = GRAINS / pieces, float(GRAINS)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if len(cuts(middle)) < pieces else (middle, high)
    return cuts(high)


def cut(
    events: DataFrame, by: list[str], halo: Halo, sample: float, task_rows: int, most_tasks: int
) -> CutPieces | None:
    """The pieces of all substreams that are to be cut; None if none is. events: by …, t.

    A task for every task_rows events, most_tasks of them at most; a substream of over half of a task's share is cut.
    """
    if sample == 0:
        return None
    looked = events.select(*by, "t")
    looked = looked if sample == 1 else looked.sample(sample, SEED)
    total, keys, counts = _largest(looked, by, 2 * most_tasks)
    tasks = min(most_tasks, ceil(total / sample / task_rows))
    if tasks <= 1:
        return None
    hot = np.flatnonzero((counts > total / tasks / 2) & (counts >= (2 if sample == 1 else ENOUGH)))
    if not hot.size:
        return None
    keys = keys.take(pa.array(hot))
    large = _with_quantiles(looked, by, keys, counts[hot] / sample, int(counts[hot].sum()))
    starts = [each.starts(min(tasks, max(2, ceil(FINER * each.rows * sample * tasks / total))), halo) for each in large]
    if not any(each.size for each in starts):
        return None
    since = [_since(own, halo) for own in starts]
    if halo.rows:
        since = _counted(events, by, keys, large, starts, since, halo)
    return _pieces(events, by, keys, large, starts, since, tasks)


def _largest(looked: DataFrame, by: list[str], most: int) -> tuple[int, pa.Table, np.ndarray]:
    """How many rows there are, and the keys with the most of them; without a key, quantiles from the same look."""
    if not by:
        found = looked.agg(F.count(F.lit(1)).alias("count"), _quantiles()).toArrow()
        total = found.column("count")[0].as_py()
        return total, found, np.array([total])
    counted = looked.rollup(F.struct(*by).alias("k")).count()  # the null row is that of all
    most_first = counted.orderBy(F.desc("count"), F.col("k").isNotNull()).limit(most + 1)
    # Fields, not structs: pyarrow refuses a null struct whose fields can not be null, as those of a literal can not.
    found = most_first.select(*(F.col("k")[name].alias(name) for name in by), "count").toArrow()
    counts, keys = np.asarray(found.column("count")), found.select(by)
    return (int(counts[0]), keys.slice(1), counts[1:]) if counts.size else (0, keys, counts)


def _with_quantiles(looked: DataFrame, by: list[str], keys: pa.Table, rows: np.ndarray, sampled: int) -> list[Large]:
    """sampled: how many rows of these keys were looked at.

    By hand: to have percentile_approx find them, group by group, took 0.2 s longer.
    """
    if not by:
        quantiles = keys.column("quantiles")[0].as_py()  # None: no event has a time
        return [] if quantiles is None else [Large(0, float(rows[0]), np.array(quantiles))]
    some = _joined(looked, _named(looked, keys, by, {"at": np.arange(keys.num_rows)}), by)
    some = some if sampled <= SAMPLED_ROWS else some.sample(SAMPLED_ROWS / sampled, SEED + 1)
    found = some.where("t IS NOT NULL").select("at", "t").toArrow()
    at, t = (np.asarray(found.column(name)) for name in ("at", "t"))
    order = np.lexsort((t, at))
    t, ends = t[order], np.searchsorted(at[order], np.arange(keys.num_rows + 1))
    runs = enumerate(pairwise(ends.tolist()))
    return [Large(i, float(rows[i]), t[a + (SHARES * (b - 1 - a)).astype(int)]) for i, (a, b) in runs if b > a]


def _quantiles() -> Column:
    return F.percentile_approx("t", SHARES.tolist(), 4 * GRAINS).alias("quantiles")


def _since(starts: np.ndarray, halo: Halo) -> list[int]:
    """From where on each piece but the first sees events, given the lengths of windows in time alone."""
    return [max(EARLIEST, int(start) - max(halo.time - 1, 0)) for start in starts]


def _counted(
    events: DataFrame, by: list[str], keys: pa.Table, large: list[Large], starts: list[np.ndarray],
    since: list[list[int]], halo: Halo,
) -> list[list[int]]:  # fmt: skip
    """Further back where that holds too few rows for the longest window by rows: counted, as a sample only guesses."""
    tries = [
        (each.key, i, each.back(int(start), more * halo.rows + 2 * each.rows / GRAINS), int(start))
        for each, own in zip(large, starts, strict=True)
        for i, start in enumerate(own)
        for more in (1.25, 4)
    ]
    options = dict(zip(("at", "part", "tried", "start"), zip(*tries, strict=True), strict=True))
    wanted = _named(events, keys.take(pa.array(options["at"])), by, options)
    inside = (F.col("t") >= F.col("tried")) & (F.col("t") < F.col("start"))
    held = _joined(events.select(*by, "t"), wanted, by, inside).groupBy("at", "part", "tried").count().toArrow()
    enough: dict[tuple[int, int], int] = {}
    for key, part, begin, count in zip(*(held.column(i).to_pylist() for i in range(4)), strict=True):
        if count >= halo.rows:
            enough[key, part] = max(begin, enough.get((key, part), EARLIEST))
    return [
        [min(time, enough.get((each.key, i), EARLIEST)) for i, time in enumerate(own)]
        for each, own in zip(large, since, strict=True)
    ]


def _pieces(
    events: DataFrame, by: list[str], keys: pa.Table, large: list[Large], starts: list[np.ndarray],
    since: list[list[int]], tasks: int,
) -> CutPieces:  # fmt: skip
    """The pieces of large substreams, from where each begins and sees events: as a small DataFrame, and as arrays."""
    at: list[int] = []
    columns: dict[str, list[int]] = {"since": [], "start": [], "until": []}
    for each, own, seen in zip(large, starts, since, strict=True):
        begin = [EARLIEST, *map(int, own)]
        at += [each.key] * len(begin)
        columns["since"] += [EARLIEST, *seen]
        columns["start"] += begin
        columns["until"] += [*(b - 1 for b in begin[1:]), LATEST]
    keys = keys.take(pa.array(at)).select(by)
    table = _named(events, keys, by, {"piece": np.arange(len(at)), **columns})
    return CutPieces(
        table, keys, np.array(columns["start"]), np.array(columns["since"]), tasks, Grid.of(large, len(at))
    )


def _named(frame: DataFrame, keys: pa.Table, by: list[str], columns: Mapping[str, Any]) -> DataFrame:
    """A small DataFrame of keys, as cut_<name>, and whole numbers."""
    arrays = [keys.column(name) for name in by] + [pa.array(values, pa.int64()) for values in columns.values()]
    fields = [StructField(f"cut_{name}", frame.schema[name].dataType) for name in by]
    schema = StructType(fields + [StructField(name, LongType()) for name in columns])
    return frame.sparkSession.createDataFrame(pa.Table.from_arrays(arrays, names=schema.names), schema)


def _joined(
    rows: DataFrame, found: DataFrame, by: Iterable[str], inside: Column | None = None, how: str = "inner"
) -> DataFrame:
    condition = F.lit(True) if inside is None else inside
    for name in by:
        condition = condition & F.col(name).eqNullSafe(F.col(f"cut_{name}"))
    return rows.join(F.broadcast(found), condition, how)
