"""Snapshots: an engine as one file of plain arrays and JSON. Versioned, checksummed, no pickle.

    SWAGSNAP | version | length of the header | header (JSON) | arrays, 8-byte aligned | SHA-256 of all before

The header says what each array is. Structures are saved as they are rather than rebuilt, so answers after loading are
those of before, bit for bit (landmark groups are functions of the rows kept, and made again when asked for).
"""

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from swag.columns import Clock
from swag.engine import Engine
from swag.errors import BadSnapshot, BadType, SwagError
from swag.families import Part
from swag.keys import KeyTable
from swag.lateness import Held
from swag.planner import COMPARED, Group
from swag.query import Query, check_names
from swag.recipes import (
    duration_from_json,
    duration_to_json,
    query_from_json,
    query_to_json,
    refuse_other,
    with_sources,
)
from swag.replacing import reason, replacing, why_not_regular
from swag.saved_ticks import load_emission, save_emission, table_from_bytes, table_to_bytes
from swag.space import Arena, Column, Mask, Space
from swag.store import EVERY_EVENT, MIN, Store
from swag.structures import Dyadic, Landmark, Running, RunningFloats, SortedRuns, Structure

MAGIC, VERSION = b"SWAGSNAP", 2
_HEAD = struct.Struct("<8sIQ")
_DTYPES = {
    "int64": np.int64,
    "float64": np.float64,
    "complex128": np.complex128,
    "uint64": np.uint64,
    "int32": np.int32,
    "uint8": np.uint8,
    "bool": np.bool_,
}
_KINDS: list[type[Structure]] = [Running, RunningFloats, Dyadic, Landmark, SortedRuns, *COMPARED.values()]
_STRUCTURES = {kind.__name__: kind for kind in _KINDS}


class _Writer:
    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def put(self, array: np.ndarray | bytes) -> int:
        self.arrays.append(np.frombuffer(array, np.uint8) if isinstance(array, bytes) else np.ascontiguousarray(array))
        return len(self.arrays) - 1

    def write(self, path: Path, header: dict[str, Any]) -> None:
        header["arrays"] = [{"dtype": a.dtype.name, "shape": list(a.shape)} for a in self.arrays]
        text = json.dumps(header).encode()
        text += b" " * (-(len(text) + _HEAD.size) % 8)
        digest = hashlib.sha256()
        try:
            with replacing(path) as draft:
                for piece in (_HEAD.pack(MAGIC, VERSION, len(text)), text, *map(_padded, self.arrays)):
                    draft.file.write(piece)
                    digest.update(piece)
                draft.file.write(digest.digest())
        except (OSError, ValueError) as why:
            raise BadSnapshot(
                f'"{path}" can not be written: {reason(why)}.',
                "a file in a folder with room, that can be written to",
            ) from None


def _padded(array: np.ndarray) -> bytes:
    data = array.tobytes()
    return data + b"\0" * (-len(data) % 8)


def _content(path: Path) -> bytes:
    """A pipe would be waited for and a device never end, so nothing but a file is read."""
    try:
        found = why_not_regular(path)
        if not found:
            return path.read_bytes()
    except (OSError, ValueError) as why:
        found = reason(why)
    raise BadSnapshot(f'"{path}" can not be read: {found}.', "a file that Engine.save wrote")


