"""Queries and functions on their way to workers."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from swag.query.aggregates import Aggregate
from swag.query.as_json import query_to_json
from swag.query.expression import Expression, mapped, plain
from swag.query.query import Query, Several, Source


def in_workers(rows: DataFrame, function: Callable[[Any], Any], out: StructType | str) -> DataFrame:
    """rows.mapInArrow. The columns of `rows` have names of ours: Spark looks them up."""
    with own_python(rows):
        return rows.mapInArrow(told(function), out)


def told(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that says which Python it is in, if a module is missing there."""
    content = cloudpickle.dumps(function)
    hint = (
        "set PYSPARK_PYTHON, before the session starts, to a Python that has it "
        f"(the driver's is {sys.executable}), or send it along: spark-submit --py-files swag.zip"
    )

    def run(batches: Any) -> Any:  # inside a function: so it is sent as code, and needs nothing of ours to arrive
        """In a worker: unpack the function and run it on batches; a missing module is told with the Python there."""
        import pickle
        import sys

        try:
            found = pickle.loads(content)
        except ModuleNotFoundError as why:
            version = ".".join(map(str, sys.version_info[:3]))
            said = f"{sys.executable} ({version}), the Python of this worker, has no module named {why.name!r}."
            raise ModuleNotFoundError(f"{said} Hint: {hint}", name=why.name) from None
        yield from found(batches)

    return run


@contextmanager
def own_python(frame: DataFrame) -> Iterator[None]:
    """Functions that Spark wraps in here run in the driver's own Python, where it is local and nobody chose another.

    Spark's own choice is the first python3 on the path, whatever environment the driver is in.
    """
    context: Any = getattr(frame.sparkSession, "_sc", None)  # none under Spark Connect
    if context is None or not _is_open(context):
        yield
        return
    before = context.pythonExec
    context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


def _is_open(context: Any) -> bool:
    """Is it still open which Python workers run?"""
    chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    return bool(sys.executable) and context.master.startswith("local") and not chosen


def portable(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Queries that mean the same in any process."""
    return tuple(map(_portable, queries))


def _portable(query: Query) -> Query:
    if query.source is not None:
        query = replace(query, source=_portable_source(query.source))
    having = portable_term(query.having) if isinstance(query.having, Expression) else query.having
    return replace(query, aggregate=portable_term(query.aggregate), having=having)


def _portable_source(source: Source) -> Source:
    if isinstance(source, Query):
        return _portable(source)
    if isinstance(source, Several):
        return Several(tuple(_portable(each) for each in source.queries))
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


def fingerprint(query: Query | Several) -> str:
    """The same in any process, and of no other query."""
    if isinstance(query, Several):
        return digest(" ".join(map(fingerprint, query.queries)))
    plain = query_to_json(query) | {"every": str(query.every), "source": str(query.source)}
    return digest(json.dumps(plain, sort_keys=True, default=str))


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
