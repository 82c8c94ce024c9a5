"""Queries on their way to workers."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyspark import cloudpickle

from swag.aggregates import Aggregate
from swag.expression import Expression, mapped, plain
from swag.query import Events, Query
from swag.recipes import query_to_json


def portable(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Queries that mean the same in any process."""
    return tuple(map(_portable, queries))


def _portable(query: Query) -> Query:
    if query.source is not None:
        query = replace(query, source=_portable_source(query.source))
    having = portable_term(query.having) if isinstance(query.having, Expression) else query.having
    return replace(query, aggregate=portable_term(query.aggregate), having=having)


def _portable_source(source: Query | Events) -> Query | Events:
    if isinstance(source, Query):
        return _portable(source)
    return source if source.source is None else replace(source, source=_portable_source(source.source))


def portable_term(term: Any) -> Any:
    """An aggregate, or an expression of some."""
    return mapped(term, lambda leaf: plain(replace(leaf, aggregate=portable_aggregate(leaf.aggregate))))


def portable_aggregate(aggregate: Aggregate) -> Aggregate:
    """Functions of a user-defined aggregate are known by a number that counts within a process.

    A worker serves many jobs, maybe of several users, and must not take one for another: there it is a fingerprint.
    """
    user = aggregate.user
    if user is None:
        return aggregate
    content = cloudpickle.dumps((user.lift, user.combine, user.lower, user.identity, user.invert))
    number = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
    return replace(aggregate, user=replace(user, number=number))


def fingerprint(query: Query) -> str:
    """The same in any process, and of no other query."""
    plain = query_to_json(query) | {"every": str(query.every), "source": str(query.source)}
    return digest(json.dumps(plain, sort_keys=True, default=str))


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
