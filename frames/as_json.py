"""Specs as JSON and back: how a table of frames says by which one they were found.

The functions of a user-defined aggregate can not be written down. They are known by a number, in the process that made
them and nowhere else.
"""

import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from frames.specs import Aggregate, Boundary, Delta, Spec, Threshold
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.aggregates import UserDefined
from swag.query.as_json import duration_from_json, duration_to_json, term_from_json, term_to_json

PROCESS = uuid.uuid4().hex
_functions: dict[int, UserDefined] = {}  # by number; compiled ones are kept for as long, in swag/query/user_defined.py


def spec_to_json(spec: Spec) -> dict[str, Any]:
    if isinstance(spec, Threshold):
        least = {"min_rows": int(spec.min_rows), "min_duration": duration_to_json(spec.min_duration)}
        return {"threshold": spec.column, "op": spec.op, "c": number(spec.c), "partition": spec.partition, **least}
    if isinstance(spec, Boundary):
        return {"boundary": pairs(spec.cells)}
    if isinstance(spec, Delta):
        return {"delta": pairs(spec.limits), "measure": spec.measure, "op": spec.op}
    return {"aggregate": aggregate_to_json(spec.aggregate), "op": spec.op, "c": number(spec.c)}


def spec_from_json(entry: dict[str, Any]) -> Spec | None:
    """None: it was cut by functions that this process does not have."""
    if "threshold" in entry:
        least = duration_from_json(entry["min_duration"])
        return Threshold(entry["threshold"], entry["op"], entry["c"], entry["min_rows"], least, entry["partition"])
    if "boundary" in entry:
        return Boundary(dict(entry["boundary"]))
    if "delta" in entry:
        return Delta(dict(entry["delta"]), measure=entry["measure"], op=entry["op"])
    aggregate = aggregate_from_json(entry["aggregate"])
    return None if aggregate is None else Aggregate(aggregate, entry["op"], entry["c"])


def aggregate_to_json(aggregate: Aggregated) -> dict[str, Any]:
    if aggregate.user is None:
        return dict(term_to_json(aggregate))
    _functions[aggregate.user.number] = aggregate.user
    return {**term_to_json(aggregate), "known_as": [PROCESS, aggregate.user.number]}


def aggregate_from_json(entry: dict[str, Any]) -> Aggregated | None:
    process, number = entry.get("known_as", (None, None))
    if process is None:
        return term_from_json(entry)  # type: ignore[no-any-return]
    if process != PROCESS or number not in _functions:
        return None
    return term_from_json(entry, _functions[number])  # type: ignore[no-any-return]


def number(value: Any) -> int | float:
    return int(value) if isinstance(value, int | np.integer) else float(value)


def pairs(of_columns: Mapping[str, Any]) -> list[list[Any]]:
    """In order: the columns of cells come out as they were given."""
    return [[name, [*map(number, x)] if isinstance(x, tuple) else number(x)] for name, x in of_columns.items()]