class _Reader:
    def __init__(self, path: Path) -> None:
        content = _content(path)
        if len(content) < _HEAD.size + 32 or content[:8] != MAGIC:
            raise BadSnapshot(
                f'"{path}" is not a snapshot of swag: it does not begin with {MAGIC.decode()}.',
                "a file that Engine.save wrote",
            )
        _, version, size = _HEAD.unpack_from(content)
        if version != VERSION:
            raise BadSnapshot(f'"{path}" is a snapshot of version {version}; this swag reads version {VERSION}.')
        body = memoryview(content)[:-32]
        if hashlib.sha256(body).digest() != content[-32:]:
            raise BadSnapshot(
                f'"{path}" is damaged: its checksum does not match its content.', "an older copy, or replay the events"
            )
        try:
            self.header: dict[str, Any] = json.loads(bytes(body[_HEAD.size : _HEAD.size + size]))
            self._read_arrays(body, _HEAD.size + size)
        except (KeyError, ValueError, TypeError) as why:
            raise BadSnapshot(f'"{path}" is damaged: its header can not be understood ({why}).') from None

    def _read_arrays(self, body: memoryview, at: int) -> None:
        self.arrays = []
        for entry in self.header["arrays"]:
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
            count = int(np.prod(shape))
            self.arrays.append(np.frombuffer(body, dtype, count, at).reshape(shape).copy())
            at += count * dtype.itemsize + -(count * dtype.itemsize) % 8


def _path(given: str | Path) -> Path:
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise BadType(f"the path of a snapshot is {given!r}, not text.", 'engine.save("engine.swag")')
    return Path(given)


def save(engine: Engine, path: str | Path) -> None:
    store, plan, writer = engine._store, engine._plan, _Writer()
    spaces = list(store.spaces.values())
    header = {
        "engine": {
            "ts": engine.ts, "key": engine.key, "algorithm": engine.algorithm, "epsilon": engine._filters.epsilon,
        },
        "lateness": duration_to_json(engine.lateness),
        "queries": [query_to_json(query) for query in engine.queries],
        "order": list(plan.queries),
        "advanced": _save_advanced(engine._advanced, writer),
        "lookups": engine._lookups,
        "types": writer.put(_schema(engine).serialize().to_pybytes()),
        "store": {
            "now": store.now, "promised": store.promised, "events": store.events, "tidy": store._next_to_tidy,
            "keep_rows": store.keep_rows, "keep_time": store.keep_time,
            "forgotten": store.forgotten, "ts": writer.put(store.ts.data),
            "latest": writer.put(store.latest), "lost": writer.put(store.lost),
        },
        "keys": None if store.keys is None else {name: writer.put(a) for name, a in store.keys.state().items()},
        "words": {
            name: {part: writer.put(array) for part, array in arrays.items()}
            for name, arrays in store.words.state().items() if name in store.types
        },
        "plan": {
            "nullable": sorted(plan.nullable), "largest": plan.largest, "columns": plan._columns, "since": plan._since,
            "kept_since": plan._kept_since, "complete": plan._complete, "unread": sorted(plan._unread),
        },
        "spaces": [_save_space(space, writer) for space in spaces],
        "groups": [_save_group(group, spaces, writer) for group in plan.groups.values()],
        "held": None if engine._held is None else _save_held(engine._held, writer),
        "filters": [
            {"over": over, "arrays": {name: writer.put(array) for name, array in state.items()}}
            for over, state in engine._filters.state()
        ],
        "emission": save_emission(engine._emission, writer.put),
    }  # fmt: skip
    writer.write(_path(path), header)


def _save_advanced(instant: Any, writer: _Writer) -> Any:
    """A time of any kind. A bare number is written as version 0.1 did."""
    if instant is None or isinstance(instant, int):
        return instant
    return {"table": writer.put(table_to_bytes(pa.table({"ts": [instant]})))}


def _load_advanced(saved: Any, arrays: list[np.ndarray]) -> Any:
    return table_from_bytes(arrays[saved["table"]]).column(0)[0].as_py() if isinstance(saved, dict) else saved


def _schema(engine: Engine) -> pa.Schema:
    """Arrow types, as an Arrow schema: of ts, of the key, and of every column."""
    store = engine._store
    fields = [] if store.clock is None else [pa.field("ts", store.clock.type)]
    fields += [] if store.keys is None else [pa.field("key", store.keys.type)]
    return pa.schema(fields + [pa.field(f"column {name}", kind) for name, kind in store.types.items()])


