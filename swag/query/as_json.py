"""Queries as JSON and back: how a snapshot names what was asked. Functions can not be written down."""

import datetime
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from swag.errors import BadSnapshot
from swag.query.aggregates import Aggregate
from swag.query.every import Every
from swag.query.expression import Expression, Windowed
from swag.query.kind import UserDefined
from swag.query.over_frames import OverFrames, frames_package
from swag.query.query import Events, Query, Several, Source, queries_in
from swag.query.user_defined import dtype_of
from swag.query.windows import Range, Rows, Since, Unbounded, Window
from swag.tables.constants import from_json, to_json
from swag.tables.expressions.derived import name_with_parentheses
from swag.tables.times.durations import Duration


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


def query_to_json(query: Query | OverFrames) -> dict[str, Any]:
    """A query as JSON, without its functions; one over frames says itself what it is."""
    if isinstance(query, OverFrames):
        return query.to_json()
    having = query.having
    having = [to_json(each) for each in having] if isinstance(having, tuple) else term_to_json(having)
    return {"label": query.label, "name": query.name, "where": query.where, "aggregate": term_to_json(query.aggregate),
            "window": window_to_json(query.window), "having": having, "index": query.index, "group_by": query.by,
            "stream": query.stream, "every": every_to_json(query.every),
            "source": source_to_json(query.source)}  # fmt: skip


def source_to_json(source: Source | None) -> dict[str, Any] | None:
    if isinstance(source, Several):
        return {"together": [query_to_json(each) for each in source.queries]}
    if isinstance(source, Events):
        often = {} if source.every is None else {"every": every_to_json(source.every)}
        return {"chosen": source.where, "source": source_to_json(source.source), "stream": source.stream} | often
    return None if source is None else query_to_json(source)


def every_to_json(every: Every | None) -> Any:
    """How often a query answers (EVERY), as JSON: by rows or time, from which anchor, key by key or not."""
    if every is None:
        return None
    return (
        {
            "rows": every.rows,
            "time": duration_to_json(every.time),
            "anchor": every.anchor,
            "per_key": every.per_key,
        }
        | ({} if every.by is None else {"by": list(every.by)})
        | ({"own": True} if every.own else {})
    )


def every_from_json(entry: Any) -> Every | None:
    if entry is None:
        return None
    rows, time, anchor = entry["rows"], duration_from_json(entry["time"]), entry["anchor"]
    return Every(rows, time, anchor, entry["per_key"], entry.get("by"), entry.get("own", False))


def queries_from_json(entries: list[dict[str, Any]], given: list[Query], path: Path) -> list[Query]:
    """The queries of a file. given: those that a user says again, as a file can not hold their functions."""
    known = with_sources(given)
    for entry in entries:
        if entry["label"] in known:
            refuse_other(entry, known[entry["label"]], path)
    return [_labelled(query_from_json(entry, known, path), entry["label"]) for entry in entries]


def _over_frames_from_json(entry: dict[str, Any], given: dict[str, Query], path: Path) -> Any:
    found: Any = frames_package().query_from_json(entry) or given.get(entry["label"])
    if found is None:
        raise _without_functions(entry, path)
    return found.named()


def _without_functions(entry: dict[str, Any], path: Path) -> BadSnapshot:
    return BadSnapshot(
        f'"{path}" holds the query "{entry["label"]}", whose functions are not in the file.',
        "Engine.load(path, queries=[…]) with that query",
    )


def _labelled(query: Query, label: str) -> Query:
    """A query without a name keeps the label that it was saved under, which an older version may have worded so."""
    return query if query.label == label else replace(query, name=label)


