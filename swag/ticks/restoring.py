"""The parts of a stream that was saved, put in the place of those that its queries have made again."""

import json
from collections.abc import Callable
from typing import Any

from swag.durable.state import State
from swag.query.as_json import source_to_json
from swag.query.query import Query, Several


def is_of(saved: State, source: Query | Several) -> bool:
    """Is this the state of the answers of these queries?"""
    return _written(saved[0]["query"]) == _written(source_to_json(source))


def _written(entry: Any) -> str:
    """JSON in one way, without what older files did not say."""
    return json.dumps(_said(json.loads(json.dumps(entry))), sort_keys=True)


def _said(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {name: _said(value) for name, value in entry.items() if value is not None}
    return [_said(each) for each in entry] if isinstance(entry, list) else entry


def restored(made: dict[Any, Any], saved: list[State], named: str, to_json: Callable[[Any], Any]) -> dict[Any, Any]:
    """Parts by what they are of, each with its state, in the order in which they were handed over."""
    known = {_written(to_json(of)): of for of in made}
    found = {}
    for state in saved:
        of = known[_written(state[0][named])]
        found[of] = made[of]
        found[of].restore(state)
    if len(found) != len(made):
        raise ValueError(f"{len(made)} parts by their {named}, of which {len(found)} were saved")
    return found
