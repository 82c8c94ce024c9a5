"""Queries as JSON and back: how a snapshot names what was asked. Functions can not be written down."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np

from swag.aggregates import Aggregate
from swag.errors import BadSnapshot
from swag.query import Query
from swag.windows import Duration, Range, Rows


def duration_to_json(duration: Duration | None) -> Any:
    if isinstance(duration, datetime.timedelta):
        return {"microseconds": duration // datetime.timedelta(microseconds=1)}
    if isinstance(duration, np.timedelta64):
        return {"nanoseconds": int(duration.astype("timedelta64[ns]").astype(np.int64))}
    return int(duration) if isinstance(duration, int | np.integer) else duration


def duration_from_json(entry: Any) -> Any:
    if isinstance(entry, dict) and "microseconds" in entry:
        return datetime.timedelta(microseconds=entry["microseconds"])
    return np.timedelta64(entry["nanoseconds"], "ns") if isinstance(entry, dict) else entry


def query_to_json(query: Query) -> dict[str, Any]:
    a, w = query.aggregate, query.window
    if isinstance(w, Rows):
        window: dict[str, Any] = {"rows": int(w.n), "until": int(w.until)}
    else:
        window = {"range": duration_to_json(w.t), "until": duration_to_json(w.until), "closed": w.closed}
    what = {
        "kind": a.kind,
        "columns": list(a.columns),
        "ddof": a.ddof,
        "phi": a.phi,
        "method": a.method,
        "name": a.name,
    }
    return {"label": query.label, "name": query.name, "where": query.where, "aggregate": what, "window": window,
            "having": query.having, "index": query.index}  # fmt: skip


def query_from_json(entry: dict[str, Any], given: dict[str, Query], path: Path) -> Query:
    """given: queries by label, for those whose functions a file can not hold."""
    what, window = entry["aggregate"], entry["window"]
    if what["kind"] == "aggregate":
        if entry["label"] not in given:
            raise BadSnapshot(
                f'"{path}" holds the query "{entry["label"]}", whose functions are not in the file.',
                "Engine.load(path, queries=[…]) with that query",
            )
        return given[entry["label"]]
    aggregate = Aggregate(
        what["kind"], tuple(what["columns"]), what["ddof"], what["phi"], what["method"], name=what["name"]
    )
    rest = entry["name"], entry["where"], entry["having"] and tuple(entry["having"]), entry["index"]
    if "rows" in window:
        return Query(aggregate, Rows(window["rows"], window["until"]), *rest)
    t, until = duration_from_json(window["range"]), duration_from_json(window["until"])
    return Query(aggregate, Range(t, until, window["closed"]), *rest)
