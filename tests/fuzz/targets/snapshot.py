"""Snapshots that were changed: refused as damaged, or an engine that answers as before; no other error, no hanging.

The checksum finds nearly all damage, so others are given a right one: headers with values that are missing, of another
type or too large, as a foreign program or a fault of our own could write them. Such a file may be an engine too, if
another one; so only that it can be loaded, or is refused, is looked at.
"""

from __future__ import annotations

import copy
import hashlib
import json
import struct
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import swag as sw
from tests.fuzz.failure import place_of
from tests.fuzz.forked import in_a_fork
from tests.fuzz.target import Target, calls, plain, wrong

HEAD = struct.Struct("<8sIQ")
ODD = [None, True, False, -1, 0, 1, 2**31, 2**63 - 1, 10**30, 1.5, 1e308, "", "x", [], {}, [1], [[]], {"a": 1}, "int64"]
KINDS = ("plain", "keyed", "ticks", "held", "empty")
BYTES = st.one_of(
    st.tuples(st.just("flip"), st.integers(0, 10**6), st.integers(1, 255)),
    st.tuples(st.just("cut"), st.integers(0, 10**6)),
    st.tuples(st.just("splice"), st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(KINDS)),
    st.tuples(st.just("put in"), st.integers(0, 10**6), st.binary(min_size=1, max_size=9)),
)
PATHS = st.lists(st.integers(0, 30), min_size=1, max_size=5)
HEADER = st.one_of(
    st.tuples(st.just("leave out"), PATHS),
    st.tuples(st.just("set"), PATHS, st.sampled_from(ODD)),
    st.tuples(st.just("swap"), PATHS, PATHS),
)
CASES = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "bytes": st.lists(BYTES, max_size=3),
        "header": st.lists(HEADER, max_size=2),
    }
)

# --- Snapshots to change ------------------------------------------------------------------------------------


