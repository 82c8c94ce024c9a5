"""How well windows, samples or other summaries stand in for frames: the measures of both papers.

duration_error, existence_error         Maier et al. 2012, section 5.1
jaccard_distance, earth_movers_distance,
rms_error                               Grossniklaus et al. 2016, section 4

    >>> import frames as fr
    >>> fr.metrics.jaccard_distance([1, 2, 3], [2, 3, 4])
    0.5
    >>> frames = {"frame_id": [0], "start": [1], "end": [3], "rows": [3]}
    >>> fr.metrics.existence_error(frames, {"frame_id": [0], "start": [5], "end": [6], "rows": [2]})
    (1, 1)
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.filling import members, placed
from frames.finding.intake import END_OF_TIME, START_OF_TIME, key_ids
from frames.scans.scan import number
from frames.specs import Threshold
from frames.tables import Key, key_of, pieces_of, united
from frames.theory.exact import satisfies
from kernels.frames import fill as frame_fill
from swag.errors import BadQuery, BadType
from swag.tables.columns import as_table, timed, to_arrow
from swag.tables.expressions.derived import with_derived
from swag.tables.key_columns import apart, joined, key_name
from swag.tables.times.durations import Duration, in_units

__all__ = [
    "bitmap", "duration_error", "earth_movers_distance", "existence_error", "jaccard_distance", "rms_error",
    "tumbling_windows",
]  # fmt: skip


def __dir__() -> list[str]:
    """What is public, and nothing else."""
    return [*__all__, "__doc__"]


def tumbling_windows(
    spec: Threshold, events: Any, width: Duration, heuristic: str = "avg", *, ts: str = "ts", key: Key = None
) -> tuple[pa.Table, pa.Table]:
    """Tumbling windows of `width`, aligned at 0, and those of them that a heuristic takes for an episode of `spec`.

    A window is taken if the min, max or avg of its events satisfies the threshold. Both tables look like frames; a
    window lasts from its first moment to its last, and windows without events are not there. With a key, every key has
    windows of its own.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 6, 7], "x": [0.0, 1.0, 4.0, 6.0]}
    >>> every, taken = fr.metrics.tumbling_windows(fr.Threshold("x", ">", 3), events, 5)
    >>> taken.to_pylist()
    [{'frame_id': 1, 'start': 5, 'end': 9}]
    """
    if heuristic not in ("min", "max", "avg"):
        raise BadQuery(f'heuristic="{heuristic}" is none of min, max, avg.', 'heuristic="avg"')
    if not isinstance(spec, Threshold) or spec.op is None:
        raise BadQuery(f"{spec!r} compares no column with a number.", 'fr.Threshold("x", ">", 1)')
    by = key_of(key, spec)
    table = joined(with_derived(as_table(events), {spec.column: "the threshold compares"}, spec.texts), by)
    clock, instants = timed(table, ts)
    size = in_units(width, clock.unit)
    if size <= 0:
        raise BadQuery(f"a window is {width!r} wide.", "width=60")
    column = number(table, spec.column, "the threshold compares")
    values = column.values.astype(np.float64)
    there = ~np.isnan(values) if column.valid is None else column.valid & ~np.isnan(values)
    keys, ids = key_ids(table, key_name(by), None)
    slots, slot = np.unique(instants[there] // size, return_inverse=True)
    count = 1 if keys is None else max(keys.count, 1)
    windows, which = np.unique(slot * count + (ids[there] if ids.size else 0), return_inverse=True)
    starts = slots[windows // count] * size
    found = {"frame_id": pa.array(np.arange(windows.size))}
    if keys is not None:
        found[str(key_name(by))] = keys.column(windows % count)
    low, high = _ends_of_time(clock.type)
    first, last = np.maximum(starts, low), np.where(starts > high - (size - 1), high, starts + (size - 1))
    found |= {"start": to_arrow(first, None, clock.type), "end": to_arrow(last, None, clock.type)}
    measures = _measured(heuristic, values[there], which, windows.size)
    taken = np.fromiter((satisfies(m, spec.op, spec.c) for m in measures.tolist()), bool, measures.size)
    every = apart(pa.table(found), by)
    return every, every.filter(pa.array(taken))


def _ends_of_time(kind: pa.DataType) -> tuple[int, int]:
    """The first and the last moment that a column of times can hold."""
    whole = kind.to_pandas_dtype() if pa.types.is_integer(kind) else f"int{kind.bit_width}"
    ends = np.iinfo(whole)
    return int(ends.min), min(int(ends.max), END_OF_TIME)


def _measured(heuristic: str, values: np.ndarray, which: np.ndarray, windows: int) -> np.ndarray:
    """The min, max or avg of the values of each window."""
    if heuristic == "avg":
        sums, sizes = np.bincount(which, values, windows), np.bincount(which, minlength=windows)
        return np.asarray(sums / np.maximum(sizes, 1))
    measure = np.full(windows, np.inf if heuristic == "min" else -np.inf)
    (np.minimum if heuristic == "min" else np.maximum).at(measure, which, values)
    return measure


def duration_error(frames: Any, windows: Any, events: Any, *, ts: str = "ts", key: Key = None) -> int:
    """How many events are in a frame but in no window, or in a window but in no frame; with a key, of their own key.

    >>> import frames as fr
    >>> frames = {"frame_id": [0], "start": [1], "end": [3], "rows": [3]}
    >>> windows = {"frame_id": [0], "start": [0], "end": [1], "rows": [2]}
    >>> fr.metrics.duration_error(frames, windows, {"ts": [0, 1, 2, 3, 4]})
    3
    """
    table, by = as_table(events), key_of(key)
    _, instants = timed(table, ts)
    inside = []
    for intervals in (frames, windows):
        mask = np.zeros(instants.size, bool)
        mask[members(intervals, table, ts, by)[0]] = True
        inside.append(mask)
    return int(np.count_nonzero(inside[0] != inside[1]))


def existence_error(frames: Any, windows: Any, *, key: Key = None) -> tuple[int, int]:
    """(missed frames, false windows): frames that no window overlaps, windows that no frame overlaps.

    With a key, those of one key meet; the numbers are of all keys together.

    >>> import frames as fr
    >>> frames = {"frame_id": [0], "start": [1], "end": [3], "rows": [3]}
    >>> windows = {"frame_id": [0, 1], "start": [3, 5], "end": [4, 6], "rows": [1, 1]}
    >>> fr.metrics.existence_error(frames, windows)
    (0, 1)
    """
    by = key_of(key)
    ours, theirs = joined(united(frames), by), joined(united(windows), by)
    keys, our_ids = key_ids(ours, key_name(by), None)
    keys, their_ids = key_ids(theirs, key_name(by), keys)
    clock, a = pieces_of(ours, None)
    _, b = pieces_of(theirs, clock)
    count = 1 if keys is None else max(keys.count, 1)
    one, other = ((p.starts, p.ends, i if i.size else np.zeros(p.starts.size, np.int64))
                  for p, i in ((a, our_ids), (b, their_ids)))  # fmt: skip
    return _alone(one, other, count), _alone(other, one, count)


def _alone(ours: tuple[np.ndarray, ...], others: tuple[np.ndarray, ...], keys: int) -> int:
    """Intervals that overlap none of the others of their key: all that start by our end have ended before our start."""
    (starts, ends, ids), (other_starts, other_ends, other_ids) = ours, others
    laid = placed(other_ids, keys, other_starts, other_ends)
    first, upto = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    frame_fill.spans(laid.starts, laid.segments, ids, np.full(starts.size, START_OF_TIME), ends, first, upto)
    if not laid.reach.size:
        return int(starts.size)
    return int(np.count_nonzero((upto == first) | (laid.reach[np.maximum(upto, 1) - 1] < starts)))


def jaccard_distance(a: Any, b: Any) -> float:
    """1 - |A ∩ B| / |A ∪ B| of two sets: boolean arrays of one shape, or collections. Two empty sets are equal: 0.

    >>> import frames as fr
    >>> fr.metrics.jaccard_distance([1, 2, 3], [2, 3, 4])
    0.5
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == bool == b.dtype:
        if a.shape != b.shape:
            raise BadQuery(f"the bitmaps are {a.shape} and {b.shape} large.", "render both on one grid")
        both, either = int(np.count_nonzero(a & b)), int(np.count_nonzero(a | b))
    else:
        left, right = _set_of(a), _set_of(b)
        both, either = len(left & right), len(left | right)
    return 1 - both / either if either else 0.0


