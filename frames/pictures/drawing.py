"""What a picture of frames is made of: the signal as an envelope, frames as shades or as a band, levels as lines.

      signal    the lowest and the highest event of every column of pixels; nothing is drawn across nulls and silences
      frames    a shade each; those that touch share one, with a line where each begins
      band      of many frames, how much of every column of pixels lies in one: a shade each would be a wall
      levels    a threshold, the edges of cells: lines across

Every function draws on the axes that it is given, and returns what the legend says of it.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from swag.tables.columns import Clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 1200  # of pixels, about: more points per column than this can not be told apart
INSTANT = 1.2  # on the axis: how wide the picture of one instant is
BAND_FROM = 100  # frames that are shaded each for itself; more of them are a band
LEVELS = 40  # lines across; more of them would hide the signal
SILENCE = 10  # times as long as the usual time between events, and a hundredth of the picture: the line is interrupted
BAND = 0.05  # of the height
FRAME, GAP, LINE, EDGE, LEVEL = "#f2a65a", "#d9dde3", "#274060", "#c1121f", "#7a3e9d"


class Signal(NamedTuple):
    """Events in order of time. v: NaN where there is no value. picture: from when to when all of it is, which may show
    other signals beneath this one."""

    t: np.ndarray
    v: np.ndarray
    picture: tuple[int, int]

    @property
    def width(self) -> int:
        """Of a column of pixels, in the unit of ts."""
        return max(self.span // COLUMNS, 1)

    @property
    def span(self) -> int:
        """Of the picture, in the unit of ts."""
        return self.picture[1] - self.picture[0]


class FrameSpans(NamedTuple):
    """The intervals of frames, both ends inside."""

    starts: np.ndarray
    ends: np.ndarray


def draw_signal(ax: "Axes", signal: Signal, clock: Clock, name: str, steps: bool = False) -> list[Any]:
    """The line, or steps, as nothing lies between two words; what stands alone between two interruptions is a dot."""
    t, v, piece = envelope(signal)
    before = np.append(True, piece[1:] != piece[:-1])[: piece.size]
    alone = before & np.append(piece[1:] != piece[:-1], True)[: piece.size]
    breaks = np.flatnonzero(before)[1:]
    x = np.insert(positions(t, clock), breaks, np.nan)
    (line,) = ax.plot(x, np.insert(v, breaks, np.nan), color=LINE, linewidth=0.7, label=name)
    line.set_drawstyle("steps-post" if steps else "default")
    if alone.any():
        ax.plot(positions(t[alone], clock), v[alone], ".", color=LINE, markersize=3)
    return [line]


def envelope(signal: Signal) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The lowest and highest point of each column of pixels, in order, and the piece of the line that each is on.

    All points if there are few. A piece ends before a null or NaN and before a silence, if that is as wide as a column.
    """
    there = ~np.isnan(signal.v)
    t, v, piece = signal.t[there], signal.v[there], _pieces(signal, there)
    if t.size <= 4 * COLUMNS:
        return t, v, piece
    column = ((t - t[0]) * (COLUMNS / max(int(t[-1]) - int(t[0]), 1))).astype(np.int64)
    order = np.lexsort((v, column, piece))
    ends = np.flatnonzero((np.diff(column[order], append=-1) != 0) | (np.diff(piece[order], append=-1) != 0))
    starts = np.concatenate([[0], ends[:-1] + 1])
    chosen = np.sort(np.unique(np.concatenate([order[starts], order[ends]])))
    return t[chosen], v[chosen], piece[chosen]


def _pieces(signal: Signal, there: np.ndarray) -> np.ndarray:
    """Numbers the pieces of the line that the events with a value are on."""
    t = signal.t[there]
    steps = np.diff(t)
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0
    missing = np.diff(np.cumsum(~there)[there]) > 0
    if t.size > 4 * COLUMNS:
        missing &= steps >= signal.width
    silent = (steps > SILENCE * usual) & (steps * 100.0 > signal.span)
    return np.concatenate([[0], np.cumsum(missing | silent)])[: t.size]


def draw_frames(ax: "Axes", spans: FrameSpans, signal: Signal, clock: Clock) -> list[Any]:
    """Shades, with lines where frames that touch begin; of many frames, a band at the bottom."""
    if spans.starts.size > BAND_FROM:
        return _band(ax, spans, signal, clock)
    return _shades(ax, spans, signal, clock, FRAME, "frame")


def draw_gaps(ax: "Axes", spans: FrameSpans, signal: Signal, clock: Clock) -> list[Any]:
    """What a partition has between frames."""
    return [] if spans.starts.size > BAND_FROM else _shades(ax, spans, signal, clock, GAP, "gap")


