"""Kinds of aggregates that a list of cases does not name: so that a new kind is drawn wherever all of them are."""

from collections.abc import Iterable
from typing import Any

import swag as sw
from swag.query.kind import KINDS
from swag.query.kinds.one_of_each import one_of_each

COLUMNS = {"numbers": "x", "numbers and times": "x", "what has an order": "x", "anything": "x", "booleans": "b"}


def others(listed: Iterable[str], second: str) -> list[sw.Aggregate]:
    """One of each kind that is not listed, over x, or b where it takes flags; if it is of two columns, the other is
    `second`."""
    columns = {reads: (name, second) if name == "x" else name for reads, name in COLUMNS.items()}
    return one_of_each(columns, but={*listed, "approx_count_distinct"})


def options_of(aggregate: sw.Aggregate) -> dict[str, Any]:
    """Those that its kind has."""
    return {name: getattr(aggregate, name) for name in KINDS[aggregate.kind].options}
