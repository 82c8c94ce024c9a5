"""Snapshots of format 2, which version 0.1 wrote, as states of today. Nothing here knows the classes they are of.

In format 2 arrays had numbers instead of names, structures the names of their classes, and a stream inside of another
was a whole snapshot among the arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import (
    Parts,
    State,
    nested,
    own_arrays,
    parts,
    table_to_array,
    types_from_array,
    types_to_array,
    with_arrays,
)

VERSION = 2
STRUCTURES = {
    "Running": "running",
    "RunningFloats": "running floats",
    "Dyadic": "dyadic",
    "Landmark": "landmark",
    "SortedRuns": "sorted runs",
    "PSoup": "psoup",
    "MaterializeAll": "materialize-all",
    "MaterializeNone": "materialize-none",
}
Arrays = list[np.ndarray]
Parse = Callable[[bytes], tuple[dict[str, Any], Arrays]]


def upgraded(header: dict[str, Any], arrays: Arrays, parse: Parse) -> State:
    """parse: a snapshot that was among the arrays."""
    types = types_from_array(arrays[header["types"]])
    held, store = header["held"], dict(header["store"])
    if held is not None and "now" not in held:  # version 0.1 said only what the latest time was, and answered as of it
        held = held | {"now": store["now"]}
        store["now"] = max(EARLIEST, store["now"] - held["lateness"])
    grouping = {
        "store": _store(store, header, arrays, types),
        "plan": _plan(header, arrays),
        "filters": _filters(header["filters"], arrays),
    }
    closed = EARLIEST if store["promised"] == EARLIEST else store["promised"] - 1
    core = nested(
        {"now": store["now"], "closed": closed, "asked": header["lookups"]},
        {"dictionary": _dictionary(header.get("words", {}), arrays, types), "groupings": [nested({}, grouping)]},
    )
    core = with_arrays(core, {"clock": types_to_array({"ts": types["ts"]})} if "ts" in types else {})
    stream = nested({}, {"core": core, "emission": _emission(header.get("emission"), arrays, parse)})
    key = header["engine"]["key"]
    grouped = nested({"groupings": [[] if key is None else [key]], "events": store["events"]}, {"streams": [stream]})
    said = {name: header[name] for name in ("engine", "lateness", "queries")}
    whole = nested(said, {"stream": grouped, "held": None if held is None else _held(held, arrays)})
    return with_arrays(whole, _advanced(header["advanced"], arrays))


def _advanced(saved: Any, arrays: Arrays) -> dict[str, np.ndarray]:
    if saved is None:
        return {}
    table = arrays[saved["table"]] if isinstance(saved, dict) else table_to_array(pa.table({"ts": [saved]}))
    return {"advanced": table}


def _store(saved: dict[str, Any], header: dict[str, Any], arrays: Arrays, types: dict[str, pa.DataType]) -> State:
    """The store of a format 2 snapshot: its keys and spaces, and the rows kept, with names in place of numbers."""
    kept = {"rows": saved["keep_rows"], "time": saved["keep_time"], "tidy": saved["tidy"]}
    events = {"events": saved["events"], "forgotten": saved.get("forgotten", EARLIEST)}
    keys: State | None = (
        None if header["keys"] is None else ({}, {name: arrays[i] for name, i in header["keys"].items()})
    )
    spaces: list[State] = [_space(entry, arrays) for entry in header["spaces"]]
    own = {name: arrays[saved[name]] for name in ("ts", "latest", "lost")}
    own |= {} if keys is None else {"key type": types_to_array({"key": types["key"]})}
    return with_arrays(nested(kept | events, {"spaces": spaces, "keys": keys}), own)


def _space(entry: dict[str, Any], arrays: Arrays) -> State:
    free = {f"free/{size}": arrays[i] for size, i in entry["free"].items()}
    layout = {"slots": entry["slots"], "used": entry["used"], "free": [int(size) for size in entry["free"]]}
    arena = layout, {"rings": arrays[entry["rings"]]} | free
    own = {f"raw/{name}": arrays[i] for name, i in entry["raw"].items()}
    own |= {} if entry["rank"] is None else {"rank": arrays[entry["rank"]]}
    return with_arrays(nested(_mask(entry) | {"raw": list(entry["raw"])}, {"arena": arena}), own)


def _mask(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("where", "required", "since")}


def _dictionary(words: dict[str, Any], arrays: Arrays, types: dict[str, pa.DataType]) -> State:
    tables: list[State] = [({}, {part: arrays[i] for part, i in parts.items()}) for parts in words.values()]
    columns = {name.removeprefix("column "): kind for name, kind in types.items() if name.startswith("column ")}
    return with_arrays(
        nested({"words": list(words), "decimals": "in words"}, {"tables": tables}), {"types": types_to_array(columns)}
    )


def _plan(header: dict[str, Any], arrays: Arrays) -> State:
    saved = header["plan"]
    known = {name: saved[name] for name in ("nullable", "largest", "columns", "since", "kept_since")}
    order = header.get("order")
    later = {"complete": saved.get("complete", {}), "unread": saved.get("unread", [])}
    said = known | later | ({} if order is None else {"order": order})
    masks = [_mask(entry) for entry in header["spaces"]]
    return nested(said, {"groups": [_group(entry, masks, arrays) for entry in header["groups"]]})


def _group(entry: dict[str, Any], masks: list[dict[str, Any]], arrays: Arrays) -> State:
    """A group of a format 2 plan: its queries, its structure by the name of today, and the partials that this held."""
    same = ("family", "columns", "queries", "reason", "levels", "log_width", "regret")
    updates, lookups, own_updates, own_lookups = entry["counted"]
    header = {name: entry[name] for name in same} | {
        "mask": masks[entry["space"]],
        "structure": STRUCTURES[entry["structure"]],
        "counted": [updates, lookups],
        "stands_in": entry.get("stands_in", False),
    }
    counts = {"updates": own_updates, "lookups": own_lookups, "held": len(entry["held"])}
    held = {f"held/{i}": arrays[place] for i, place in enumerate(entry["held"])}
    saved = {f"saved/{name}": arrays[place] for name, place in entry["saved"].items()}
    return nested(header, {"partials": (counts | {"uncertain": entry["uncertain"]}, held | saved)})


def _filters(entries: list[dict[str, Any]], arrays: Arrays) -> State:
    """The oldest files named an index by a position that may be another's: theirs are made anew from the rows kept."""
    named = [entry for entry in entries if "over" in entry]
    indexes: list[State] = [(e["over"], {name: arrays[i] for name, i in e["arrays"].items()}) for e in named]
    return nested({}, {"indexes": indexes})