def query_from_json(entry: dict[str, Any], given: dict[str, Query], path: Path) -> Query:
    """given: queries by label, for those whose functions a file can not hold."""
    if "frames" in entry:
        return _over_frames_from_json(entry, given, path)  # type: ignore[no-any-return]
    if has_functions(entry["aggregate"]) or has_functions(entry["having"]):
        if entry["label"] not in given:
            raise _without_functions(entry, path)
        return _with_functions(entry, given, path)
    having, groups = entry["having"], entry.get("group_by")
    return Query(
        term_from_json(entry["aggregate"]),
        window_from_json(entry["window"]),
        entry["name"],
        entry["where"],
        tuple(map(from_json, having)) if isinstance(having, list) else term_from_json(having),
        entry["index"],
        every_from_json(entry.get("every")),
        source_from_json(entry.get("source"), given, path),
        by=None if groups is None else tuple(groups),
        stream=entry.get("stream"),
    )


def _with_functions(entry: dict[str, Any], given: dict[str, Query], path: Path) -> Query:
    """The functions of the query that was given; where it stands, and what it reads, are the file's."""
    found = given[entry["label"]]
    refuse_other(entry, found, path, SAID)
    every, source = every_from_json(entry.get("every")), source_from_json(entry.get("source"), given, path)
    found = replace(found, name=entry["name"], index=entry["index"], every=every, source=source)
    return replace(found, aggregate=_as_called(found.aggregate, entry["aggregate"]))


def _as_called(term: Any, entry: Any) -> Any:
    """The same term, its columns called as in the state that it comes with."""
    if isinstance(term, Expression):
        pairs = zip(term.operands, entry["operands"], strict=True)
        return Expression(term.op, tuple(_as_called(each, saved) for each, saved in pairs))
    if isinstance(term, Windowed):
        return replace(term, aggregate=_as_called(term.aggregate, entry["of"]))
    return _called(term, entry) if isinstance(term, Aggregate) else term


SAID = ("aggregate", "window", "where", "having")  # what a query says, wherever it stands
PLACE = ("every", "source", "index")
FRAMED = ("frames", "values", "select", "where", "having", "fragments")


def refuse_other(entry: dict[str, Any], query: Query, path: Path, parts: Iterable[str] = (*SAID, *PLACE)) -> None:
    """Raise if a query that was given is another than the one that was saved."""
    again = json.loads(json.dumps(query_to_json(query), default=str))
    for part in FRAMED if "frames" in again or "frames" in entry else parts:
        if not _is_same(entry.get(part), again.get(part)):
            raise BadSnapshot(
                f'"{path}" holds a query "{entry["label"]}" of another {part}: {_shown(entry.get(part))}, '
                f"not {_shown(again.get(part))}.",
                "Engine.load(path, queries=[…]) with the query as it was saved; another one has another name",
            )


def _is_same(saved: Any, given: Any) -> bool:
    """What older files do not say is not compared."""
    if isinstance(saved, dict) and isinstance(given, dict):
        return all(_is_same(saved[name], given.get(name)) for name in saved if name != "called")
    if isinstance(saved, list) and isinstance(given, list):
        return len(saved) == len(given) and all(map(_is_same, saved, given))
    return bool(saved == given)


def _shown(entry: Any) -> str:
    said = {name: value for name, value in entry.items() if value is not None} if isinstance(entry, dict) else entry
    return json.dumps(said, ensure_ascii=False)


def with_sources(queries: Iterable[Query]) -> dict[str, Query]:
    """Queries by label, and those that they read."""
    found = {query.label: query for query in queries}
    for query in list(found.values()):
        inside = query.source
        while inside is not None:
            for each in () if isinstance(inside, Events) else queries_in(inside):
                found.setdefault(each.label, each)
                if not each.is_relation:
                    found.setdefault(replace(each, source=None).label, each)
            inside = inside.source
    return found


def source_from_json(entry: Any, given: dict[str, Query], path: Path) -> Source | None:
    if entry is not None and "together" in entry:
        return Several(tuple(query_from_json(each, given, path) for each in entry["together"]))
    if entry is not None and "chosen" in entry:
        inside, often = source_from_json(entry["source"], given, path), every_from_json(entry.get("every"))
        return Events(entry["chosen"], inside, often, stream=entry["stream"])
    return None if entry is None else query_from_json(entry, given, path)


