"""What is kept of all rows so far, key by key: sums, partials of any operator, the first and the last values."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.operators import monoids
from kernels.windows import registers, totals
from kernels.windows.registers import Pool, RegisterSums
from kernels.windows.totals import Runs
from swag.query.aggregates import Aggregate
from swag.query.families import operator, parts_of
from swag.query.kind import HASHED, KINDS, Part
from swag.tables.columns import fixed
from swag.tables.lists import ranges


class EndRows(NamedTuple):
    """The values of a column in the first rows, or in the last: so many of them."""

    first: bool
    column: str
    n: int

    def __str__(self) -> str:
        name, column = "first" if self.first else "last", self.column or "ts"
        return f"{name}({column})" if self.n == 1 else f"{name}_n({column}, {self.n})"


What = Part | EndRows
Values = Callable[[str], np.ndarray]  # a column by its name
EXTREMES = ("min", "max", "arg_max", "arg_min")  # families whose partials are values of their columns, one of each
NO_MONOID = ("quantile", "distinct", "mode")  # families of which no partial is kept


def can_run(aggregate: Aggregate) -> bool:
    """Can it be told from what is kept of rows, without them, at any later time?"""
    return not {what.family for what in whats_of(aggregate) if isinstance(what, Part)} & set(NO_MONOID)


def whats_of(aggregate: Aggregate, kinds: Mapping[str, pa.DataType] | None = None) -> tuple[What, ...]:
    """What an aggregate is computed from. kinds: of its columns, as far as they are known."""
    kind = KINDS[aggregate.kind]
    if kind.at_ends:
        (column,) = kind.raw or aggregate.columns
        return (EndRows(aggregate.kind.startswith("first"), column, aggregate.n or 1),)
    if aggregate.kind == "approx_count_distinct":
        return (Part("registers", (aggregate.columns[0] + HASHED,)),)
    return parts_of(aggregate, kinds)


def columns_of(what: What) -> tuple[str, ...]:
    return what.columns if isinstance(what, Part) else (what.column,)


class Accumulator(ABC):
    """A partial per key. It owns its arrays, which are as long as there are keys.

    Asked of it: to take runs of rows, a copy for some keys (`taken`), and the partials as aggregates are lowered from.
    """

    def __init__(self, what: What, dtypes: Any, arrays: list[np.ndarray] | None = None) -> None:
        """dtypes: of its columns."""
        self.what, self.dtypes = what, tuple(map(np.dtype, dtypes))
        self.arrays = self.empty() if arrays is None else arrays

    @abstractmethod
    def empty(self) -> list[np.ndarray]:
        """Of no keys."""

    @abstractmethod
    def take(self, runs: Runs, values: Values, n: np.ndarray) -> None:
        """Runs of at least one row each. n: how many rows each key has had before."""

    @abstractmethod
    def partial(self) -> Any: ...

    @abstractmethod
    def join(self, slots: np.ndarray, behind: Any, theirs: np.ndarray, n: tuple[np.ndarray, np.ndarray]) -> None:
        """Rows that came behind those of its slots, and are in others of an accumulator of the same sort, are its own
        from now on. n: how many rows either slot has."""

    def clear(self, slots: np.ndarray) -> None:
        """Some slots are of no rows again."""
        for each in self.arrays:
            each[slots] = 0

    def put(self, slots: np.ndarray, other: "Accumulator", theirs: np.ndarray) -> None:
        """Some slots are what those of another accumulator of the same sort are."""
        for mine, each in zip(self.arrays, other.arrays, strict=True):
            mine[slots] = each[theirs]

    def grow(self, size: int) -> None:
        more = size - len(self.arrays[0])
        self.arrays = [np.concatenate([each, np.zeros((more, *each.shape[1:]), each.dtype)]) for each in self.arrays]

    def taken(self, keys: np.ndarray) -> "Accumulator":
        return type(self)(self.what, self.dtypes, [each[keys] for each in self.arrays])


class FloatTotal(Accumulator):
    def empty(self) -> list[np.ndarray]:
        return [np.zeros(0), np.zeros(0)]

    def take(self, runs: Runs, values: Values, n: np.ndarray) -> None:
        totals.add_floats(fixed(values(columns_of(self.what)[0])), runs, *self.arrays)

    def join(self, slots: np.ndarray, behind: Any, theirs: np.ndarray, n: tuple[np.ndarray, np.ndarray]) -> None:
        totals.join_floats(slots, *self.arrays, theirs, *behind.arrays)

    def partial(self) -> np.ndarray:
        return self.arrays[0]


class IntegerTotal(Accumulator):
    """Sums of integers, which wrap, and the same sums in floats, which tell where they have."""

    def empty(self) -> list[np.ndarray]:
        return [np.zeros(0, np.int64), np.zeros(0)]

    def take(self, runs: Runs, values: Values, n: np.ndarray) -> None:
        totals.add_integers(fixed(values(columns_of(self.what)[0])), runs, *self.arrays)

    def join(self, slots: np.ndarray, behind: Any, theirs: np.ndarray, n: tuple[np.ndarray, np.ndarray]) -> None:
        for mine, each in zip(self.arrays, behind.arrays, strict=True):
            mine[slots] += each[theirs]

    def partial(self) -> np.ndarray:
        return self.arrays[0]

    @property
    def wrapped(self) -> np.ndarray:
        """Which of the sums do not fit int64."""
        exact, about = self.arrays
        return np.abs(about - exact) > 2.0**62

    @property
    def about(self) -> np.ndarray:
        return self.arrays[1]


class Folded(Accumulator):
    """By the operator of a part, a user's own or another."""

    failed: Exception | None = None  # what a user's function raised of some rows, since when nothing is known

    def empty(self) -> list[np.ndarray]:
        assert isinstance(self.what, Part)
        state = monoids.empty_state(operator(self.what), self.dtypes, 0)
        return [np.zeros(0, np.int64), *(state if isinstance(state, tuple) else [state])]

    def take(self, runs: Runs, values: Values, n: np.ndarray) -> None:
        """Fold runs of rows into the partials of their keys; what a user's function raises is kept until asked for."""
        assert isinstance(self.what, Part)
        own = [fixed(values(name)) for name in self.what.columns]
        if self.what.family == "comoments":  # one kernel for columns of all types
            own = [each.astype(np.float64, copy=False) for each in own]
        columns = own[0] if len(own) == 1 else tuple(own)
        try:
            totals.fold(operator(self.what), columns, runs, self.arrays[0], self._state)
        except Exception as why:
            if self.what.user is None:
                raise
            self.failed = why

    def join(self, slots: np.ndarray, behind: Any, theirs: np.ndarray, n: tuple[np.ndarray, np.ndarray]) -> None:
        assert isinstance(self.what, Part)
        self.failed = self.failed or behind.failed
        others = theirs, behind.arrays[0], behind.partial()
        try:
            totals.join(operator(self.what), slots, self.arrays[0], self._state, *others)
        except Exception as why:
            if self.what.user is None:
                raise
            self.failed = why

    @property
    def _state(self) -> Any:
        state = self.arrays[1:]
        of_several = isinstance(monoids.empty_state(operator(self.what), self.dtypes, 0), tuple)  # type: ignore[arg-type]
        return tuple(state) if of_several else state[0]

    def partial(self) -> Any:
        return self._state

    def taken(self, keys: np.ndarray) -> "Accumulator":
        found = super().taken(keys)
        assert isinstance(found, Folded)
        found.failed = self.failed
        return found


