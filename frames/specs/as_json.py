"""Parts of specs as JSON and back: numbers, columns with their numbers, aggregates.

The functions of a user-defined aggregate can not be written down. They are known by a number, in the process that made
them and nowhere else.
"""

import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate as Aggregated
from swag.query.as_json import term_from_json, term_to_json
from swag.query.expression import Expression, Windowed
from swag.query.kind import UserDefined

PROCESS = uuid.uuid4().hex
_functions: dict[int, UserDefined] = {}  # by number; compiled ones are kept for as long, in swag/query/user_defined.py


def aggregate_to_json(aggregate: Any) -> Any:
    """An aggregate, or an expression of several."""
    if isinstance(aggregate, Expression):
        return {"op": aggregate.op, "operands": [aggregate_to_json(each) for each in aggregate.operands]}
    if isinstance(aggregate, Windowed):
        return {"of": aggregate_to_json(aggregate.aggregate), "where": aggregate.where}
    if not isinstance(aggregate, Aggregated) or aggregate.user is None:
        return term_to_json(aggregate)
    _functions[aggregate.user.number] = aggregate.user
    return {**term_to_json(aggregate), "known_as": [PROCESS, aggregate.user.number]}


def aggregate_from_json(entry: Any) -> Any:
    """None: functions of it are not of this process."""
    if isinstance(entry, dict) and "operands" in entry:
        operands = tuple(map(aggregate_from_json, entry["operands"]))
        return None if None in operands else Expression(entry["op"], operands)
    if isinstance(entry, dict) and "where" in entry:
        inside = aggregate_from_json(entry["of"])
        return None if inside is None else Windowed(inside, None, entry["where"])
    if not isinstance(entry, dict):
        return entry
    process, number = entry.get("known_as", (None, None))
    if process is None:
        return term_from_json(entry)
    if process != PROCESS or number not in _functions:
        return None
    return term_from_json(entry, _functions[number])


def number(value: Any) -> int | float:
    return int(value) if isinstance(value, int | np.integer) else float(value)


def pairs(of_columns: Mapping[str, Any]) -> list[list[Any]]:
    """In order: the columns of cells come out as they were given."""
    return [[name, [*map(number, x)] if isinstance(x, tuple) else number(x)] for name, x in of_columns.items()]