def _save_space(space: Space, writer: _Writer) -> dict[str, Any]:
    arena = space.arena
    return {
        "where": space.mask.where, "required": sorted(space.mask.required), "since": space.mask.since,
        "rings": writer.put(arena.rings),
        "slots": arena._slots, "used": arena._used,
        "free": {str(size): writer.put(offsets) for size, offsets in arena._free.items()},
        "raw": {name: writer.put(column.data) for name, column in space.raw.items()},
        "rank": None if space.rank is None else writer.put(space.rank.data),
    }  # fmt: skip


def _save_group(group: Group, spaces: list[Space], writer: _Writer) -> dict[str, Any]:
    structure = group.structure
    return {
        "space": spaces.index(group.space), "family": group.part.family, "columns": list(group.part.columns),
        "queries": group.queries, "structure": type(structure).__name__, "reason": group.reason,
        "counted": [group.updates, group.lookups, structure.updates, structure.lookups],
        "uncertain": getattr(structure, "uncertain", 0), "stands_in": group.stands_in,
        "levels": sorted(group.levels), "log_width": group.log_width, "regret": group.regret,
        "held": [writer.put(column.data) for column in structure.held],
        "saved": {name: writer.put(array) for name, array in structure.saved().items()},
    }  # fmt: skip


def _save_held(held: Held, writer: _Writer) -> dict[str, Any]:
    table = None
    if held.table is not None:
        table = writer.put(table_to_bytes(held.table))
    return {
        "table": table,
        "ts": writer.put(held.ts),
        "ids": writer.put(held.ids),
        "late": held.late,
        "now": held.now,
        "lateness": held.lateness,
    }


def load(path: str | Path, queries: list[Query], inside: bool = False) -> Engine:
    """inside: the file is a part of another, and queries are those that were given for that one."""
    path = _path(path)
    if not inside:
        check_names(queries)
    reader = _Reader(path)
    try:
        return _engine(path, reader.header, reader.arrays, queries, inside)
    except SwagError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, MemoryError) as why:
        raise BadSnapshot(
            f'"{path}" is damaged: its parts do not go together ({type(why).__name__}: {why}).',
            "an older copy, or replay the events",
        ) from why


def _engine(path: Path, header: dict[str, Any], arrays: list[np.ndarray], queries: list[Query], inside: bool) -> Engine:
    engine = Engine(**header["engine"], lateness=duration_from_json(header["lateness"]))
    given = with_sources(queries)
    for entry in header["queries"]:
        if entry["label"] in given and not inside:
            refuse_other(entry, given[entry["label"]], path)
        query = query_from_json(entry, given, path)
        engine._queries[query.label] = query
    plain = [query for query in engine.queries if query.every is None and query.source is None]
    simple = {each.label: each for each in engine._shared.add(plain)}
    engine._plan.queries = {label: simple[label] for label in header.get("order", simple)}
    engine._advanced = _load_advanced(header["advanced"], arrays)
    engine._lookups = header["lookups"]
    types = {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(arrays[header["types"]].tobytes()))}
    _load_store(engine, header, arrays, types)
    plan, saved = engine._plan, header["plan"]
    plan.nullable, plan.largest, plan._columns = set(saved["nullable"]), saved["largest"], saved["columns"]
    plan._kept_since, plan._since, plan._complete = saved["kept_since"], saved["since"], saved.get("complete", {})
    plan._unread = set(saved.get("unread", ()))
    for entry in header["groups"]:
        _load_group(engine, entry, arrays)
    plan._settled = False  # what had no structure yet gets one as soon as its columns are known
    _load_filters(engine, header["filters"], arrays)
    if header["held"] is not None:
        engine._held = _load_held(header["held"], arrays, engine._store)
    if header.get("emission"):
        load_emission(engine, header["emission"], arrays, given, path)
    return engine


