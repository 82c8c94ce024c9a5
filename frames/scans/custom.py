"""Custom frames at work: the functions of a user's, compiled and checked, and the frames of each key that are open."""

import threading
from typing import Any

import numpy as np
import pyarrow as pa
from numba import typeof

from frames.scans.scan import Kinds, Scan, extended
from frames.specs import Custom
from kernels.compile.made import made
from kernels.compile.user_functions import checked, jitted, returned, shape_of
from kernels.frames import custom as frame_custom
from kernels.frames.custom import Functions, OpenFrames
from kernels.frames.framing import SCAN_ROWS, ScannedEvents
from swag.durable.state import State
from swag.errors import BadEvents, BadFunction, BadQuery, SwagError
from swag.query.try_out import WITHOUT_JIT, essence
from swag.query.user_defined import dtype_of
from swag.tables.columns import Clock, Field, is_discrete

RULE = "open, update and close of (event, state), of numbers, tuples of numbers, math and NumPy"
_compiled: dict[tuple[Any, ...], Any] = {}
_lock = threading.Lock()  # scans of several parts of the keys ask at the same time


class CustomScan(Scan):
    """Remembers of a key its state, of all its events (`of_keys`), and the frames that are open.

    One at a time: a run in `keyed`, and its state (`of_frames`). Any number: places in a pool (`pool`), of which a key
    has the first (`head`).
    """

    spec: Custom
    reads = "Custom reads"
    ends_late = True

    def __init__(self, spec: Custom, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        self.op = operator(spec, self.kinds)
        self.initial = _typed(spec.state)
        self.rule = (tuple(self.lengths[:4]), self.initial)
        self.of_keys, self.of_frames = _room(self.initial), _room(self.initial)
        self.head = np.zeros(0, np.int64)
        nothing = np.zeros(0, np.int64)
        self.pool = OpenFrames(self.head, nothing, nothing, nothing, _room(self.initial), np.array([-1, 0]))
        several = {"of_keys": 0, "head": -1}
        self.per_key = several if spec.overlap else {"of_keys": 0, "of_frames": 0}
        self.may_fail, self.changed = True, ("pool",)

    def fields(self, table: pa.Table) -> dict[str, Field]:
        found = super().fields(table)
        for name, read in found.items():
            if read.valid is not None and read.values.dtype == np.int64:
                row = int(np.argmin(read.valid))
                raise BadEvents(
                    f'Custom reads "{name}", whose row {row} is null, and integers have no NaN.',
                    f'{{"x": "CAST({name} AS DOUBLE)"}}',
                )
        return found

    def data(self, fields: dict[str, Field], size: int) -> tuple[np.ndarray, ...]:
        """The columns that an event has, in order; NaN where they are null."""
        read = (fields[column] for column in self.spec.fields.values())
        return tuple(f.values if f.valid is None else np.where(f.valid, f.values, np.nan) for f in read)

    def add_keys(self, count: int) -> None:
        known = self.keyed.shape[0]
        super().add_keys(count)
        for states in (self.of_keys, *(() if self.spec.overlap else (self.of_frames,))):
            _fill(states, self.initial, known)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        kernel: Any = frame_custom.many_at_once if self.spec.overlap else frame_custom.one_at_a_time
        if self.spec.overlap:
            self._make_places()
        memory = self.keyed, self.pool if self.spec.overlap else self.of_frames, self.of_keys
        try:
            return int(kernel(self.op, data, self.rule, events, memory, self.found, first))
        except SwagError:
            raise
        except Exception as why:
            said = f"{type(why).__name__}: {why}".rstrip(": .")
            raise BadFunction(f"a function of {self.spec} raised {said}.", "functions for any event and state") from why

    def _make_places(self) -> None:
        """Room for a block of frames to open, and for all that are open to come out."""
        used, size = int(self.pool.places[1]), self.pool.start.size
        wanted = size if used + SCAN_ROWS <= size else 2 * (used + SCAN_ROWS)
        following, start, rows, states = (extended(each, wanted, 0) for each in self.pool[1:5])
        places = self.pool.places
        if wanted > size:  # the new ones are free, one behind the other, and before those that were
            following[size:wanted] = np.append(np.arange(size + 1, wanted), places[0])
            places[0] = size
        self.pool = OpenFrames(self.head, following, start, rows, states, places)
        self.make_room(self.count + used + 2 * SCAN_ROWS)

    def finish(self) -> None:
        if self.spec.unfinished:
            used = int(self.pool.places[1]) if self.spec.overlap else self.keyed.shape[0]
            self.make_room(self.count + used + 1)
            if self.spec.overlap:
                frame_custom.finish_each(self.rule[0], self.keyed, OpenFrames(self.head, *self.pool[1:]), self.found)
            else:
                frame_custom.finish_runs(self.rule[0], self.keyed, self.found)
        super().finish()

    def at_rest(self, memory: list[np.ndarray]) -> np.ndarray:
        """A key is as if it had never been once its own state is the one that all begin with, too."""
        found, own = super().at_rest(memory), memory[1:]
        for array, value in zip(own, _parts(self.initial), strict=False):
            found &= (array == value) | ((array != array) & (value != value))
        return found

    def rest(self) -> State:
        """The pool is of all keys together; written as far as places of it are in use."""
        header, arrays = super().rest()
        if self.spec.overlap:
            following, start, rows, states = self.pool[1:5]
            top = int(self._in_use(following).max(initial=-1)) + 1
            arrays |= {
                f"pool{i}": each[:top].copy() for i, each in enumerate([following, start, rows, *_parts(states)])
            }
        return header, arrays

    def _in_use(self, following: np.ndarray) -> np.ndarray:
        """The places of all frames that are open: the first of each key, then the next of each …"""
        at, found = self.head[self.head >= 0], []
        while at.size:
            found.append(at)
            at = following[at]
            at = at[at >= 0]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def go_on(self, rest: State) -> None:
        super().go_on(rest)
        if self.spec.overlap:
            following, start, rows, *states = (rest[1][f"pool{i}"].copy() for i in range(3 + len(_parts(self.initial))))
            used = self._in_use(following)
            free = np.setdiff1d(np.arange(following.size), used)
            following[free] = np.append(free[1:], -1)[: free.size]
            places = np.array([free[0] if free.size else -1, used.size])
            own = tuple(states) if isinstance(self.initial, tuple) else states[0]
            self.pool = OpenFrames(self.head, following, start, rows, own, places)


def operator(spec: Custom, kinds: Kinds) -> Any:
    """The functions of a spec as kernels take them, made once per process and set of functions."""
    columns = tuple(np.int64 if is_discrete(kinds[column]) else np.float64 for column in spec.fields.values())
    functions = spec.fingerprint or (spec.open, spec.update, spec.close)
    key = functions, tuple(spec.fields), columns, _dtypes(spec.state)
    with _lock:
        if key not in _compiled:
            _compiled[key] = frame_custom.define(f"Custom{len(_compiled)}", _functions(spec, columns))
        return _compiled[key]


def _functions(spec: Custom, columns: tuple[Any, ...]) -> Functions:
    """Compiled, and tried: what can not be compiled, or gives something else, is refused here."""
    event_type = spec.event_type()
    values = ", ".join(["ts[e]", *(f"columns[{i}][e]" for i in range(len(columns)))])
    event = eval(f"lambda ts, columns, e: Event({values})", {"Event": event_type})  # Numba has no other way to say it
    if not WITHOUT_JIT:
        given = typeof(event_type(np.int64(0), *(dtype(0) for dtype in columns))), typeof(_typed(spec.state))
        _check(spec, "open", given, 0)
        _check(spec, "update", given, shape_of(_typed(spec.state)))
        _check(spec, "close", given, 0)
    return Functions(
        made(event, f"event_{len(columns)}"), checked(spec.open, np.int64, 2),
        checked(spec.update, _dtypes(spec.state), 2), checked(_told(jitted(spec.close)), np.int64, 2),
    )  # fmt: skip


def _check(spec: Custom, name: str, given: tuple[Any, ...], wanted: int | None) -> None:
    """Refuse a function that does not compile for an event and a state, or that gives another shape than is wanted."""
    try:
        found = returned(getattr(spec, name), given)
    except Exception as why:
        raise BadQuery(f"{name} of {spec} does not compile: {essence(why)}", RULE) from None
    if shape_of(found) != wanted:
        like = "a state such as " + repr(spec.state) if name == "update" else "a number, or true or false"
        raise BadQuery(f"{name} of {spec} gives {found}, not {like}.", RULE)


def _told(close: Any) -> Any:
    """What `close` says, if it is one of the things that it can say."""

    def told(event: Any, state: Any) -> Any:
        what = int(close(event, state))
        if not -1 <= what <= 2:
            raise ValueError("close gives 0, 1, 2 or -1")
        return what

    return told


def _dtypes(state: Any) -> Any:
    return tuple(map(dtype_of, state)) if isinstance(state, tuple) else dtype_of(state)


def _typed(state: Any) -> Any:
    return tuple(dtype_of(part)(part) for part in state) if isinstance(state, tuple) else dtype_of(state)(state)


def _room(initial: Any) -> Any:
    """Arrays for states, of none yet."""
    return tuple(map(_room, initial)) if isinstance(initial, tuple) else np.zeros(0, initial.dtype)


def _fill(states: Any, initial: Any, first: int) -> None:
    """New keys begin with this state."""
    for array, value in zip(_parts(states), _parts(initial), strict=True):
        array[first:] = value


def _parts(state: Any) -> tuple[Any, ...]:
    """Of a state, or of the arrays of states."""
    return state if isinstance(state, tuple) else (state,)