class EndTotal(Accumulator):
    """The value in the first row, or in the last."""

    def empty(self) -> list[np.ndarray]:
        return [np.zeros(0, self.dtypes[0])]

    def take(self, runs: Runs, values: Values, n: np.ndarray) -> None:
        assert isinstance(self.what, EndRows)
        (ends,), name = self.arrays, self.what.column
        if self.what.first:
            new = n[runs.slots] == 0
            ends[runs.slots[new]] = values(name)[runs.rows[runs.first[new]]]
        else:
            ends[runs.slots] = values(name)[runs.rows[runs.last - 1]]

    def join(self, slots: np.ndarray, behind: Any, theirs: np.ndarray, n: tuple[np.ndarray, np.ndarray]) -> None:
        assert isinstance(self.what, EndRows)
        new = n[0] == 0 if self.what.first else n[1] > 0
        self.put(slots[new], behind, theirs[new])

    def partial(self) -> np.ndarray:
        return self.arrays[0]


class EndsTotal(Accumulator):
    """The values in the first n rows, or in the last: row i of a key is at place i % n."""

    def empty(self) -> list[np.ndarray]:
        assert isinstance(self.what, EndRows)
        return [np.zeros((0, self.what.n), self.dtypes[0])]

    def take(self, runs: Runs, values: Values, n: np.ndarray) -> None:
        assert isinstance(self.what, EndRows)
        before, size, width = n[runs.slots], runs.last - runs.first, self.what.n
        counts = np.minimum(size, np.maximum(width - before, 0) if self.what.first else width)
        skipped = np.zeros_like(size) if self.what.first else size - counts
        places = np.repeat(runs.slots, counts), ranges(before + skipped, counts) % width
        self.arrays[0][places] = values(self.what.column)[runs.rows[ranges(runs.first + skipped, counts)]]

    def join(self, slots: np.ndarray, behind: Any, theirs: np.ndarray, n: tuple[np.ndarray, np.ndarray]) -> None:
        raise NotImplementedError("who joins keeps the rows of what is a list")

    def partial(self) -> np.ndarray:
        return self.arrays[0]