def window_to_json(window: Window | None) -> dict[str, Any] | None:
    """A window as JSON; a query of several windows of its own has None."""
    if window is None:
        return None
    if isinstance(window, Rows):
        return {"rows": window.n, "until": window.until}
    if isinstance(window, Since):
        return {"since": window.period, "tz": window.tz}
    peers = {"peers": True} if window.peers else {}
    if isinstance(window, Unbounded):
        return {"unbounded": True, "until": window.until} | peers
    return {"range": window.t, "until": window.until, "closed": window.closed} | peers


def window_from_json(entry: dict[str, Any] | None) -> Window | None:
    """The window that JSON names. Files of before `peers` have windows without."""
    if entry is None:
        return None
    if "rows" in entry:
        return Rows(entry["rows"], entry["until"])
    if "since" in entry:
        return Since(entry["since"], entry["tz"])
    until, peers = duration_from_json(entry["until"]), entry.get("peers", False)
    if "unbounded" in entry:
        return Unbounded(until, peers)
    return Range(duration_from_json(entry["range"]), until, entry["closed"], peers)


def term_to_json(term: Any) -> Any:
    """An aggregate, or an expression of several."""
    if isinstance(term, Expression):
        return {"op": term.op, "operands": [term_to_json(each) for each in term.operands]}
    if isinstance(term, Windowed):
        return {"of": term_to_json(term.aggregate), "window": window_to_json(term.window), "where": term.where}
    if not isinstance(term, Aggregate):
        return to_json(term)
    return {
        "kind": term.kind,
        "columns": list(term.texts),
        "ddof": term.ddof,
        "phi": term.phi,
        "method": term.method,
        "half_life": term.half_life,
        "n": term.n,
        "name": term.name,
        "functions": None if term.user is None else _functions_to_json(term.user),
    } | ({} if term.columns == _usual(term.texts) else {"called": list(term.columns)})


def _usual(texts: Iterable[str]) -> tuple[str, ...]:
    """What columns are called in states, if nothing else is said."""
    return tuple(map(name_with_parentheses, texts))


def _functions_to_json(user: UserDefined) -> dict[str, Any]:
    """What can be told of functions: the partials that they are of, and whether they can be taken off again."""
    parts = user.identity if isinstance(user.identity, tuple) else (user.identity,)
    identity = [repr(dtype_of(part)(part).item()) for part in parts]
    return {
        "identity": identity if isinstance(user.identity, tuple) else identity[0],
        "invert": user.invert is not None,
    }


def term_from_json(entry: Any, user: UserDefined | None = None) -> Any:
    """user: the functions of a user-defined aggregate, which are not written down."""
    if not isinstance(entry, dict):
        return entry
    if "op" in entry:
        return Expression(entry["op"], tuple(term_from_json(each) for each in entry["operands"]))
    if "of" in entry:
        return Windowed(term_from_json(entry["of"]), window_from_json(entry["window"]), entry["where"])
    if "constant" in entry:
        return from_json(entry)
    options: Any = {name: entry.get(name) for name in ("ddof", "phi", "method", "half_life", "n", "name")}
    texts = tuple(entry["columns"])
    return _called(Aggregate(entry["kind"], texts, user=user, **options), entry)


def _called(aggregate: Aggregate, entry: dict[str, Any]) -> Aggregate:
    """An aggregate whose columns are called as in the state that it comes with."""
    names = tuple(entry.get("called") or _usual(entry["columns"]))
    return aggregate if names == aggregate.columns else replace(aggregate, called=names)


def has_functions(entry: Any) -> bool:
    """Does a term, as JSON, hold functions of a user's?"""
    if not isinstance(entry, dict):
        return False
    inside = [*entry.get("operands", ()), entry.get("of")]
    return entry.get("kind") == "aggregate" or any(has_functions(each) for each in inside)
