"""A picture of frames: the signal of each key with its frames behind it, and what they are found by as lines."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frames.owning.origin import Origin
from frames.pictures.drawing import FrameSpans, Signal, draw_frames, draw_gaps, draw_levels, draw_signal, set_clock
from frames.specs import Spec
from frames.tables import OURS, pieces_of, united
from swag.arguments import check_name
from swag.errors import BadQuery, BadType, nearest
from swag.query.groupings import By
from swag.tables.columns import Clock, as_table, column, decoded, decoded_type, field, is_number, ranked_field, timed
from swag.tables.expressions.derived import with_derived

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = 6  # keys that are shown beneath each other
WORDS = 20  # values of a column of text that fit beside an axis


def plot(
    frames: Any, events: Any, *, y: str, ts: str = "ts", key: Any = None, ax: Any = None, label: str = ""
) -> "Axes | np.ndarray":
    """Frames behind the column `y` of the events, as matplotlib Axes; of several keys, an array of them.

    key: ("router", "r1") shows one substream, (("router", "port"), ("r1", 80)) one of a key of two columns; "router",
    both columns that frames were found per, or None, shows each key in axes of its own, six of those with most frames.
    What the frames were found by is drawn as lines, if it is a level of `y` (a threshold, the edges of cells); frames
    from fr.detect know it.

    At most a few thousand points are drawn: of the events in one column of pixels, the lowest and the highest, so no
    spike is lost. The line is interrupted where values are null or NaN, and in long silences. Up to 100 frames are
    shaded, at least two columns wide, with a line where one begins that touches the one before; more are a
    band at the bottom, darker where more of the time is in a frame. label: in place of the title.

    >>> import matplotlib
    >>> matplotlib.use("Agg")  # a picture in a file, no window
    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "load": [0.1, 0.5, 0.6, 0.2]}
    >>> fr.plot(fr.detect(fr.Threshold("load", ">", 0.3), events), events, y="load")
    <Axes: ...>
    """
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    check_name(y, "y", 'y="load"')
    check_name(ts, "ts", 'ts="ts"')
    table, whole, origin = as_table(events), united(frames), Origin.of(as_table(frames))
    spec = None if origin is None else origin.found_by()
    table = with_derived(table, {y: "the plot shows"}, {}) if not y.isidentifier() else table
    panels, keys = _panels(whole, table, key, _key_columns(whole, table, origin, {ts, y}), spec, ts, y)
    if ax is not None:
        if not isinstance(ax, Axes):
            raise BadQuery(f"ax={ax!r} is no Axes of matplotlib.", "figure, ax = plt.subplots()")
        if len(panels) > 1:
            name = next(iter(panels[0].key))
            raise BadQuery(f'the frames are of {keys:,} keys ("{name}"); ax shows one.', f'key=("{name}", …)')
        ax.legend(handles=panels[0].draw(ax, label, _picture(panels)), fontsize=8, loc="upper right")
        return ax  # type: ignore[no-any-return]
    rows, height = len(panels), 3.2 if len(panels) == 1 else 0.8 + 1.7 * len(panels)
    figure, grid = plt.subplots(
        rows, sharex=True, sharey=True, squeeze=False, figsize=(11, height), layout="constrained"
    )
    says, picture = dict[str, Any](), _picture(panels)
    for panel, each in zip(panels, grid[:, 0], strict=True):
        for entry in panel.draw(each, label if len(panels) == 1 else "", picture):
            says.setdefault(entry.get_label(), entry)
    above = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 6, "borderaxespad": 0.2}
    grid[0, 0].legend(handles=list(says.values()), frameon=False, fontsize=8, **above)
    for each in grid[:-1, 0]:
        each.set_xlabel("")
    if len(panels) > 1:
        of_all = f"{len(panels)} of {keys:,} keys, those with most frames" if keys > len(panels) else ""
        figure.suptitle(label or of_all, x=0.01, ha="left", fontsize=10)
    return grid[0, 0] if len(panels) == 1 else grid[:, 0]  # type: ignore[no-any-return]


class Panel(NamedTuple):
    """One series and its frames, which is drawn in axes of its own. key: its columns and their values."""

    key: dict[str, Any]
    table: pa.Table
    frames: pa.Table
    spec: Spec | None
    ts: str
    y: str

    def draw(self, ax: "Axes", label: str, picture: tuple[int, int]) -> list[Any]:
        """All of it, and what the legend says of it. picture: from when to when it is."""
        clock, instants = timed(self.table, self.ts)
        values, words = _values(self.table, self.y)
        order = np.argsort(instants, kind="stable")
        signal = Signal(instants[order], values[order], picture)
        spans, gap = _spans(self.frames, clock, signal)
        says = draw_signal(ax, signal, clock, self.y, steps=bool(words))
        for which, drawn in ((gap, draw_gaps), (~gap, draw_frames)):
            says += drawn(ax, FrameSpans(spans.starts[which], spans.ends[which]), signal, clock)
        says += self._levels(ax, signal.v[np.isfinite(signal.v)])
        self._words(ax, words)
        set_clock(ax, signal, clock, self.ts)
        ax.set_title(label or self._title(int((~gap).sum()), instants.size), loc="left", fontsize=10)
        return says

    def _levels(self, ax: "Axes", values: np.ndarray) -> list[Any]:
        if self.spec is None or not values.size:
            return []
        return draw_levels(ax, *self.spec.levels(self.y, float(values.min()), float(values.max())))

    def _title(self, frames: int, events: int) -> str:
        named = ", ".join(f"{name} {value}" for name, value in self.key.items())
        return f"{named}: " * bool(named) + f"{_counted(frames, 'frame')} over {_counted(events, 'event')}"

    def _words(self, ax: "Axes", words: list[str]) -> None:
        """Along the axes; words: what the numbers from 0 on stand for, where y is a column of text."""
        ax.set_ylabel(self.y)
        if words:
            ax.set_yticks(range(len(words)), words)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)


def _picture(panels: list[Panel]) -> tuple[int, int]:
    """From the first event of all panels to the last, in the unit of ts."""
    times = np.concatenate([timed(panel.table, panel.ts)[1] for panel in panels])
    return (int(times.min()), int(times.max())) if times.size else (0, 0)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


def _key_columns(frames: pa.Table, events: pa.Table, origin: Origin | None, others: set[str]) -> By:
    """What frames were found per, as they say; else the columns that they have in common with the events."""
    if origin is not None and set(origin.by) <= set(events.column_names):
        return origin.by
    return tuple(n for n in frames.column_names if n in events.column_names and n not in {*OURS, *others})


def _panels(
    frames: pa.Table, events: pa.Table, key: Any, by: By, spec: Spec | None, ts: str, y: str
) -> tuple[list[Panel], int]:
    """The series to show, and how many there are."""
    if isinstance(key, str):
        by, key = (key,), None
    if len(by) > 1 and isinstance(key, tuple | list) and tuple(key) == by:
        key = None
    if key is None and not by:
        return [Panel({}, events, frames, spec, ts, y)], 1
    if key is not None:
        chosen, count = [_one_key(key)], 1
    else:
        chosen, count = _with_most_frames(frames, events, by)
    shown = [Panel(each, _only(events, each, "key is"), _only(frames, each, "frames are found per"), spec, ts, y)
             for each in chosen]  # fmt: skip
    if key is not None and not shown[0].table.num_rows:
        raise _unknown_key(events, chosen[0])
    return shown or [Panel({}, events, frames, spec, ts, y)], count


def _unknown_key(events: pa.Table, key: dict[str, Any]) -> BadQuery:
    """No event has it: the first of its values that no event has, and one that is spelt nearly so."""
    for name, value in key.items():
        values = [str(each) for each in decoded(events[name]).unique().to_pylist()]
        if str(value) not in values:
            close = nearest(str(value), values)
            return BadQuery(f'no event has {value!r} as its "{name}".', close and f'key=("{name}", {close})')
    return BadQuery(f"no event has the key {', '.join(f'{name} {value}' for name, value in key.items())}.")


def _one_key(key: Any) -> dict[str, Any]:
    """Columns and values from what the user wrote."""
    if not isinstance(key, tuple) or len(key) != 2:
        raise BadQuery(f"key={key!r} is not a column and the value to show.", 'key=("router", "r1"), or key="router"')
    names, values = ([each] for each in key) if isinstance(key[0], str) else key
    if not all(isinstance(each, list | tuple) for each in (names, values)) or len(names) != len(values):
        raise BadQuery(
            f"key={key!r} are not columns and a value for each.",
            'key=(("router", "port"), ("r1", 80)), or ("router", "r1")',
        )
    return dict(zip(names, values, strict=True))


def _with_most_frames(frames: pa.Table, events: pa.Table, by: By) -> tuple[list[dict[str, Any]], int]:
    """The keys to show, in order of the events, and how many there are. Of equally many frames, most events win."""
    of_events, of_frames = _counts(events, by, "key is"), _counts(frames, by, "frames are found per")
    keys = list(of_events)
    most = sorted(keys, key=lambda each: (-of_frames.get(each, 0), -of_events[each]))[:PANELS]
    return [dict(zip(by, each, strict=True)) for each in keys if each in set(most)], len(keys)


def _counts(table: pa.Table, by: By, asked_by: str) -> dict[tuple[Any, ...], int]:
    """How many rows there are of every key, in order of appearance."""
    places = [str(i) for i in range(len(by))]  # of the columns: names may be anything
    keys = pa.table([column(table, name, asked_by) for name in by], names=places)
    counted = keys.group_by(places, use_threads=False).aggregate([([], "count_all")])
    values = [counted[place].to_pylist() for place in places]
    return dict(zip(zip(*values, strict=True), counted["count_all"].to_pylist(), strict=True))


def _only(table: pa.Table, key: dict[str, Any], asked_by: str) -> pa.Table:
    """The rows of one substream."""
    for name, value in key.items():
        array = column(table, name, asked_by)
        same = _equal(array, value)
        if same is None:
            raise BadQuery(f'key={key!r}: {value!r} is no value of "{name}", which is {array.type}.')
        table = table.filter(same)
    return table


def _equal(array: pa.ChunkedArray, value: Any) -> pa.ChunkedArray | None:
    """Where it has that value: of the type that Arrow finds for it, or the array's, as it finds none beyond int64."""
    for kind in (None, array.type):
        try:
            return pc.is_nan(array) if value != value else pc.equal(array, pa.scalar(value, kind))
        except (pa.ArrowException, OverflowError):
            pass
    return None