def earth_movers_distance(a: Any, b: Any) -> float:
    """What must be moved, times how many bins far, to turn one histogram into the other; unnormalised.

    Histograms of unequal mass: what is left over at the end is moved out of the last bin, one step.

    >>> import frames as fr
    >>> fr.metrics.earth_movers_distance([2, 0, 0], [0, 1, 1])
    3.0
    """
    left, right = _numbers(a), _numbers(b)
    if left.shape != right.shape or left.ndim != 1:
        raise BadQuery(f"the histograms have the shapes {left.shape} and {right.shape}.", "the same bins for both")
    return float(np.abs(np.cumsum(left - right)).sum())


def rms_error(a: Any, b: Any) -> float:
    """The root of the mean squared difference of two arrays of one shape.

    >>> import frames as fr
    >>> fr.metrics.rms_error([1, 2], [1, 4])
    1.4142135623730951
    """
    left, right = _numbers(a), _numbers(b)
    if left.shape != right.shape:
        raise BadQuery(f"the arrays have the shapes {left.shape} and {right.shape}.", "the same cells for both")
    return float(np.sqrt(np.mean((left - right) ** 2))) if left.size else 0.0


def _numbers(values: Any) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise BadType(f"{type(values).__name__} is no array of numbers.", "a list or array of numbers") from None


def _set_of(values: Any) -> set[Any]:
    try:
        return set(values.tolist() if isinstance(values, np.ndarray) else values)
    except TypeError:
        raise BadType(f"{type(values).__name__} is no set.", "a bitmap, or values that can be in a set") from None


def bitmap(x: np.ndarray, y: np.ndarray, grid: int, extent: tuple[float, float, float, float]) -> np.ndarray:
    """A scatter plot on a grid of `grid` x `grid` cells: which cells hold a point. extent: x from, to, y from, to.

    >>> import frames as fr, numpy as np
    >>> fr.metrics.bitmap(np.array([0.1, 0.9]), np.array([0.2, 0.8]), 2, (0, 1, 0, 1)).tolist()
    [[True, False], [False, True]]
    """
    x0, x1, y0, y1 = extent
    cells = np.zeros((grid, grid), bool)
    there = np.isfinite(x) & np.isfinite(y)
    i = np.clip(((x[there] - x0) / ((x1 - x0) or 1) * grid).astype(np.int64), 0, grid - 1)
    j = np.clip(((y[there] - y0) / ((y1 - y0) or 1) * grid).astype(np.int64), 0, grid - 1)
    cells[i, j] = True
    return cells
