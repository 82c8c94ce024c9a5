"""What is known of pieces of frames, as the monoids of windows: one partial for each sort of rows and each part.

fold    rows of a batch into the slots of their pieces
join    a run that was too short to be a frame, with the gap in front of it
put     from slot to slot: a run that a frame has become
"""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from frames.continuous.batches import Counted, CountedRows
from kernels.windows.totals import count_rows
from swag.durable.state import State
from swag.live.unbounded.accumulators import Accumulator, Folded, What, accumulator, whats_of
from swag.live.unbounded.answers import lowered
from swag.query.aggregates import Aggregate
from swag.query.families import result_type, unit_of
from swag.query.kind import KINDS
from swag.query.user_calls import failed
from swag.tables.columns import decoded_type, to_arrow

Asked = tuple[Aggregate, str | None]  # of the rows for which a predicate holds


def counted_by(asked: Asked) -> Counted:
    """The rows that an aggregate is of."""
    aggregate, where = asked
    return Counted(where, tuple(dict.fromkeys(aggregate.columns)))


class Partials:
    """Of aggregates, by slot: for each sort of rows how many there are, and what each part of an aggregate is by them.

    Owns these as arrays over slots. Asked of it: to grow; to `fold` in rows; to `clear` slots, `put` others in their
    place or `join` others behind them; and the answers of slots.
    """

    def __init__(self, asked: Iterable[Asked]) -> None:
        self.asked = list(asked)
        self.size = 0
        self.n: dict[Counted, np.ndarray] = {}
        self.made: dict[tuple[Counted, What], Accumulator | None] = {}  # None: no row that counts has come
        for each in self.asked:
            counted = counted_by(each)
            self.n[counted] = np.zeros(0, np.int64)
            self.made |= {(counted, what): None for what in whats_of(each[0])}
        self._kinds: dict[int, tuple[pa.DataType, float]] = {}  # of answers, and the unit that they are in

    def like(self, size: int) -> "Partials":
        """Others of the same sort, with so many slots: a few for each batch, so that nothing is asked twice."""
        found = copy.copy(self)
        found.size, found.made = size, dict.fromkeys(self.made)
        found.n = {counted: np.zeros(size, np.int64) for counted in self.n}
        return found

    def grow(self, size: int) -> None:
        """Room for so many slots; new ones are of no rows."""
        if size <= self.size:
            return
        self.size = max(size, 2 * self.size)
        for counted, n in self.n.items():
            self.n[counted] = np.concatenate([n, np.zeros(self.size - n.size, np.int64)])
        for each in self.made.values():
            if each is not None:
                each.grow(self.size)

    def fold(self, batch: CountedRows, pieces: Any, slots: np.ndarray) -> None:
        """The rows that pieces have in a batch come behind what their slots hold. Raises what a function of a user's
        does: these partials are of no use then."""
        for counted, n in self.n.items():
            runs = batch.runs(pieces, slots, counted)
            if not runs.slots.size:
                continue
            for sort, what in self.made:
                if sort == counted:
                    own = self._of(sort, what, batch.dtypes(what))
                    own.take(runs, batch.values, n)
                    _check(own)
            count_rows(runs, n)

    def _of(self, counted: Counted, what: What, dtypes: Iterable[np.dtype]) -> Accumulator:
        found = self.made[counted, what]
        if found is None:
            self.made[counted, what] = found = accumulator(what, dtypes)
            found.grow(self.size)
        return found

    def clear(self, slots: np.ndarray) -> None:
        """Some slots are of no rows again."""
        for n in self.n.values():
            n[slots] = 0
        for each in self.made.values():
            if each is not None:
                each.clear(slots)

    def put(self, slots: np.ndarray, other: "Partials", theirs: np.ndarray) -> None:
        """Some slots are what those of another are."""
        if not slots.size:
            return
        for counted, n in self.n.items():
            n[slots] = other.n[counted][theirs]
        for (counted, what), each in other.made.items():
            if each is not None:
                self._of(counted, what, each.dtypes).put(slots, each, theirs)
            elif (mine := self.made[counted, what]) is not None:
                mine.clear(slots)

    def join(self, slots: np.ndarray, other: "Partials", theirs: np.ndarray) -> None:
        """What slots of another hold came behind what these hold."""
        if not slots.size:
            return
        for (counted, what), each in other.made.items():
            if each is not None:
                sizes = self.n[counted][slots], other.n[counted][theirs]
                own = self._of(counted, what, each.dtypes)
                own.join(slots, each, theirs, sizes)
                _check(own)
        for counted, n in self.n.items():
            n[slots] += other.n[counted][theirs]

    def answers(self, slots: np.ndarray, types: dict[str, pa.DataType]) -> list[pa.Array]:
        """A column per aggregate, of these slots. types: of the columns that are read. Raises if a sum does not fit."""
        return [self._answer(each, slots, types) for each in self.asked]

    def _answer(self, asked: Asked, slots: np.ndarray, types: dict[str, pa.DataType]) -> pa.Array:
        aggregate, counted = asked[0], counted_by(asked)
        kind, unit = self._kind(aggregate, types)
        made = [self.made[counted, what] for what in whats_of(aggregate)]
        if any(each is None for each in made):
            nothing = pa.nulls(slots.size, kind)
            return nothing.fill_null(0) if KINDS[aggregate.kind].counts else nothing
        partials = [each.taken(slots) for each in made if each is not None]
        values, valid = lowered(f"{aggregate} of a frame", aggregate, self.n[counted][slots], partials)
        return to_arrow(values if unit == 1 else values / unit, valid, kind)

    def _kind(self, aggregate: Aggregate, types: dict[str, pa.DataType]) -> tuple[pa.DataType, float]:
        """The type of its answers, and the unit that they are in; the types of columns stay what they are."""
        if id(aggregate) not in self._kinds:
            kinds = {name: decoded_type(types[name]) for name in aggregate.columns}
            self._kinds[id(aggregate)] = result_type(aggregate, kinds), unit_of(aggregate, kinds)
        return self._kinds[id(aggregate)]

    def renumber(self, kept: np.ndarray) -> None:
        """Slot kept[i] is slot i from now on; all others are forgotten."""
        self.size = kept.size
        self.n = {counted: n[kept] for counted, n in self.n.items()}
        self.made = {of: None if each is None else each.taken(kept) for of, each in self.made.items()}

    @property
    def bytes(self) -> int:
        made = [array for each in self.made.values() if each is not None for array in each.arrays]
        return sum(each.nbytes for each in (*self.n.values(), *made))

    def state(self) -> State:
        made = list(self.made.values())
        types = [None if each is None else [" ".join(map(str, each.dtypes)), len(each.arrays)] for each in made]
        header = {"size": self.size, "made": types}
        arrays = {f"n{i}": n for i, n in enumerate(self.n.values())}
        for i, each in enumerate(made):
            arrays |= {} if each is None else {f"{i} {j}": array for j, array in enumerate(each.arrays)}
        return header, arrays

    def restore(self, state: State) -> None:
        """Of partials of the same aggregates."""
        header, arrays = state
        self.size = header["size"]
        self.n = {counted: arrays[f"n{i}"].copy() for i, counted in enumerate(self.n)}
        for i, ((counted, what), saved) in enumerate(zip(list(self.made), header["made"], strict=True)):
            if saved is not None:
                own = [arrays[f"{i} {j}"].copy() for j in range(saved[1])]
                self.made[counted, what] = accumulator(what, saved[0].split(), own)


def _check(own: Accumulator) -> None:
    """Raise what a function of a user's did."""
    if isinstance(own, Folded) and own.failed is not None:
        raise failed("a frame: lift or combine", own.failed) from own.failed
