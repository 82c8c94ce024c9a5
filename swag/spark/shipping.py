"""Queries on their way to workers."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from pyspark import cloudpickle

from swag.query import Query


def portable(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Queries that mean the same in any process.

    Functions of a user-defined aggregate are known by a number that counts within a process; a worker serves many jobs,
    maybe of several users, and must not take one for another: there the number is a fingerprint.
    """
    return tuple(_numbered(query) for query in queries)


def _numbered(query: Query) -> Query:
    user = query.aggregate.user
    if user is None:
        return query
    content = cloudpickle.dumps((user.lift, user.combine, user.lower, user.identity, user.invert))
    number = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
    return replace(query, aggregate=replace(query.aggregate, user=replace(user, number=number)))
