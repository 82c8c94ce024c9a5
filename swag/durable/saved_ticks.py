"""Snapshots of what is about ticks: counters, the rows that undecided ones need, and those that nobody fetched yet."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from swag import errors
from swag.query.as_json import every_from_json, every_to_json, query_from_json, query_to_json
from swag.query.query import Query
from swag.ticks.counters import Counters
from swag.ticks.emission import Emission
from swag.ticks.inner_streams import Answers, Chosen
from swag.ticks.lookback import Lookback, looked_up
from swag.ticks.recency import Recency
from swag.ticks.ticker import Ticker

if TYPE_CHECKING:
    from swag.engine import Engine

Put = Callable[[np.ndarray | bytes], int]


def table_to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def table_from_bytes(array: np.ndarray) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(array.tobytes())).read_all()


def save_emission(emission: Emission, put: Put) -> dict[str, Any] | None:
    if not emission.queries and not emission.outbox and not emission.errors:
        return None
    return {
        "tickers": [_save_ticker(ticker, put) for ticker in emission.tickers.values()],
        "inner": [_save_answers(each, put) for each in emission.inner.values()],
        "chosen": [{"where": w, "engine": _save_engine(each.engine, put)} for w, each in emission.chosen.items()],
        "since": emission.since,
        "top": emission.top,
        "errors": [[type(why).__name__, why.message, why.hint] for why in emission.errors],
        "outbox": [{"query": name, "ticks": put(table_to_bytes(ticks))} for name, ticks in emission.outbox],
    }


def _save_ticker(ticker: Ticker, put: Put) -> dict[str, Any]:
    pending, lookback = ticker.pending, ticker.lookback
    keys, lookback.engine._store.keys = lookback.engine._store.keys, None  # those of the engine that it is in
    rows = [] if not pending.count else [put(table_to_bytes(pending.table)), put(pending.ts), put(pending.ids)]
    engine = _save_engine(lookback.engine, put)
    lookback.engine._store.keys = keys
    return {
        "every": every_to_json(ticker.every),
        "queries": [query_to_json(query) for query in ticker.queries.values()],
        "empty": lookback.empty,
        "ticks": ticker.ticks,
        "rows": rows,
        "engine": engine,
        "counters": [put(each) for each in ticker.counters.arrays],
        "recent": [put(each) for each in lookback.recent.arrays],
        "types": put(bytes(pa.schema(list(ticker.types.items())).serialize())),
        "kinds": put(bytes(pa.schema(list(ticker.kinds.items())).serialize())),
    }


def _save_answers(inner: Answers, put: Put) -> dict[str, Any]:
    waiting = None if inner.waiting is None else put(table_to_bytes(inner.waiting))
    return {
        "query": query_to_json(inner.query), "ticker": _save_ticker(inner.ticker, put),
        "engine": _save_engine(inner.engine, put), "waiting": waiting,
    }  # fmt: skip


def _save_engine(engine: "Engine", put: Put) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inner.swag"
        engine.save(path)
        return put(path.read_bytes())


def load_emission(
    engine: "Engine", saved: dict[str, Any], arrays: list[np.ndarray], given: dict[str, Query], path: Path
) -> None:
    emission = engine._emission
    for entry in saved["tickers"]:
        ticker = _load_ticker(entry, arrays, emission.key, given, path)
        emission.tickers[ticker.every] = ticker
    for entry in saved["inner"]:
        inner = _load_answers(entry, arrays, emission.key, given, path)
        emission.inner[inner.query] = inner
    for entry in saved["chosen"]:
        emission.chosen[entry["where"]] = Chosen(entry["where"], _load_engine(arrays[entry["engine"]], given))
    emission.since, emission.top = saved["since"], saved["top"]
    emission.errors = [getattr(errors, kind)(message, hint) for kind, message, hint in saved.get("errors", ())]
    emission.outbox = [(entry["query"], table_from_bytes(arrays[entry["ticks"]])) for entry in saved["outbox"]]
    for query in engine.queries:
        if query.source is not None:
            emission.outer[query.label] = emission.over(query.source, True, None)


def _load_ticker(
    entry: dict[str, Any], arrays: list[np.ndarray], key: str | None, given: dict[str, Query], path: Path
) -> Ticker:
    every = every_from_json(entry["every"])
    assert every is not None
    engine = _load_engine(arrays[entry["engine"]], {name: looked_up(query) for name, query in given.items()})
    engine._store.each_by_itself = key is not None and every.per_key
    recent = Recency(*(arrays[index] for index in entry["recent"]))
    ticker = Ticker(every, key, Lookback(engine, every, key, entry["empty"], recent), ticks=entry["ticks"])
    for each in entry["queries"]:
        query = query_from_json(each, given, path)
        ticker.queries[query.label] = query
    if entry["rows"]:
        table, ts, ids = (arrays[index] for index in entry["rows"])
        ticker.pending.add(table_from_bytes(table), ts, ids)
    ticker.counters = Counters(*(arrays[index] for index in entry["counters"]))
    for name in ("types", "kinds"):
        schema = pa.ipc.read_schema(pa.py_buffer(arrays[entry[name]].tobytes()))
        setattr(ticker, name, {field.name: field.type for field in schema})
    return ticker


def _load_answers(
    entry: dict[str, Any], arrays: list[np.ndarray], key: str | None, given: dict[str, Query], path: Path
) -> Answers:
    waiting = None if entry["waiting"] is None else table_from_bytes(arrays[entry["waiting"]])
    query = query_from_json(entry["query"], given, path)
    ticker = _load_ticker(entry["ticker"], arrays, key, {query.column: replace(query, name=query.column)}, path)
    return Answers(query, ticker, _load_engine(arrays[entry["engine"]], given), waiting)


def _load_engine(saved: np.ndarray, given: dict[str, Query]) -> "Engine":
    from swag.durable.snapshot import load

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "inner.swag"
        copy.write_bytes(saved.tobytes())
        return load(copy, list(given.values()), inside=True)
