"""Events in: a ts column as int64, keys as dense ids (on all cores), and the promise that no older ones come."""

import itertools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.keys import dense_range as frame_keys
from swag.arguments import is_whole
from swag.durable.state import State, table_from_array, table_to_array
from swag.errors import BadQuery, BadType, OutOfOrder, SwagError
from swag.tables.columns import Clock, column, decoded_type, one_chunk, room
from swag.tables.expressions.derived import with_derived
from swag.tables.key_columns import is_joined, key_name
from swag.tables.keys import KeyTable, is_string
from swag.tables.plain import are_other_decimals, as_known
from swag.tables.times.points import is_point

if TYPE_CHECKING:
    from frames.specs import Spec

SAMPLE = 1 << 16  # rows whose keys are entered one by one, before the rest is looked up in parallel
SHORT = 8  # rows of a run of equal keys, on average, below which events do not lie together
ONE_THREAD_BELOW = 1 << 17  # rows below which threads do not pay
ID = np.int32  # of a key: half the memory to write and to read
NO_KEY, NO_TIME = np.zeros(0, ID), np.zeros(0, np.int64)
START_OF_TIME, END_OF_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def threads() -> int:
    """How many cores to use: $SWAG_THREADS, else all there are; a power of two."""
    wanted = os.environ.get("SWAG_THREADS") or str(os.cpu_count() or 1)
    if not wanted.isdigit() or int(wanted) < 1:
        raise BadQuery(f"SWAG_THREADS={wanted!r} is not a whole number >= 1.", "SWAG_THREADS=2")
    return 1 << (int(wanted).bit_length() - 1)


def in_parallel(task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """task(item) of each, on a thread each; kernels release the GIL."""
    items = list(items)
    if len(items) == 1:
        return [task(items[0])]
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(task, items))


