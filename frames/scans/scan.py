"""A spec at work: the columns it reads, what it remembers of every key, and the kernel that takes the next events.

A scan is asked with `run` for events in order of ts (within each key), as often as one likes; the frames it has found
so far are the first `count` rows of `frames` (kernels/frames/framing.py), and what goes with each lies beside it. Each
kind of frame has its own, listed in kinds.py.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.scans.deadlines import ENDLESS, Deadlines
from frames.specs import Spec
from frames.specs.lengths import below
from kernels.frames import framing
from kernels.frames.framing import (
    COUNT,
    END,
    GAP,
    GAP_SLOT,
    KEY,
    LAST,
    OPEN,
    OVER,
    ROWS,
    SCAN_ROWS,
    SLOT,
    AllowedLengths,
    FoundFrames,
    ScannedEvents,
)
from kernels.operators.numbers import EARLIEST
from swag.arguments import LARGEST
from swag.durable.state import State
from swag.errors import BadType
from swag.tables.columns import Clock, Field, decoded_type, field, is_number, room, valid_rows
from swag.tables.times.durations import in_units

NONE = np.zeros(0, bool)  # "all valid", as kernels take it
Kinds = dict[str, pa.DataType]
Parallel = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]  # a task, and what it is given, one by one


class Share(NamedTuple):
    """What one scan takes of the events: rows first … last, of those the keys with id % parts == part."""

    first: int
    last: int
    part: int = 0
    parts: int = 1


class KeyedRows(NamedTuple):
    """Events as scans see them: when they were, and of which keys; of one key alone, without ids."""

    ts: np.ndarray
    ids: np.ndarray


class Scan:
    """A spec at work on events of known types. The part common to all kinds; each has a scan of its own in scans/.

    Owns what is remembered of every key (`keyed`, a row per key, and what else a kind names in `per_key`), and the
    frames found (`found`, a row per frame, and arrays beside it, which a kind names in `extras`). It is asked to `run`
    over events, to `finish` or `touch` what is open, and for its frames; it grows by itself.

    per_key: names of arrays, or of tuples of them, with an entry per key, and what is there of a key that is new.
    extras: names of the arrays with an entry per frame; reported: those that `columns` needs, if it has any to give.
    ends_late: does the end of the stream make frames certain? looks_ahead: must values be looked at as soon as they
    come, before they are scanned? may_fail: may events be refused half way? changed: names of what else they change
    then. origin: of columns of integers that are read beside floats, what they are counted from. reads: who asks for a
    column.
    rereads: are rows that decided nothing read again, with those that come? over: is nothing more to come? deadlines:
    of kinds whose runs time may end, or having all their rows.
    """

    spec: Spec
    reads = ""

    extras: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    ends_late = False
    looks_ahead = False
    may_fail = False
    changed: tuple[str, ...] = ()
    rereads = over = False
    deadlines: Deadlines | None = None
    skips: np.ndarray | None = None  # of frames, by who counts them itself: see frames/finding/ties.py

    def begin(self, fields: dict[str, Field]) -> None:
        """Events that were looked at ahead are taken: what others are compared with is known from here on."""

    def __init__(self, spec: Spec, schema: pa.Schema, clock: Clock) -> None:
        self.spec, self.lengths = spec, allowed(spec, clock)
        self.kinds: Kinds = dict(zip(schema.names, map(decoded_type, schema.types), strict=True))
        self.per_key: dict[str, Any] = {}
        self.read = number
        self.share = Share(0, 0)
        self.keyed = np.zeros((0, 8), np.int64)
        self.found = FoundFrames(np.empty((SCAN_ROWS, 8), np.int64), np.zeros(1, np.int64))
        self.origin: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many frames are there."""
        return int(self.found.count[0])

    @property
    def frames(self) -> np.ndarray:
        """A row per frame, with the fields of kernels/frames/framing.py."""
        return self.found.frames[: self.count]

    def saved(self) -> dict[str, Any]:
        """Copies, by name, of all that events change before they are known to be such as can be taken."""
        found = FoundFrames(self.frames.copy(), self.found.count.copy())
        of_frames = {name: getattr(self, name)[: self.count].copy() for name in self.extras}
        others = ("keyed", *self.per_key, *self.changed)
        return {"found": found} | of_frames | {name: copy.deepcopy(getattr(self, name)) for name in others}

    @property
    def endless(self) -> np.ndarray:
        """Of each frame, where it should end with the next event of its key: is there none?"""
        return (self.frames[:, OPEN] != 0).astype(np.int64)

    @property
    def kept_rows(self) -> np.ndarray:
        """Of each key: of how many of its last events a frame may still be made, or is not out yet."""
        rows = self.keyed[:, ROWS].copy()
        waits = self.frames[(self.frames[:, OPEN] == 1) & (self.frames[:, GAP] == 0)]
        waits = waits[rows[waits[:, KEY]] == 0]
        rows[waits[:, KEY]] = waits[:, COUNT]
        return rows

    @property
    def bytes(self) -> int:
        """What is kept of keys and of open frames, about."""
        return 2 * self.keyed.nbytes + self.found.frames.nbytes

    def fields(self, table: pa.Table) -> dict[str, Field]:
        """The columns that the spec reads; those that are no numbers, or not what else it takes, are refused."""
        found = {}
        for name in self.kinds:
            found[name] = self.read(table, name, self.reads)
        return found

    def data(self, fields: dict[str, Field], size: int) -> Any:
        """The columns of a batch as the kernel wants them; made once, shared by scans of other keys."""
        raise NotImplementedError

    def try_out(self, fields: dict[str, Field], size: int) -> None:
        """Of kinds that look ahead: raise if values that have just come can not be scanned."""
        self.data(fields, size)

    def ready(self, data: Any, rows: KeyedRows, parts: int, parallel: Parallel) -> Any:
        """Of stored events, what `run` takes: with what must be known of all keys before any share is scanned."""
        return data

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        """Call the kernel."""
        raise NotImplementedError

    def run(self, ts: np.ndarray, ids: np.ndarray, data: Any, share: "Share | None" = None) -> bool:
        """Take events, all or a share of them. False: they are not in order of ts within each key."""
        self.share = share or Share(0, ts.size)
        at, last, part, parts = self.share
        events = ScannedEvents(ts, ids, last, part, parts.bit_length() - 1)
        self.make_room(self.count + (last - at) // 16)  # pages that are not written to cost nothing
        while 0 <= at < last:
            self.make_room(self.count + 2 * SCAN_ROWS)  # an event may end a frame and be one by itself
            at = self.step(events, data, at)
        return at >= 0

    def end_early(self, silence: int = ENDLESS, gaps: bool = False) -> None:
        """Runs end as soon as no event that is still to come can belong to them, not with the next one. See Deadlines.

        To be called where a run that ends so is as one that the next event has ended.
        """
        if silence < ENDLESS or self.lengths.splits:
            self.deadlines = Deadlines(self.lengths, silence, gaps)

    def close(self, keys: np.ndarray) -> None:
        """The runs of these keys are over, and nothing has come that says so."""
        slots = self.keyed[keys, SLOT]
        ended, certain = slots[slots >= 0], keys[slots >= 0]
        self.frames[ended, END], self.frames[ended, COUNT] = self.keyed[certain, LAST], self.keyed[certain, ROWS]
        self.frames[ended, OPEN] = 0
        self.keyed[keys, SLOT], self.keyed[keys, ROWS] = -1, 0

    def finish(self) -> None:
        """The stream is over: what is open ends here."""
        framing.end_open(self.found.frames, self.keyed, OVER if self.lengths.open else 0)

    def touch(self) -> None:
        """Bring frames that are still open up to date."""
        framing.touch_open(self.found.frames, self.count, self.keyed)

    def keep_open(self, gone: np.ndarray) -> np.ndarray:
        """Forget the frames in these slots, which are all that have ended, in order; others come into their places.

        Returns from which slots, and to which, so that who knows more of frames by slot can follow.
        """
        moves = np.empty((2, gone.size), np.int64)
        moves = moves[:, : framing.keep_open(self.found.frames, self.count, self.keyed, gone, moves)]
        self.found.count[0] -= gone.size
        for name in self.extras:
            array = getattr(self, name)
            array[moves[1]] = array[moves[0]]
        return moves

    def add_keys(self, count: int) -> None:
        """Room for so many keys; of new ones nothing is remembered."""
        known = self.keyed.shape[0]
        if count > known:
            self.keyed = extended(self.keyed, max(count, 2 * known), 0)
            self.keyed[known:, LAST] = EARLIEST
            self.keyed[known:, [SLOT, GAP_SLOT]] = -1
            for name, fill in self.per_key.items():
                setattr(self, name, extended(getattr(self, name), self.keyed.shape[0], fill))

    def make_room(self, slots: int) -> None:
        """Room for so many frames."""
        if slots > self.found.frames.shape[0]:
            slots = max(slots, 2 * self.found.frames.shape[0])
        self.found = FoundFrames(extended(self.found.frames, slots, None), self.found.count)
        for name in self.extras:
            setattr(self, name, extended(getattr(self, name), slots, None))

    def beside(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What lies beside these frames and is reported; the last axis is the frame."""
        return {name: np.atleast_2d(getattr(self, name)[rows].T) for name in self.reported}

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        """What is reported of frames beside their interval."""
        return {}

    def memory(self) -> list[np.ndarray]:
        """What is remembered per key, to read from and to write to; the first axis is the key, the first is `keyed`."""
        found = [self.keyed]
        for name in self.per_key:
            array = getattr(self, name)
            found += array if isinstance(array, tuple) else [array]
        return found

    def at_rest(self, memory: list[np.ndarray]) -> np.ndarray:
        """Of which keys is nothing open? They are as if they had never been. memory: of some keys, as `memory` is."""
        found = np.empty(memory[0].shape[0], bool)
        framing.at_rest(memory[0], found)
        return found

    def per_frame(self) -> list[np.ndarray]:
        """What is known per frame, to read from; the first axis is the slot, the first are the frames themselves."""
        return [self.found.frames, *(getattr(self, name) for name in self.extras)]

    def put_frames(self, arrays: list[np.ndarray]) -> None:
        """The open frames are these and no others: arrays as `per_frame` has them."""
        frames, *extras = arrays
        self.make_room(frames.shape[0])
        self.found.frames[: frames.shape[0]], self.found.count[0] = frames, frames.shape[0]
        for name, values in zip(self.extras, extras, strict=True):
            getattr(self, name)[: frames.shape[0]] = values
        which = np.where(frames[:, GAP] == 1, GAP_SLOT, SLOT)
        self.keyed[frames[:, KEY], which] = np.arange(frames.shape[0])
        if self.deadlines is not None:
            self.deadlines.forget()

    def rest(self) -> State:
        """What is remembered of no key and of no frame."""
        return {"origin": dict(self.origin)}, {}

    def go_on(self, rest: State) -> None:
        """What is remembered of no key and of no frame is this."""
        self.origin = dict(rest[0]["origin"])

    def state(self) -> State:
        header, rest = self.rest()
        arrays = {f"keyed{i}": array.copy() for i, array in enumerate(self.memory())}
        arrays |= {f"frames{i}": array[: self.count].copy() for i, array in enumerate(self.per_frame())}
        return header, arrays | rest

    def restore(self, state: State) -> None:
        """Of a scan that has not seen anything yet."""
        header, arrays = state
        self.add_keys(arrays["keyed0"].shape[0])
        for i, array in enumerate(self.memory()):
            array[:] = arrays[f"keyed{i}"]
        self.put_frames([arrays[f"frames{i}"] for i in range(1 + len(self.extras))])
        self.go_on((header, arrays))


def allowed(spec: Spec, clock: Clock) -> AllowedLengths:
    """The lengths of a spec as kernels compare them, in the unit of ts; a duration of none is so in any."""
    least = in_units(spec.min_duration, clock.unit) if spec.min_duration else 0
    most = ENDLESS if spec.max_duration is None else in_units(spec.max_duration, clock.unit) if spec.max_duration else 0
    if most < least:
        raise below(spec, "duration")
    rows = LARGEST if spec.max_rows is None else int(spec.max_rows)
    splits, is_open = most < ENDLESS or rows < LARGEST, spec.extent == "open"
    return AllowedLengths(int(spec.min_rows), rows, np.uint64(least), np.uint64(most), splits, is_open)


def one_by_one(task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """On this thread: of small batches."""
    return [task(item) for item in items]


def extended(array: Any, size: int, fill: Any) -> Any:
    """The array, or each of several, with room for `size` rows."""
    if isinstance(array, tuple):
        return tuple(extended(each, size, fill) for each in array)
    if size <= array.shape[0]:
        return array
    grown = room(size * int(np.prod(array.shape[1:])), array.dtype).reshape(size, *array.shape[1:])
    grown[: array.shape[0]] = array
    if fill is not None:
        grown[array.shape[0] :] = fill
    return grown


def number(table: pa.Table, name: str, asked_by: str) -> Field:
    """A column of numbers; others are refused."""
    column = field(table, name, asked_by)
    if not is_number(column.type):
        hint = f"CAST({name} AS DOUBLE)" if pa.types.is_decimal(column.type) else "cast it to float64 or int64"
        raise BadType(f'{asked_by} "{name}", a column of type {column.type}.', hint)
    return column


def any_fields(table: pa.Table, columns: Iterable[str], asked_by: str) -> dict[str, Field]:
    """Columns of any type: of what is no number, only where it is null."""
    found = {}
    for name in columns:
        kind = decoded_type(table.schema.field(name).type)
        values = is_number(kind)
        found[name] = field(table, name, asked_by) if values else Field(NONE, valid_rows(table, name, asked_by), kind)
    return found


def mask(column: Field) -> np.ndarray:
    """Which rows are valid, as kernels take it."""
    return NONE if column.valid is None else column.valid