def _shades(ax: "Axes", spans: FrameSpans, signal: Signal, clock: Clock, colour: str, name: str) -> list[Any]:
    """FrameSpans, merged where they touch on the screen, drawn as one collection; narrow ones two columns wide."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    if not spans.starts.size:
        return []
    order = np.argsort(spans.starts, kind="stable")
    column, near = _distances(signal, clock)
    lo = positions(spans.starts[order], clock)
    reach = np.maximum.accumulate(np.maximum(positions(spans.ends[order], clock), lo + 2 * column))
    first = np.append(True, lo[1:] > reach[:-1] + near)
    boxes = _boxes(lo[first], reach[np.append(first[1:], True)], 1.0)
    _add(ax, PolyCollection(boxes, facecolors=colour, edgecolors="none", alpha=0.55, zorder=0))
    apart = np.append(False, np.diff(lo) >= 4 * column)  # lines that are closer would hide the shade
    begins = _beginnings(ax, lo[~first & apart]) if colour == FRAME else []
    return [Patch(facecolor=colour, alpha=0.55, label=name), *begins]


def _distances(signal: Signal, clock: Clock) -> tuple[float, float]:
    """On the axis: how wide a column of pixels is, and how near frames are that touch: a column, or a unit of ts."""
    if not signal.span:
        return INSTANT / COLUMNS, INSTANT / COLUMNS
    first, last = positions(np.array(signal.picture), clock)
    return (last - first) / COLUMNS, (last - first) / signal.span * signal.width


def _boxes(left: np.ndarray, right: np.ndarray, height: float) -> list[Any]:
    """From the bottom of the axes up to a part of their height."""
    low, high = np.zeros_like(left), np.full_like(left, height)
    corners = (left, low), (left, high), (right, high), (right, low)
    return list(np.stack([np.stack(pair, 1) for pair in corners], 1))


def _add(ax: "Axes", collection: Any) -> None:
    """What is placed by time along the axes and by their height does not change their limits."""
    collection.set_transform(ax.get_xaxis_transform())
    ax.add_collection(collection, autolim=False)


def _beginnings(ax: "Axes", begins: np.ndarray) -> list[Any]:
    """A line where each of these frames begins, inside a shade that it shares."""
    from matplotlib.collections import LineCollection

    if not begins.size:
        return []
    lines = [[(x, 0.0), (x, 1.0)] for x in begins]
    edges = LineCollection(lines, colors=EDGE, linewidths=0.6, zorder=0.5, label="the next begins")
    _add(ax, edges)
    return [edges]


def _band(ax: "Axes", spans: FrameSpans, signal: Signal, clock: Clock) -> list[Any]:
    """How much of every column of pixels lies in a frame; where all of it does, how many frames begin there."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch

    times = np.concatenate([spans.starts, spans.ends, signal.t[:1], signal.t[-1:]])
    edges = np.linspace(float(times.min()), float(times.max()) + 1, COLUMNS + 1)
    share, name = _covered(spans, edges), "in a frame (darker: more of the time)"
    if share.min() > 0.99:
        share, name = np.histogram(spans.starts, edges)[0].astype(np.float64), "frames (darker: more begin)"
    x, colours = positions(edges, clock), LinearSegmentedColormap.from_list("frames", ["white", FRAME, EDGE])
    shades = colours(share / max(float(share.max()), 1e-9))
    _add(
        ax, PolyCollection(_boxes(x[:-1], x[1:], BAND), facecolors=shades, edgecolors=shades, linewidths=0.5, zorder=3)
    )
    ax.margins(y=3 * BAND)
    return [Patch(facecolor=FRAME, label=name)]


def _covered(spans: FrameSpans, edges: np.ndarray) -> np.ndarray:
    """The share of every column that lies in a frame, from how much of all time up to an edge does.

    A frame of one instant lasts one unit of ts. Frames that overlap count once.
    """
    order = np.argsort(spans.starts, kind="stable")
    reach = np.maximum.accumulate(spans.ends[order].astype(np.float64) + 1)
    begin = spans.starts[order].astype(np.float64)
    begin[1:] = np.maximum(begin[1:], reach[:-1])
    lasted = np.maximum(reach - begin, 0)
    knots = np.stack([begin, begin + lasted], 1).ravel()
    total = np.stack([np.cumsum(lasted) - lasted, np.cumsum(lasted)], 1).ravel()
    return np.diff(np.interp(edges, knots, total)) / np.diff(edges)


def draw_levels(ax: "Axes", name: str, levels: list[float]) -> list[Any]:
    """Lines across, if they are few enough to leave the signal visible."""
    if not 0 < len(levels) <= LEVELS:
        return []
    lines = [ax.axhline(level, color=LEVEL, linewidth=0.8, linestyle="--", label=name, zorder=2) for level in levels]
    return lines[:1]


def set_clock(ax: "Axes", signal: Signal, clock: Clock, ts: str) -> None:
    """Times along the axis as people write them, in the zone of ts."""
    ax.set_xlabel(ts)
    ax.margins(x=0.005)
    if signal.t.size and not signal.span:
        at = positions(signal.t[:1], clock)[0]
        ax.set_xlim(at - INSTANT / 2, at + INSTANT / 2)
    if clock.unit is None:
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    zone = pa.scalar(0, clock.type).as_py().tzinfo if getattr(clock.type, "tz", None) else None
    ax.xaxis_date(zone)
    ticks = AutoDateLocator(tz=zone)
    ax.xaxis.set_major_locator(ticks)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(ticks, tz=zone))
    if zone is not None:
        ax.set_xlabel(f"{ts} ({clock.type.tz})")


def positions(t: np.ndarray, clock: Clock) -> np.ndarray:
    """Where matplotlib puts these times on an axis."""
    if clock.unit is None:
        return t.astype(np.float64)
    from matplotlib.dates import date2num

    whole = t.astype(np.int64)
    return np.asarray(date2num(whole.astype(f"datetime64[{'D' if clock.unit == 'd' else clock.unit}]")), np.float64)