def _held(entry: dict[str, Any], arrays: Arrays) -> State:
    table = {} if entry["table"] is None else {"table": arrays[entry["table"]]}
    header = {name: entry[name] for name in ("lateness", "now", "late")}
    return header, {"ts": arrays[entry["ts"]], "ids": arrays[entry["ids"]]} | table


def _emission(saved: dict[str, Any] | None, arrays: Arrays, parse: Parse) -> State:
    """What a format 2 snapshot says of ticks, if anything: tickers, streams inside, and ticks not fetched yet."""
    saved = saved or {"tickers": [], "inner": [], "chosen": [], "since": {}, "top": EARLIEST, "outbox": []}
    header = {"since": saved["since"], "top": saved["top"], "errors": saved.get("errors", [])}
    header["outbox"] = [entry["query"] for entry in saved["outbox"]]
    inside: Parts = {
        "tickers": [_ticker(entry, arrays, parse) for entry in saved["tickers"]],
        "inner": [_answers(entry, arrays, parse) for entry in saved["inner"]],
        "chosen": [
            nested({"where": entry["where"]}, {"stream": _stream(arrays[entry["engine"]], parse)})
            for entry in saved["chosen"]
        ],
    }
    ticks = {f"outbox/{i}": arrays[entry["ticks"]] for i, entry in enumerate(saved["outbox"])}
    return with_arrays(nested(header, inside), ticks)


def _ticker(entry: dict[str, Any], arrays: Arrays, parse: Parse) -> State:
    """A ticker of format 2: rows that wait for their tick, its counters, and the core that ticks look back at."""
    rows = dict(zip(("table", "ts", "ids"), (arrays[i] for i in entry["rows"]), strict=False))
    names = ("next", "total", "gone", "newest"), ("links", "latest", "seen")
    counters = {name: arrays[i] for name, i in zip(names[0], entry["counters"], strict=True)}
    recent = {name: arrays[i] for name, i in zip(names[1], entry["recent"], strict=True)}
    core = _core(arrays[entry["engine"]], parse)
    inside: Parts = {
        "pending": ({"rows": len(rows)}, rows),
        "counters": ({}, counters),
        "lookback": nested({}, {"core": core, "recent": ({}, recent)}),
    }
    own = {name: arrays[entry[name]] for name in ("types", "kinds")}
    return with_arrays(nested({"every": entry["every"], "ticks": entry["ticks"]}, inside), own)


def _answers(entry: dict[str, Any], arrays: Arrays, parse: Parse) -> State:
    inside = {"ticker": _ticker(entry["ticker"], arrays, parse), "stream": _stream(arrays[entry["engine"]], parse)}
    waiting = {} if entry["waiting"] is None else {"waiting": arrays[entry["waiting"]]}
    return with_arrays(nested({"query": entry["query"]}, inside), waiting)


def _stream(content: np.ndarray, parse: Parse) -> State:
    header, arrays = upgraded(*parse(content.tobytes()), parse)
    (stream,) = parts((header["stream"], own_arrays(arrays, "stream")), "streams")
    return stream


def _core(content: np.ndarray, parse: Parse) -> State:
    header, arrays = _stream(content, parse)
    return header["core"], own_arrays(arrays, "core")
