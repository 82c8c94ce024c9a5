"""Frames out, and frames in again: a table of frame_id, [key], start, end, rows, and what goes with them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from frames.specs import Spec
from kernels.frames import framing
from swag.arguments import LARGEST, check_name, key_columns
from swag.errors import BadEvents, BadQuery, BadType
from swag.query.groupings import By
from swag.tables.columns import Clock, as_table, clock_of, column, instants, one_chunk, to_arrow
from swag.tables.keys import KeyTable
from swag.tables.times.durations import Duration, in_units

NOTE = b"swag.frames"  # in the metadata of the schema: how the frames were found (frames/owning/origin.py)
OURS = ("frame_id", "start", "end", "rows", "kind", "value", "final")
Key = str | Sequence[str] | None  # as users name it: a column, several, or none


def key_of(key: Any, spec: Spec | None = None) -> By:
    """The columns of a key, in order, none of which is named as a column of frames is."""
    by = key_columns(key, "key", 'key="router"')
    for name in by:
        check_key(name, spec)
    return by


def check_key(key: str | None, spec: Spec | None = None) -> None:
    if key is not None:
        check_name(key, "key", 'key="router"')
    if key in (*OURS, *(() if spec is None else spec.reported)):
        raise BadQuery(
            f'the key column is named "{key}", as a column of every table of frames is.', "rename the key column"
        )


def frames_table(
    numbers: np.ndarray,
    fields: np.ndarray,
    keys: tuple[str, KeyTable] | None,
    clock: Clock,
    extra: dict[str, pa.Array],
    empty: np.ndarray | None = None,
    endless: np.ndarray | None = None,
) -> pa.Table:
    """One row per frame; fields: their key, begin, end, count. empty: pieces without events, whose interval is null.

    endless: of frames that end with the next event of their key, those whose end is not known; also a piece without
    events may have one.
    """
    valid = None if empty is None else ~empty
    columns: dict[str, Any] = {"frame_id": pa.array(numbers.astype(np.int64, copy=False))}
    if keys is not None:
        columns[keys[0]] = keys[1].column(fields[framing.KEY])
    columns["start"] = to_arrow(fields[framing.BEGIN], valid, clock.type)
    columns["end"] = to_arrow(fields[framing.END], valid if endless is None else ~endless, clock.type)
    columns["rows"] = pa.array(fields[framing.COUNT])
    return pa.table({**columns, **extra})


def before_events(spec: Spec, by: By, fragments: bool) -> pa.Table:
    """No frames, before there is any event: all columns; those whose type only events can tell are of type null."""
    types = {"frame_id": pa.int64()} | dict.fromkeys(by, pa.null())
    types |= {"start": pa.null(), "end": pa.null(), "rows": pa.int64(), **spec.reported_types()}
    return pa.schema(types | ({"final": pa.bool_()} if fragments else {})).empty_table()


def is_untyped(frames: pa.Table) -> bool:
    """Is it what `before_events` gives, of which only the columns are known?"""
    named = frames.num_rows == 0 and "start" in frames.column_names
    return named and pa.types.is_null(frames.schema.field("start").type)


def note_of(frames: pa.Table) -> dict[str, Any]:
    """What the schema says of how the frames were found; nothing, where it was lost or is not ours."""
    try:
        note = json.loads((frames.schema.metadata or {}).get(NOTE, b"{}"))
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def noted_extent(extent: str) -> dict[bytes, bytes]:
    """Metadata that say no more than that."""
    return {NOTE: json.dumps({"spec": {"extent": extent}}).encode()}


def is_half_open(frames: pa.Table) -> bool:
    """Do frames end with the next event of their key, which is not in them?"""
    spec = note_of(frames).get("spec")
    return isinstance(spec, dict) and spec.get("extent") == "open"


@dataclass(frozen=True)
class FramePieces:
    """Frames or fragments as arrays: number, interval, is there one at all, is it the last piece of its frame.

    Both ends are inside: of a half-open one, the last instant before its end. half_open: were they so?
    """

    numbers: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    there: np.ndarray
    final: np.ndarray
    half_open: bool = False


def pieces_of(table: pa.Table, clock: Clock | None) -> tuple[Clock, FramePieces]:
    """Read a table of frames; `clock` is the one its times must go with."""
    if is_untyped(table):
        nothing, none = np.zeros(0, np.int64), np.zeros(0, bool)
        return clock or Clock(pa.int64()), FramePieces(nothing, nothing, nothing, none, none)
    numbers = one_chunk(column(table, "frame_id", "frames are named by"))
    start, end = column(table, "start", "frames start at"), column(table, "end", "frames end at")
    if numbers.null_count or not pa.types.is_integer(numbers.type):
        raise BadEvents("frame_id is null somewhere, or no integer.", "number the frames: 0, 1, 2, …")
    own = clock_of(start, "start")
    for name, array in (("start", start), ("end", end)):
        if array.type != (clock or own).type:
            raise BadType(
                f'"{name}" is {array.type}, but ts is {(clock or own).type}.',
                f"cast the frames to {(clock or own).type}",
            )
    begun, ended = (np.asarray(one_chunk(array).is_valid()) for array in (start, end))
    final = _flags(table) if "final" in table.column_names else np.ones(len(begun), bool)
    starts, ends = (_filled(array, name) for array, name in ((start, "start"), (end, "end")))
    half_open = is_half_open(table)
    if half_open:
        ends = np.where(ended, shifted(ends, -1)[0], np.iinfo(np.int64).max)
    there = begun if half_open else begun & ended
    return own, FramePieces(np.asarray(numbers.cast(pa.int64())), starts, ends, there, final, half_open)


def _flags(table: pa.Table) -> np.ndarray:
    """Which pieces are the last of their frame."""
    final = one_chunk(column(table, "final", "fragments say"))
    if final.null_count or not pa.types.is_boolean(final.type):
        raise BadEvents("final is null somewhere, or neither true nor false.", "pieces as fr.Detector gives them")
    return np.asarray(final)


def _filled(array: pa.ChunkedArray, name: str) -> np.ndarray:
    if not array.null_count:
        return instants(array, name)
    raw = one_chunk(array)
    return np.asarray(raw.cast(pa.int32() if raw.type.bit_width == 32 else pa.int64()).fill_null(0)).astype(np.int64)


def united(table: Any) -> pa.Table:
    """Frames from their fragments (a table without `final` as it is): one row per frame, its pieces put together.

    >>> import frames as fr
    >>> pieces = {"frame_id": [0, 0], "start": [1, 3], "end": [2, 5], "rows": [2, 3], "final": [False, True]}
    >>> fr.united(pieces).to_pylist()
    [{'frame_id': 0, 'start': 1, 'end': 5, 'rows': 5}]
    """
    table = as_table(table)
    if "final" not in table.column_names:
        return table
    for name in ("frame_id", "start", "end", "rows"):
        column(table, name, "fragments have")
    if is_untyped(table):
        return table.drop_columns(["final"])
    clock, pieces = pieces_of(table, None)
    order = np.argsort(pieces.numbers, kind="stable")
    numbers = pieces.numbers[order]
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: numbers.size])
    last = table.drop_columns(["final"]).take(pa.array(order[np.append(first[1:], numbers.size)[: first.size] - 1]))
    new = {"rows": pa.array(_each(np.add, _counts(table)[order], first))}
    for name, furthest in (("start", np.minimum), ("end", np.maximum)):
        new[name] = _furthest(one_chunk(table.column(name)).take(pa.array(order)), furthest, first, clock)
    for name, values in new.items():
        last = last.set_column(last.schema.get_field_index(name), name, values)
    return last.replace_schema_metadata(table.schema.metadata)


def _furthest(edges: pa.Array, furthest: np.ufunc, first: np.ndarray, clock: Clock) -> pa.Array:
    """The earliest or the latest edge among the pieces of each frame. Of half-open ones only the last has an end."""
    there, values = np.asarray(edges.is_valid()), _filled(pa.chunked_array([edges]), "an edge")
    nothing = np.iinfo(np.int64).max if furthest is np.minimum else np.iinfo(np.int64).min
    some = np.logical_or.reduceat(there, first) if first.size else there
    return to_arrow(_each(furthest, np.where(there, values, nothing), first), some, clock.type)


def _each(operation: np.ufunc, values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Of the values from one of the firsts to the next."""
    return operation.reduceat(values, first) if first.size else values


