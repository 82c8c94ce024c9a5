"""Queries on their way to workers."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from pyspark import cloudpickle

from swag.aggregates import Aggregate
from swag.query import Query


def portable(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Queries that mean the same in any process."""
    return tuple(
        replace(query, aggregate=portable_aggregate(query.aggregate)) if query.is_simple else query for query in queries
    )


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
