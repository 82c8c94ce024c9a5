"""Thresholds of one column in large numbers: `price > c`, for many c, from one structure in place of rows for each.

    price #>     what rows are told apart by: the price, or the lowest number there is where it is null or NaN, as these
                 satisfy no comparison. Of `price < c` it is `price #<`, and the same mirrored
    bound        of a threshold: its rows are those above it

The rows lie where those of queries without a filter do, each once, with that column beside the others, and sorted runs
with aggregates inside answer any bound (kernels/windows/threshold_runs.py). A row that is told to filters one by one is
written down for each that it satisfies, which of thresholds is half of them, for all that is known: measured with 1,000
of these, each a sum over 10,000 rows, an event took 31 us, and 258 MB were kept.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State
from swag.live.space import Mask
from swag.query.families import parts_of
from swag.query.kind import LESS, MORE, Part
from swag.query.query import Query
from swag.query.windows import Unbounded
from swag.tables.columns import Field, decoded_type, is_number
from swag.tables.comparing import within
from swag.tables.conjuncts import Comparison
from swag.tables.constant_ends import dispatched, numbers
from swag.tables.predicate import compile_predicate

MANY_THRESHOLDS = 16  # measured over 10,000 rows, sharing costs an event less from 8 on, and memory from 11 on
FAMILIES = ("sum", "min", "max")  # of partials that can be combined in any order, each one number
EXACT = 2**53  # integers up to here are themselves as floats, too


class KeyBound(NamedTuple):
    """The rows of a threshold: those whose key, a raw column, is above a number."""

    key: str
    number: Any


@lru_cache(maxsize=1 << 16)
def threshold_of(where: str) -> Comparison | None:
    """The comparison that a predicate is, if it is one of a column with one constant, and not an equality."""
    comparisons, rest = compile_predicate(where).conjuncts
    return comparisons[0] if len(comparisons) == 1 and rest is None and comparisons[0].op != "=" else None


def key_of(threshold: Comparison) -> str:
    return threshold.column + (MORE if threshold.op in (">", ">=") else LESS)


def bound_of(threshold: Comparison, floats: bool) -> KeyBound | None:
    """None: rows that satisfy no comparison are not below it."""
    op, number = within(threshold.op, threshold.constants[0], pa.float64() if floats else pa.int64())
    key = key_of(threshold)
    if key.endswith(LESS):
        number = -number if floats else ~number
    if op in ("<", ">"):
        return KeyBound(key, number)
    if number == (-math.inf if floats else EARLIEST):
        return None
    return KeyBound(key, math.nextafter(number, -math.inf) if floats else number - 1)


def keys_of(column: pa.ChunkedArray, key: str, floats: bool) -> np.ndarray:
    """What rows are sorted by, of the values of a column."""
    values, valid = numbers(column, np.dtype(np.float64 if floats else np.int64))
    if key.endswith(LESS):
        values = -values if floats else ~values
    known = np.ones(values.size, bool) if not valid.size else valid
    return np.where(known & (values == values), values, -np.inf if floats else EARLIEST)


def key_field(table: pa.Table, key: str) -> Field:
    """The keys of the rows of a table; it has them, or the column that they are made of."""
    if key in table.column_names:
        column = table.column(key)
        return Field(np.asarray(column), None, column.type)
    column = table.column(column_of(key))
    return _field(column, key, _is_float(decoded_type(column.type)))


def _field(column: pa.ChunkedArray, key: str, floats: bool) -> Field:
    return Field(keys_of(column, key, floats), None, pa.float64() if floats else pa.int64())


class SharedThresholds:
    """Which queries of a plan share the rows of all, by a bound for each. It owns that, and which columns are floats.

    A query is decided on once, when the types of its columns are known; until then it is `open`, and has rows of its
    own, of which there are none yet. Asked of it: the key and bound of a query, and the keys of the rows of a batch.
    """

    def __init__(self, algorithm: str) -> None:
        self._sharing = algorithm == "auto"
        self._thresholds: dict[str, tuple[Query, Comparison]] = {}  # all there are, by the labels of their queries
        self._alike: dict[Any, Counter[str]] = {}  # their predicates, by what one structure could serve
        self.open: set[str] = set()
        self.shared: dict[str, KeyBound] = {}  # by label
        self.keys: Counter[str] = Counter()  # raw columns by which rows are told apart, and of how many queries
        self.apart: dict[str, str] = {}  # by label: why one has rows of its own
        self._floats: dict[str, bool] = {}  # by the column that is compared, where some share
        self._bounds: dict[tuple[str, str], Any] = {}  # of predicates and keys, once somebody asked

    # -- queries ------------------------------------------------------------------------------------------------------

    def add(self, queries: Iterable[Query]) -> None:
        for query in queries:
            threshold = None if query.where is None or not self._sharing else threshold_of(query.where)
            if threshold is not None and not isinstance(query.window, Unbounded):
                self._thresholds[query.label] = query, threshold
                self._alike.setdefault(_like(query, threshold), Counter())[query.where or ""] += 1
                self.open.add(query.label)

    def remove(self, label: str) -> None:
        if label in self._thresholds:
            self.set_apart(label, "")
            query, threshold = self._thresholds.pop(label)
            _take_off(self._alike[_like(query, threshold)], query.where or "")
            del self.apart[label]

    def key(self, query: Query) -> str:
        """The raw column by which the rows of a query are told apart; nothing: they are its own."""
        bound = self.shared.get(query.label)
        return "" if bound is None else bound.key

    def bound(self, mask: Mask) -> Any:
        """Above which number the rows of a mask are."""
        return self._all_bounds()[mask.where or "", mask.compared]

    def _all_bounds(self) -> dict[tuple[str, str], Any]:
        if not self._bounds:
            by_label = ((self._thresholds[label][0].where or "", each) for label, each in self.shared.items())
            self._bounds = {(where, each.key): each.number for where, each in by_label}
        return self._bounds

    def decide(self, types: Mapping[str, pa.DataType], queries: Iterable[Query] | None = None) -> bool:
        """On those that are open; what is not known of their types by now is not waited for. queries: on these alone,
        as far as types are known. Returns whether any share from now on."""
        known, shared = {name: decoded_type(kind) for name, kind in types.items()}, len(self.shared)
        labels = self.open if queries is None else self.open.intersection(query.label for query in queries)
        for label in sorted(labels):
            query, threshold = self._thresholds[label]
            kind = self._kind(threshold.column, known)
            if kind is not None or queries is None:
                self._decide_on(label, kind, _why_apart(query, known))
        return len(self.shared) > shared

    def _decide_on(self, label: str, kind: pa.DataType | None, why: str) -> None:
        """kind: the type of the column that is compared. why: one can not share for other reasons."""
        query, threshold = self._thresholds[label]
        bound = None if kind is None or not dispatched(threshold, kind) else bound_of(threshold, _is_float(kind))
        if why or bound is None:
            self.set_apart(label, why or "not compared with a number that it can be sorted by")
        elif len(self._alike[_like(query, threshold)]) < MANY_THRESHOLDS:
            self.set_apart(label, f"fewer than {MANY_THRESHOLDS} of what one structure would serve")
        else:
            self._share(label, bound, floats=_is_float(kind))

    def _share(self, label: str, bound: KeyBound, floats: bool) -> None:
        self.open.discard(label)
        self.shared[label], self._bounds = bound, {}
        self.keys[bound.key] += 1
        self._floats[column_of(bound.key)] = floats

    def set_apart(self, label: str, why: str) -> None:
        """It has rows of its own."""
        self.open.discard(label)
        self.apart[label] = why
        bound = self.shared.pop(label, None)
        if bound is not None:
            _take_off(self.keys, bound.key)
            self._bounds = {}
            if not {bound.key, _mirrored(bound.key)} & self.keys.keys():
                del self._floats[column_of(bound.key)]

    def _kind(self, column: str, types: Mapping[str, pa.DataType]) -> pa.DataType | None:
        """The type of a column that is compared; that of those who share it already, if they do."""
        if column in self._floats:
            return pa.float64() if self._floats[column] else pa.int64()
        kind = types.get(column)
        return None if kind is None or pa.types.is_null(kind) else kind

    # -- batches ------------------------------------------------------------------------------------------------------

    def fields(self, table: pa.Table) -> dict[str, Field]:
        """The keys of the rows of a batch, as columns; not of columns that have become of another type."""
        found = {}
        for key in self.keys:
            column, floats = table.column(column_of(key)), self._floats[column_of(key)]
            if _fits(column, floats):
                found[key] = _field(column, key, floats)
        return found

    def with_misfits(self, predicates: tuple[str, ...], table: pa.Table) -> tuple[str, ...]:
        """The predicates that are told to rows one by one, and those of columns that have become of another type."""
        misfits = [name for name, floats in self._floats.items() if not _fits(table.column(name), floats)]
        if not misfits:
            return predicates
        more = (where for where, key in self._all_bounds() if column_of(key) in misfits)
        return tuple(dict.fromkeys((*predicates, *more)))

    def misfits(self, fields: Mapping[str, Field]) -> list[Query]:
        """Queries that can not share any more, as a batch has no keys for them."""
        missing = self.keys.keys() - fields.keys()
        return [self._thresholds[label][0] for label, bound in self.shared.items() if bound.key in missing]

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What is missing here was not written, and has rows of its own."""
        return {"shared": sorted(self.shared), "apart": self.apart, "floats": self._floats}, {}

    def restore(self, state: State) -> None:
        """Its queries were added. Those of versions that could not share have rows of their own."""
        header = state[0]
        for label in sorted(self.open):
            threshold = self._thresholds[label][1]
            if label in header.get("shared", ()):
                floats = header["floats"][threshold.column]
                bound = bound_of(threshold, floats)
                assert bound is not None
                self._share(label, bound, floats)
            elif label in header.get("apart", {}) or not header:
                self.set_apart(label, header.get("apart", {}).get(label, "as in the snapshot that it is from"))

    def explain(self) -> dict[tuple[str, str], int]:
        """How many thresholds of which column have rows of their own, and why."""
        said: dict[tuple[str, str], set[str | None]] = {}
        for label, why in self.apart.items():
            query, threshold = self._thresholds[label]
            said.setdefault((threshold.column, why), set()).add(query.where)
        return {about: len(some) for about, some in said.items()}


