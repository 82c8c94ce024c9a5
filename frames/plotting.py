"""A picture of frames: the signal as an envelope, the frames as shaded spans behind it. Readable at 10^6 points."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frames.finding.intake import timed
from frames.tables import OURS, pieces_of, united
from swag.errors import BadQuery
from swag.tables.columns import Clock, as_table, column, field

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 1200  # of pixels, about: more points per column than this can not be told apart
LINES = COLUMNS // 4  # more can not be told apart either: then none is drawn
FRAME, GAP, LINE, EDGE = "#f2a65a", "#d9dde3", "#274060", "#c1121f"


def plot(
    frames: Any, events: Any, *, y: str, ts: str = "ts", key: Any = None, ax: Any = None, label: str = ""
) -> "Axes":
    """Shade frames over the column `y` of the events. key: ("router", "r1") picks one substream of both; where a key
    has several columns, (("router", "port"), ("r1", 80)).

    At most a few thousand points are drawn: of the events in one column of pixels, the lowest and the highest, so no
    spike is lost. Frames narrower than two columns are drawn that wide; those that touch there share one shade, with a
    line where each begins if they are few enough for that. Null and NaN are left out of the signal.

    >>> import matplotlib
    >>> matplotlib.use("Agg")  # a picture in a file, no window
    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "load": [0.1, 0.5, 0.6, 0.2]}
    >>> fr.plot(fr.detect(fr.Threshold("load", ">", 0.3), events), events, y="load")
    <Axes: ...>
    """
    import matplotlib.pyplot as plt

    table, whole = as_table(events), united(frames)
    if key is not None:
        table, whole = _only(table, key, "key is"), _only(whole, key, "frames are found per")
    elif set(whole.column_names) & set(table.column_names) - {*OURS, ts, y}:
        shared = sorted(set(whole.column_names) & set(table.column_names) - {*OURS, ts, y})
        names = repr(shared[0] if len(shared) == 1 else tuple(shared))
        raise BadQuery(f"the frames are of several keys ({names}); a plot shows one.", f"key=({names}, …)")
    clock, instants = timed(table, ts)
    _, pieces = pieces_of(whole, clock)
    values = field(table, y, "the plot shows")
    there = values.values == values.values
    if values.valid is not None:
        there &= values.valid
    order = np.argsort(instants[there], kind="stable")
    t, v = instants[there][order], values.values[there][order].astype(np.float64)
    if ax is None:
        _, ax = plt.subplots(figsize=(11, 3.2), layout="constrained")
    width = _column_width(t)
    kinds = whole["kind"].to_pylist() if "kind" in whole.column_names else None
    gap = np.array([kind == "gap" for kind in kinds]) if kinds else np.zeros(pieces.starts.size, bool)
    ends = np.minimum(pieces.ends, instants.max()) if pieces.half_open and instants.size else pieces.ends
    for chosen, colour in ((gap & pieces.there, GAP), (~gap & pieces.there, FRAME)):
        _shade(ax, pieces.starts[chosen], ends[chosen], width, colour, clock)
    drawn_t, drawn_v = envelope(t, v)
    ax.plot(_times(drawn_t, clock), drawn_v, color=LINE, linewidth=0.7)
    ax.set_ylabel(y)
    ax.set_xlabel(ts)
    ax.set_title(label or f"{int((~gap).sum()):,} frames over {instants.size:,} events", loc="left", fontsize=10)
    ax.margins(x=0.005)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _only(table: pa.Table, key: Any, asked_by: str) -> pa.Table:
    """The rows of one substream."""
    if not isinstance(key, tuple) or len(key) != 2:
        raise BadQuery(f"key={key!r} is not a column and the value to show.", 'key=("router", "r1")')
    names, values = ([each] for each in key) if isinstance(key[0], str) else key
    if not all(isinstance(each, list | tuple) for each in (names, values)) or len(names) != len(values):
        raise BadQuery(
            f"key={key!r} are not columns and a value for each.",
            'key=(("router", "port"), ("r1", 80)), or ("router", "r1")',
        )
    for name, value in zip(names, values, strict=True):
        array = column(table, name, asked_by)
        try:
            table = table.filter(pc.equal(array, pa.scalar(value)))
        except pa.ArrowException:
            raise BadQuery(f'key={key!r}: {value!r} is no value of "{name}", which is {array.type}.') from None
    return table


def envelope(t: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest point of each column of pixels, in order; all points if there are few."""
    if t.size <= 4 * COLUMNS:
        return t, v
    column = ((t - t[0]) * (COLUMNS / max(int(t[-1] - t[0]), 1))).astype(np.int64)
    order = np.lexsort((v, column))
    ends = np.flatnonzero(np.diff(column[order], append=-1))
    starts = np.concatenate([[0], ends[:-1] + 1])
    chosen = np.sort(np.unique(np.concatenate([order[starts], order[ends]])))
    return t[chosen], v[chosen]


def _column_width(t: np.ndarray) -> int:
    return max(int(t[-1] - t[0]) // COLUMNS, 1) if t.size else 1


def _shade(ax: Any, starts: np.ndarray, ends: np.ndarray, width: int, colour: str, clock: Clock) -> None:
    """Spans, merged where they touch on the screen, drawn as one collection; lines where merged frames begin."""
    from matplotlib.collections import PolyCollection

    if not starts.size:
        return
    order = np.argsort(starts, kind="stable")
    lo, hi = starts[order], np.maximum(ends[order], starts[order] + 2 * width)
    first = np.concatenate([[True], lo[1:] > np.maximum.accumulate(hi)[:-1] + width])
    group = np.cumsum(first) - 1
    left, right = lo[first], np.zeros(int(first.sum()), lo.dtype)
    np.maximum.at(right, group, hi)
    x0, x1 = _numbers(left, clock), _numbers(right, clock)
    corners = np.stack([np.stack([x0, np.zeros_like(x0)], 1), np.stack([x0, np.ones_like(x0)], 1),
                        np.stack([x1, np.ones_like(x1)], 1), np.stack([x1, np.zeros_like(x1)], 1)], 1)  # fmt: skip
    spans = PolyCollection(
        list(corners), facecolors=colour, edgecolors="none", alpha=0.55, transform=ax.get_xaxis_transform(), zorder=0
    )
    ax.add_collection(spans, autolim=False)
    if colour == FRAME:
        _part(ax, _numbers(lo[~first], clock))


def _part(ax: Any, begins: np.ndarray) -> None:
    """A line where each of these frames begins, inside a shade that it shares."""
    from matplotlib.collections import LineCollection

    if not 0 < begins.size <= LINES:
        return
    lines = [[(x, 0.0), (x, 1.0)] for x in begins]
    edges = LineCollection(lines, colors=EDGE, linewidths=0.6, transform=ax.get_xaxis_transform(), zorder=0.5)
    ax.add_collection(edges, autolim=False)


def _times(t: np.ndarray, clock: Clock) -> np.ndarray:
    return t if clock.unit is None else t.astype("datetime64[D]" if clock.unit == "d" else f"datetime64[{clock.unit}]")


def _numbers(t: np.ndarray, clock: Clock) -> np.ndarray:
    """Where matplotlib puts these times on an axis."""
    if clock.unit is None:
        return t.astype(np.float64)
    from matplotlib.dates import date2num

    return np.asarray(date2num(_times(t, clock)), np.float64)