def _load_store(
    engine: Engine, header: dict[str, Any], arrays: list[np.ndarray], types: dict[str, pa.DataType]
) -> None:
    store, saved = engine._store, header["store"]
    store.now, store.promised, store.events = saved["now"], saved["promised"], saved["events"]
    store.keep_rows, store.keep_time, store._next_to_tidy = saved["keep_rows"], saved["keep_time"], saved["tidy"]
    store.latest, store.lost = arrays[saved["latest"]], arrays[saved["lost"]]
    store.forgotten = saved.get("forgotten", MIN)
    store.seen = np.zeros(store.latest.size, np.int64)
    store.clock = Clock(types["ts"]) if "ts" in types else None
    if header["keys"] is not None:
        store.keys = KeyTable.restore(types["key"], {name: arrays[i] for name, i in header["keys"].items()})
    store.types = {name.removeprefix("column "): kind for name, kind in types.items() if name.startswith("column ")}
    words = header.get("words", {})
    store.words.restore(
        store.types, {name: {part: arrays[i] for part, i in parts.items()} for name, parts in words.items()}
    )
    store.ts.data = arrays[saved["ts"]]
    for entry in header["spaces"]:
        mask = Mask(entry["where"], frozenset(entry["required"]), entry["since"])
        space = store.spaces[mask] if mask == EVERY_EVENT else store.space(mask)
        _load_arena(space.arena, entry, arrays)
        if space.rank is not None:
            space.rank.data = arrays[entry["rank"]]
        for name, index in entry["raw"].items():
            space.raw[name] = Column(arrays[index])
            space.arena.columns.append(space.raw[name])


def _load_arena(arena: Arena, entry: dict[str, Any], arrays: list[np.ndarray]) -> None:
    arena.rings, arena._slots, arena._used = arrays[entry["rings"]], entry["slots"], entry["used"]
    arena._free = {int(size): arrays[index] for size, index in entry["free"].items()}


def _load_group(engine: Engine, entry: dict[str, Any], arrays: list[np.ndarray]) -> None:
    plan = engine._plan
    space = list(engine._store.spaces.values())[entry["space"]]
    user = plan.queries[entry["queries"][0]].aggregate.user if entry["family"] == "user" else None
    part = Part(entry["family"], tuple(entry["columns"]), user)
    structure = _STRUCTURES[entry["structure"]](space, part)
    if len(structure.held) != len(entry["held"]):
        raise BadSnapshot(f"partials of {part} were saved as {len(entry['held'])} arrays, not {len(structure.held)}.")
    for column, index in zip(structure.held, entry["held"], strict=True):
        column.data = arrays[index]
    structure.restored({name: arrays[index] for name, index in entry["saved"].items()})
    if isinstance(structure, tuple(COMPARED.values())):
        structure.rebuild(engine._store.key_count)
    group = Group(space, part, structure, entry["reason"], entry["queries"])
    group.updates, group.lookups, structure.updates, structure.lookups = entry["counted"]
    if isinstance(structure, RunningFloats):
        structure.uncertain = entry["uncertain"]
    group.stands_in = entry.get("stands_in", False)
    group.levels, group.log_width, group.regret = set(entry["levels"]), entry["log_width"], entry["regret"]
    plan.groups[space.mask, part] = group


def _load_filters(engine: Engine, saved: list[dict[str, Any]], arrays: list[np.ndarray]) -> None:
    """Files of before named an index by a position that may be another's: theirs are made anew from the rows kept."""
    named = (each for each in saved if "over" in each)
    engine._filters.restore(
        (each["over"], {name: arrays[index] for name, index in each["arrays"].items()}) for each in named
    )


def _load_held(entry: dict[str, Any], arrays: list[np.ndarray], store: Store) -> Held:
    held = Held(entry["lateness"])
    if "now" in entry:
        held.now = entry["now"]
    else:  # Version 0.1 said only what the latest time was, and answered as of that.
        held.now, store.now = store.now, max(MIN, store.now - held.lateness)
    held.ts, held.ids, held.late = arrays[entry["ts"]], arrays[entry["ids"]], entry["late"]
    if entry["table"] is not None:
        held.table = table_from_bytes(arrays[entry["table"]])
    return held