def _spans(frames: pa.Table, clock: Clock, signal: Signal) -> tuple[FrameSpans, np.ndarray]:
    """The intervals of frames, and which are gaps. A frame whose end is not known yet lasts as long as the signal."""
    _, pieces = pieces_of(frames, clock)
    begun = np.asarray(pc.is_valid(frames["start"])) if pieces.starts.size else pieces.there
    last = signal.t[-1] if signal.t.size else 0
    ends = np.where(pieces.there, pieces.ends, np.maximum(last, pieces.starts))
    ends = np.maximum(np.minimum(ends, last), pieces.starts) if pieces.half_open else ends
    kinds = np.zeros(pieces.starts.size, bool)
    if "kind" in frames.column_names:
        kinds = np.asarray(pc.fill_null(pc.equal(frames["kind"], "gap"), False))
    return FrameSpans(pieces.starts[begun], ends[begun]), kinds[begun]


def _values(table: pa.Table, y: str) -> tuple[np.ndarray, list[str]]:
    """The signal, NaN where it is null; of text and truth values, the numbers of words, and these."""
    array, words = column(table, y, "the plot shows"), list[str]()
    kind = decoded_type(array.type)
    if pa.types.is_decimal(kind):
        table, kind = pa.table({y: decoded(array).cast(pa.float64())}), pa.float64()
    if is_number(kind) and not pa.types.is_boolean(kind):
        read = field(table, y, "the plot shows")
    else:
        try:
            read = ranked_field(table, y, "the plot shows")
        except pa.ArrowException:
            raise BadType(f'the plot shows "{y}", a column of type {kind}.', "y= a column of numbers") from None
        words = [str(each) for each in read.words.to_pylist()]
        if len(words) > WORDS:
            raise BadType(f'"{y}", of type {kind}, has {len(words):,} values; a plot shows {WORDS}.', "y= a number")
    values = read.values.astype(np.float64)
    return (values if read.valid is None else np.where(read.valid, values, np.nan)), words