class Registers(Accumulator):
    """How many values are different, about (kernels/windows/registers.py).

    A copy for some keys reads the registers of the one that it was taken of until it is given rows of its own.
    """

    _of: tuple["Registers", np.ndarray] | None = None

    def empty(self) -> list[np.ndarray]:
        nothing = np.zeros(0, np.int64)
        return [nothing, nothing, nothing, nothing, np.zeros(1, np.int64), np.zeros(0, np.int32)]

    @property
    def arrays(self) -> list[np.ndarray]:
        if self._of is not None:
            (other, keys), self._of = self._of, None
            self._arrays[2:] = copied(other._pool, keys, 0)
        return self._arrays

    @arrays.setter
    def arrays(self, arrays: list[np.ndarray]) -> None:
        self._arrays = arrays

    @property
    def _pool(self) -> Pool:
        offset, size, used, words = self.arrays[2:]
        return Pool(words, offset, size, used)

    def grow(self, size: int) -> None:
        per_key, shared = self.arrays[:4], self.arrays[4:]
        self.arrays = [np.concatenate([each, np.zeros(size - each.size, np.int64)]) for each in per_key] + shared

    def take(self, runs: Runs, values: Values, n: np.ndarray) -> None:
        hashes, progress = fixed(values(columns_of(self.what)[0])), np.zeros(2, np.int64)
        while not registers.note(hashes, runs, self._pool, RegisterSums(*self.arrays[:2]), progress):
            every = np.arange(self.arrays[0].size)
            self.arrays[2:] = copied(self._pool, every, registers.DENSE + int(self._pool.size.sum()))

    def join(self, slots: np.ndarray, behind: Any, theirs: np.ndarray, n: tuple[np.ndarray, np.ndarray]) -> None:
        raise NotImplementedError("who joins keeps the rows of what is only about right")

    def partial(self) -> np.ndarray:
        return registers.estimate(RegisterSums(*self._arrays[:2]))

    def taken(self, keys: np.ndarray) -> "Accumulator":
        found = Registers(self.what, self.dtypes, [*(each[keys] for each in self._arrays[:2]), *self.empty()[2:]])
        found._of = (self._of and (self._of[0], self._of[1][keys])) or (self, keys)
        return found


def copied(pool: Pool, keys: np.ndarray, spare: int) -> list[np.ndarray]:
    """The words of some keys in a pool of their own, with so many to spare."""
    size = int(pool.size[keys].sum()) + spare
    places = np.zeros(keys.size, np.int64), np.zeros(keys.size, np.int64)
    other = Pool(np.zeros(size, np.int32), *places, np.zeros(1, np.int64))
    registers.copy(pool, keys, other)
    return [other.offset, other.size, other.used, other.words]


def accumulator(what: What, dtypes: Any, arrays: list[np.ndarray] | None = None) -> Accumulator:
    """For columns of these types."""
    if not isinstance(what, Part):
        return (EndTotal if what.n == 1 else EndsTotal)(what, dtypes, arrays)
    if what.family == "registers":
        return Registers(what, dtypes, arrays)
    if what.family == "sum":
        return (FloatTotal if np.dtype(dtypes[0]).kind == "f" else IntegerTotal)(what, dtypes, arrays)
    return Folded(what, dtypes, arrays)


def held_by(each: Accumulator) -> dict[str, np.ndarray]:
    """Of an accumulator whose partials are values: those, by their columns."""
    if isinstance(each, EndTotal | EndsTotal):
        return {columns_of(each.what)[0]: each.arrays[0].reshape(-1)}
    of_values = isinstance(each.what, Part) and each.what.family in EXTREMES
    return dict(zip(columns_of(each.what), each.arrays[1:], strict=True)) if of_values else {}