def _counts(table: pa.Table) -> np.ndarray:
    rows = one_chunk(column(table, "rows", "fragments have"))
    if rows.null_count or not pa.types.is_integer(rows.type):
        raise BadEvents("rows is null somewhere, or no integer.", "pieces as fr.Detector gives them")
    return np.asarray(rows).astype(np.int64)


def margins(before: Duration, after: Duration, unit: str | None) -> tuple[int, int]:
    sizes = in_units(before, unit), in_units(after, unit)
    for name, given, size in zip(("before", "after"), (before, after), sizes, strict=True):
        if abs(size) > LARGEST:
            raise BadQuery(f"{name}={given!r} does not fit int64.", f'{name}="2m"')
    return sizes


def widened(pieces: FramePieces, early: int, late: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals from start - early to end + late, cut off at the ends of int64; an empty one is from 1 to 0."""
    starts, below = shifted(pieces.starts, -early)
    ends, above = shifted(pieces.ends, late)
    there = pieces.there & (below <= 0) & (above >= 0)  # an edge that was moved inward, out of all time, leaves nothing
    return np.where(there, starts, 1), np.where(there, ends, 0)


def shifted(instants: np.ndarray, by: int) -> tuple[np.ndarray, np.ndarray]:
    """instants + by, cut off at the ends of int64; and where it was: -1 at the lower, 1 at the upper."""
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    wrapped = (instants.view(np.uint64) + np.uint64(by % 2**64)).view(np.int64)
    beyond = instants > most - by if by >= 0 else instants < least - by
    return np.where(beyond, most if by >= 0 else least, wrapped), np.sign(by) * beyond