def chunks(size: int) -> list[slice]:
    """As many slices as there are cores, or one if there is little to do."""
    parts = threads() if size >= ONE_THREAD_BELOW else 1
    edges = [size * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def is_empty(table: pa.Table) -> bool:
    """Are there no rows, and columns of which nobody knows what they would be of?"""
    return not table.num_rows and pa.null() in table.schema.types


def with_read(spec: "Spec", table: pa.Table) -> pa.Table:
    """Events with all that a spec reads: columns, and SQL over columns."""
    asked_by = f"{type(spec).__name__} reads"
    for name in spec.columns:
        if name.isidentifier():
            column(table, name, asked_by)
    wanted = {name: asked_by for name in spec.columns if not name.isidentifier()}
    table = _with_computed(table, wanted, spec.texts) if wanted else table
    for name in wanted:
        column(table, name, asked_by)
    return table


def _with_computed(table: pa.Table, wanted: dict[str, str], texts: Any) -> pa.Table:
    """SQL over columns, on all cores. What can not be computed of a row is said of all rows, by its number in them."""
    parts = chunks(table.num_rows)
    if len(parts) > 1:
        try:
            found = in_parallel(lambda s: with_derived(table[s], wanted, texts), parts)
            if all(each.schema == found[0].schema for each in found):
                return pa.concat_tables(found)
        except SwagError:
            pass
    return with_derived(table, wanted, texts)


def key_ids(table: pa.Table, key: str | None, known: KeyTable | None) -> tuple[KeyTable | None, np.ndarray]:
    """The id of every row's key (empty without a key), in order of first appearance."""
    if key is None:
        return None, NO_KEY
    array = one_chunk(column(table, key, "key is"))
    keys = known or KeyTable(array.type, key)
    if len(array) < 2 * SAMPLE or has_nulls(array):  # which is refused, as a whole
        return keys, keys.encode(array, key).astype(ID)
    if changes(array, slice(0, SAMPLE)) is not None:
        found = in_parallel(lambda s: changes(array, s), chunks(len(array)))
        if all(rows is not None for rows in found):
            return keys, by_runs(keys, array, np.concatenate([[0], *found]), key)
    if are_many(array[:SAMPLE], key):
        return keys, keys.encode(array, key).astype(ID)
    keys.encode(array[:SAMPLE], key)
    ids = room(len(array), ID)
    find = finder(keys, array, key)
    missing = in_parallel(lambda s: find(array[s.start : s.stop], ids[s]), chunks(len(array)))
    if min(missing) < 0:  # keys that the sample lacks
        rows = np.flatnonzero(ids < 0)
        ids[rows] = keys.encode(array.take(pa.array(rows)), key)
    return keys, ids


def check_key_type(table: pa.Table, by: tuple[str, ...], known: KeyTable | None) -> None:
    """Refuse key columns of other types than keys have had so far, before any of them is numbered."""
    if known is None or table.num_rows == 0:
        return
    found = table.column(key_name(by)).flatten() if is_joined(table, by) else [table.column(name) for name in by]
    had = known.type if len(by) > 1 else [pa.field(by[0], known.type)]
    for name, came, before in zip(by, found, had, strict=True):
        kind = decoded_type(came.type)
        if are_other_decimals(kind, before.type):
            as_known(came, before.type, f'key column "{name}"')
        elif kind != before.type and not (is_string(kind) and is_string(before.type)):
            raise BadType(
                f'key column "{name}" is {kind}, but keys have been {before.type} so far.', f"cast it to {before.type}"
            )


def has_nulls(keys: pa.Array) -> bool:
    """Is any key null, or any column of one that has several?"""
    return any(each.null_count for each in (keys.flatten() if pa.types.is_struct(keys.type) else [keys]))


def are_many(sample: pa.Array, key: str) -> bool:
    """Are most rows of a sample of different keys? Then it lacks most of them, and most rows would be looked up in
    vain: 2M rows of 300,000 keys took 225 ms, and take 64 ms entered one by one."""
    seen = KeyTable(sample.type)
    seen.encode(sample, key)
    return seen.count > SAMPLE // 2


def changes(array: pa.Array, where: slice) -> np.ndarray | None:
    """The rows of a slice whose key differs from the one before; None if they are many."""
    first, most = max(where.start, 1), (where.stop - where.start) // SHORT
    if pa.types.is_struct(array.type):
        found = [changes(each, where) for each in array.flatten()]
        some = [rows for rows in found if rows is not None]
        together = np.unique(np.concatenate(some)) if len(some) == len(found) else None
        return together if together is not None and together.size <= most else None
    values = array.indices if pa.types.is_dictionary(array.type) else array
    if not pa.types.is_primitive(values.type) or values.type.bit_width % 8:
        rows = np.flatnonzero(pc.not_equal(values[first : where.stop], values[first - 1 : where.stop - 1])) + first
        return rows if rows.size <= most else None
    width, rows = values.type.bit_width // 8, room(most, np.int64)
    bits = np.frombuffer(values.buffers()[1], f"u{width}", len(values), values.offset * width)
    count = frame_keys.changes(bits, first, where.stop, rows)
    return rows[:count] if count >= 0 else None


def by_runs(keys: KeyTable, array: pa.Array, starts: np.ndarray, key: str) -> np.ndarray:
    """Events that lie together key by key: one look at every run of equal keys. A sample would lack most keys."""
    of_runs, ids = keys.encode(array.take(pa.array(starts)), key), room(len(array), ID)
    in_parallel(lambda s: frame_keys.spread(of_runs, starts, s.start, ids[s]), chunks(len(array)))
    return ids


def finder(keys: KeyTable, array: pa.Array, key: str) -> Callable[[pa.Array, np.ndarray], int]:
    """A function that writes the ids of keys to their place, -1 for unknown ones, and returns the smallest."""

    def by_hash(some: pa.Array, ids: np.ndarray) -> int:
        ids[:] = keys.find(some, key)
        return int(ids.min(initial=0))

    plain = pa.types.is_signed_integer(array.type) and array.type == keys.type and not array.null_count
    if not plain or not keys.count:
        return by_hash
    known = np.asarray(keys.column().cast(pa.int64()))
    low, high = int(known.min()), int(known.max())
    if high - low >= frame_keys.WIDEST:
        return by_hash
    table = np.full(high - low + 1, -1, ID)
    table[known - low] = np.arange(known.size)
    return lambda some, ids: int(frame_keys.find_in_range(np.asarray(some.cast(pa.int64())), low, table, ids))


class Punctuations:
    """The latest punctuation of a stream. Owns them as they were given, until it is known what the type of ts is."""

    def __init__(self) -> None:
        self._said: list[Any] = []

    def add(self, t: Any, clock: Clock | None) -> None:
        """Nothing up to t comes any more."""
        if clock is not None:
            self._said = [max(clock.instant(each, "t") for each in (*self._said, t))]
            return
        if not is_point(t):
            raise BadType(f"t={t!r} is no point in time.", "a datetime, or an integer in the unit of ts")
        self._said.append(t)

    def instant(self, clock: Clock | None) -> int | None:
        """In the unit of ts; None: there was none, or the unit is not known."""
        return None if clock is None or not self._said else max(clock.instant(each, "t") for each in self._said)

    def state(self) -> State:
        """The promises as they were said: numbers and texts in the header, datetimes by their unit or as Arrow."""
        header: list[Any] = []
        arrays: dict[str, np.ndarray] = {}
        for t in self._said:
            if is_whole(t) or isinstance(t, str):
                header.append(t if isinstance(t, str) else int(t))
            elif isinstance(t, np.datetime64):
                header.append({"numpy": [int(t.astype(np.int64)), *np.datetime_data(t.dtype)]})
            else:
                header.append({"arrow": f"said{len(arrays)}"})
                scalar = t if isinstance(t, pa.Scalar) else pa.scalar(t)
                arrays[f"said{len(arrays)}"] = table_to_array(pa.table({"t": pa.array([scalar], scalar.type)}))
        return {"said": header}, arrays

    def restore(self, state: State) -> None:
        """Takes back the promises that were said, in the types they were said in."""
        header, arrays = state
        self._said = []
        for t in header["said"]:
            if not isinstance(t, dict):
                self._said.append(t)
            elif "numpy" in t:
                number, unit, count = t["numpy"]
                self._said.append(np.datetime64(number, (unit, count)))
            else:
                self._said.append(table_from_array(arrays[t["arrow"]]).column("t")[0])


def check_promise(clock: Clock, instants: np.ndarray, upto: int | None, what: str, hint: str) -> None:
    """Refuse what was promised not to come."""
    if upto is not None and instants.size and int(instants.min()) <= upto:
        row = int(np.argmax(instants <= upto))
        raise OutOfOrder(
            f"{what} {row} is at {clock.show(int(instants[row]))}, "
            f"but a punctuation promised none up to {clock.show(upto)}.",
            hint,
        )


def after(instants: np.ndarray, upto: int | None) -> np.ndarray:
    """Which are later? All, if nothing was promised."""
    return np.ones(instants.size, bool) if upto is None or upto < START_OF_TIME else instants > min(upto, END_OF_TIME)
