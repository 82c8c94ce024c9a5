"""Where queries are answered from: the rows that count for each, its parts, who serves those, and what is kept."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from swag.live.space import Mask, Space
from swag.live.store import Store
from swag.query.families import computed_columns, parts_of, result_type, unit_of
from swag.query.kind import ABOVE, KINDS, TIME, Kind, Part, factors
from swag.query.query import Query
from swag.query.windows import Unbounded
from swag.tables.columns import Field

COUNT = "count" + ABOVE


class Route(NamedTuple):
    """Where a query is answered from: the rows that count for it and the space they lie in, those that make a key
    present, its parts (None: nothing has come yet that it could be answered from) and those whose groups serve them,
    how, the type, and what floats are divided by. counted_by: of a threshold that shares rows with others, whose group
    says how many rows make a key present."""

    mask: Mask
    home: Mask
    presence: Mask
    parts: tuple[Part, ...] | None
    served_by: tuple[Part, ...]
    kind: Kind
    type: pa.DataType
    unit: float
    counted_by: Part | None = None


def route(query: Query, masks: tuple[Mask, Mask], store: Store, groups: Mapping[tuple[Mask, Part], Any]) -> Route:
    """That of a query as of now. masks: of the rows that count, and of those that make a key present."""
    aggregate, (mask, presence), space = query.aggregate, masks, store.find(masks[0])
    kinds = {name: store.types.get(name, pa.null()) for name in (*aggregate.columns, TIME)}
    kind, of_type = KINDS[aggregate.kind], result_type(aggregate, kinds)
    own: tuple[Part, ...] | None = None
    by: tuple[Part, ...] = ()
    if space is not None and not isinstance(query.window, Unbounded):
        own = parts_over(query, mask, store.types)
        by = tuple(serving(part, space, groups.keys()) for part in own)
        raw = raw_over(query, mask, store.types)
        if not all((mask.home, part) in groups for part in by) or not raw <= space.raw.keys():
            own, by = None, ()
        elif not parts_of(aggregate):
            own = ()
    counted_by = None
    if presence.compared and presence != mask:
        counted_by = serving(counting(presence), store.spaces[presence.home], groups.keys())
    return Route(mask, mask.home, presence, own, by, kind, of_type, unit_of(aggregate, kinds), counted_by)


def parts_over(query: Query, mask: Mask, types: Mapping[str, pa.DataType]) -> tuple[Part, ...]:
    """Of what a query is computed, from the rows of a mask: where these are told apart by a key, as aggregates of those
    above a bound. types: of columns, as far as they are known."""
    own = parts_of(query.aggregate, types)
    if not mask.compared:
        return own
    return tuple(Part(part.family + ABOVE, (*part.columns, mask.compared)) for part in own) or (counting(mask),)


def counting(mask: Mask) -> Part:
    """How many rows of a mask are above its bound."""
    return Part(COUNT, (mask.compared,))


def raw_over(query: Query, mask: Mask, types: Mapping[str, pa.DataType]) -> set[str]:
    """The raw columns that a query needs kept of the rows of a mask."""
    kind = KINDS[query.aggregate.kind]
    if kind.at_ends:
        return set(kind.raw or query.aggregate.columns)
    return {name for part in parts_over(query, mask, types) for name in part.columns}


def is_wrapped(query: Query, space: Space, types: Mapping[str, pa.DataType]) -> bool:
    """Were values beyond int64 kept only to be handed back? They can not be computed with."""
    computed = computed_columns(query.aggregate)
    wide = [name for name in computed if name in space.raw and types.get(name) == pa.uint64()]
    return any(bool((space.raw[name].data < 0).any()) for name in wide)


def is_typed(name: str, found: dict[str, Field]) -> bool:
    """A column of nulls alone has no type yet."""
    columns = [name] if name in found else [part for part in factors(name) or () if part in found]
    return not any(pa.types.is_null(found[column].type) for column in columns)


def serving(part: Part, space: Space, known: Iterable[tuple[Mask, Part]]) -> Part:
    """The part whose group serves another over the rows of a space: as a rule its own. The moments of a column serve
    its sum, too, and aggregates of rows above bounds say how many these are. known: those that there are."""
    if part.family == COUNT:
        others = (own for home, own in known if home == space.mask and own.columns[-1:] == part.columns and own != part)
        return min((own for own in others if set(own.columns) <= space.raw.keys()), key=str, default=part)
    if part.family != "sum" or factors(part.columns[0]) is not None:
        return part
    moments = Part("moments", part.columns)
    return moments if (space.mask, moments) in known else part