def column_of(key: str) -> str:
    return key.removesuffix(MORE).removesuffix(LESS)


def _take_off(counts: Counter[str], what: str) -> None:
    """One less; what there is none of is not in it."""
    counts[what] -= 1
    if not counts[what]:
        del counts[what]


def _mirrored(key: str) -> str:
    return column_of(key) + (LESS if key.endswith(MORE) else MORE)


def _fits(column: pa.ChunkedArray, floats: bool) -> bool:
    """Are its values numbers that those so far can be sorted among? floats: these were."""
    kind = decoded_type(column.type)
    if pa.types.is_null(kind):
        return True
    if not floats or not pa.types.is_integer(kind):
        return kind in (pa.float32(), pa.float64()) if floats else _is_whole(kind)
    return bool(np.abs(numbers(column, np.dtype(np.float64))[0]).max(initial=0) < EXACT)


def _like(query: Query, threshold: Comparison) -> tuple[str, tuple[Part, ...]]:
    """What thresholds have in common that one structure serves."""
    return key_of(threshold), parts_of(query.aggregate)


def _why_apart(query: Query, types: Mapping[str, pa.DataType]) -> str:
    """Why a query can not share, whatever the thresholds; nothing, if it can."""
    aggregate = query.aggregate
    parts = parts_of(aggregate)
    if aggregate.user is not None or not all(part.family in FAMILIES for part in parts):
        return f"{aggregate.kind} is not one number that can be combined in any order"
    if not parts and aggregate.kind != "count":
        return f"{aggregate.kind} is read off rows of its own"
    kinds = [types[name] for name in aggregate.columns if name in types]
    if parts and not (len(kinds) == len(aggregate.columns) and all(map(_is_computed_with, kinds))):
        return f"{aggregate.columns[0]} is not known to be a number"
    return ""


def _is_computed_with(kind: pa.DataType) -> bool:
    return is_number(kind) and kind != pa.uint64() and not pa.types.is_null(kind)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) and kind != pa.uint64())


def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind))