@cache
def saved(kind: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made(kind).save(Path(folder) / "snapshot")
        sw.Engine.load(Path(folder) / "snapshot")  # compiles what a load needs, for all forks of this process
        return (Path(folder) / "snapshot").read_bytes()


def made(kind: str) -> sw.Engine:
    engine = sw.Engine(key=None if kind in ("plain", "held") else "k", lateness=5 if kind == "held" else None)
    aggregates = [sw.count(), sw.sum("x"), sw.sum("i"), sw.max("x"), sw.std("x"), sw.median("i"), sw.last("s")]
    engine.register([sw.Query(each, window) for each in aggregates for window in (sw.Rows(4), sw.Range(9))])
    engine.register(sw.Query(sw.sum("i"), sw.Range(9), "some", where="x > 2"))
    if kind in ("keyed", "ticks"):
        conditions = [
            (sw.count(), (">", 1)),
            (sw.sum("i"), (">=", 3)),
            (sw.max("x"), (">", 2.0)),
            (sw.min("x"), ("<", 2)),
        ]
        engine.register([sw.Query(each, sw.Range(9), having=having) for each, having in conditions])
    if kind == "ticks":
        engine.register(sw.Query(sw.count(), sw.Range(9), "often", every=sw.Every(3)))
        chosen = sw.Query(sw.sum("i"), sw.Rows(9), "chosen", every=sw.Every(time=4), source=sw.Events("i > 1"))
        engine.register([chosen, sw.Query(sw.max("often"), sw.Rows(2), "nested", source=engine.queries[-1])])
    if kind != "empty":
        ts = np.arange(20)
        table = {"ts": ts, "k": [f"key {i % 3}" for i in ts], "x": ts % 7 + 0.5, "i": ts % 5, "s": ["a", "b"] * 10}
        engine.append(table)
    return engine


def answers(engine: sw.Engine) -> list[Any]:
    filters = engine.filters().to_pylist() if engine.key else None
    return [engine.lookup_all().to_pylist(), filters, engine.emitted().to_pylist()]


# --- Changing them ------------------------------------------------------------------------------------------


def check(case: dict[str, Any]) -> None:
    content = saved(case["kind"])
    for change in case["bytes"]:
        content = with_bytes(content, change)
    calls.append(f"# the snapshot of the engine {case['kind']!r} of this target, with {case['bytes']} in its bytes")
    if case["header"]:
        forged(with_header(saved(case["kind"]), case["header"]))
        return
    engine = loaded(content)
    whose = [kind for kind in KINDS if content == saved(kind)]
    if engine is not None and not whose:
        raise wrong("snapshot: a damaged one is loaded", f"{case}")
    if engine is not None:
        same(engine, whose[0])


def forged(content: bytes) -> None:
    """A query that means nothing may say so itself. In another process: what can not be may be written anywhere."""

    def load() -> str:
        try:
            loaded(content)
        except sw.SwagError:
            return ""
        except Exception as why:
            return f"{type(why).__name__}\n{why!r} at {place_of(why)}"
        return ""

    kind, _, message = in_a_fork(load, "snapshot: one is loaded").partition("\n")
    if kind:
        raise wrong(f"snapshot: {kind} where one is loaded", message)


def loaded(content: bytes) -> sw.Engine | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        path.write_bytes(content)
        try:
            return sw.Engine.load(path)
        except sw.BadSnapshot:
            return None


def same(engine: sw.Engine, kind: str) -> None:
    found, want = answers(engine), answers(made(kind))
    if repr(found) != repr(want):
        raise wrong("snapshot: other answers", f"{found}, expected {want}")


def with_bytes(content: bytes, change: tuple[Any, ...]) -> bytes:
    what, at, *rest = change
    at %= len(content) or 1
    if what == "flip":
        return content[:at] + bytes([content[at] ^ rest[0]]) + content[at + 1 :] if content else content
    if what == "cut":
        return content[:at]
    if what == "put in":
        return content[:at] + rest[0] + content[at:]
    other = saved(rest[1])
    return content[:at] + other[rest[0] % len(other) :]


def with_header(content: bytes, changes: list[tuple[Any, ...]]) -> bytes:
    """The same arrays under another header, and a checksum that is right."""
    magic, version, size = HEAD.unpack_from(content)
    header = json.loads(content[HEAD.size : HEAD.size + size])
    for what, path, *rest in changes:
        holder, name = found(header, path)
        if name is None:
            continue
        calls.append(f"# {what} {shown(header, path)}{''.join(f', {each!r}' for each in rest if what == 'set')}")
        if what == "leave out":
            del holder[name]
        elif what == "set":
            holder[name] = copy.deepcopy(rest[0])
        else:
            other, place = found(header, rest[0])
            holder[name] = copy.deepcopy(other[place]) if place is not None else None
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + HEAD.size) % 8)
    body = HEAD.pack(magic, version, len(text)) + text + content[HEAD.size + size : -32]
    return body + hashlib.sha256(body).digest()


def found(header: Any, path: list[int]) -> tuple[Any, Any]:
    """A place in it: at each level the so-manieth of what is there, as deep as there is anything."""
    holder: Any = None
    name: Any = None
    for number in path:
        inside = header if holder is None else holder[name]
        if not isinstance(inside, dict | list) or not inside:
            break
        holder = inside
        name = list(inside)[number % len(inside)] if isinstance(inside, dict) else number % len(inside)
    return holder, name


def shown(header: Any, path: list[int]) -> str:
    """The names on the way to a place."""
    names = [found(header, path[: i + 1])[1] for i in range(len(path))]
    depth = next(i for i in range(len(path)) if found(header, path[: i + 1]) == found(header, path))
    return "header" + "".join(f"[{name!r}]" for name in names[: depth + 1])


def target() -> Target:
    return plain("snapshot", CASES, check, lambda case: len(case["header"]) + len(case["bytes"]))
