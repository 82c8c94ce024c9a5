"""The aggregates of a condition as kernels grow by them: operators, partials, and the columns that each reads.

Most read columns as they are. Those that tell values apart read where their key had a value last, those that decay when
an event was: what is kept for that from batch to batch is in told_apart.py.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.scans.aggregate import operator
from frames.scans.scan import NONE, Kinds
from frames.scans.told_apart import PlacedValues, ToldApart
from kernels.frames import decaying, further
from kernels.frames import told_apart as frame_values
from kernels.frames.conditions import GrownPart
from kernels.operators import monoids
from swag.durable.state import State, nested
from swag.durable.state import part as part_of
from swag.errors import BadType
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.families import check_columns, result_type
from swag.query.kind import KINDS, sql_of
from swag.tables import decay
from swag.tables.columns import Clock, Field, is_discrete, is_number
from swag.tables.times.durations import in_units

TELL_APART = ("count_distinct", "approx_count_distinct", "mode")
DISTINCT = TELL_APART[:2]
COMPUTES_NOTHING = ("count", *DISTINCT)  # of whose columns no number is wanted
DECAY = ("decayed_sum", "decayed_mean", "decayed_count")
NOT_BEGUN = np.iinfo(np.int64).max  # in place of where a frame begins
InUse = Callable[[str], tuple[np.ndarray, np.ndarray]]  # of a column: tokens of keys with a frame, where these begin
FURTHER: dict[str, Any] = {
    "count_if": further.Flags(further.COUNT_IF),
    "any": further.Flags(further.ANY),
    "all": further.Flags(further.ALL),
    "skew": further.GrowingSkew(),
    "kurtosis": further.GrowingKurtosis(),
    "product": further.GrowingProduct(),
    "slope": further.GrowingLine(further.SLOPE),
    "intercept": further.GrowingLine(further.INTERCEPT),
    "r2": further.GrowingLine(further.R2),
    "arg_max": further.GrowingArgMax(),
    "arg_min": further.GrowingArgMin(),
}


class PreparedParts(NamedTuple):
    """A batch as kernels take it, and the columns of which values were told apart."""

    columns: tuple[Any, ...]
    placed: dict[str, PlacedValues]

    def operators(self, parts: tuple[Any, ...], aggregates: tuple[Aggregated, ...]) -> tuple[Any, ...]:
        """Those of modes with what this batch's pairs remember."""
        each = zip(parts, aggregates, strict=True)
        return tuple(op._replace(pairs=self.placed[a.columns[0]].kept) if a.kind == "mode" else op for op, a in each)


class PartColumns:
    """The columns of all parts. Owns what is known of values that are told apart (`told_apart`, by column), how many
    events have had a place (`places`), and the next token of a key (`tokens`)."""

    def __init__(self, parts: tuple[Aggregated, ...], grown: list[GrownPart], kinds: Kinds, clock: Clock) -> None:
        self.parts, self.grown = parts, grown
        self.half_lives = {each: in_units(each.half_life or 0, clock.unit) for each in parts if each.kind in DECAY}
        computed = {name for each in parts if each.kind not in COMPUTES_NOTHING for name in each.columns}
        apart = dict.fromkeys(each.columns[0] for each in parts if each.kind in TELL_APART)
        self.told_apart = {name: ToldApart(kinds[name], name in computed) for name in apart}
        self.places, self.tokens = 0, 1

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.told_apart.values())

    def new_tokens(self, count: int) -> np.ndarray:
        """For keys that have none."""
        self.tokens += count
        return np.arange(self.tokens - count, self.tokens)

    def prepared(
        self, data: tuple[dict[str, Field], list[np.ndarray]], ts: np.ndarray, tokens: np.ndarray
    ) -> PreparedParts:
        """What kernels lift of each event, and which events count, part by part. tokens: of the events' keys."""
        fields, valid = data
        placed = {n: each.placed(fields[n], tokens, self.places) for n, each in self.told_apart.items()}
        found: list[Any] = []
        for each, there in zip(self.parts, valid, strict=True):
            read = [fields[name] for name in each.columns]
            if each.kind == "count":
                found.append((NONE, there))
            elif each.kind in TELL_APART:
                found.append((_told_apart(each, read[0], placed[each.columns[0]]), there))
            elif each.kind in DECAY:
                found.append(self._decaying(each, read, there, ts))
            else:
                as_they_are = len(read) == 1 or each.kind in ("arg_max", "arg_min")
                found.append((tuple(f.values if as_they_are else f.values.astype(np.float64) for f in read), there))
        return PreparedParts(tuple(found), placed)

    def _decaying(
        self, each: Aggregated, read: list[Field], there: np.ndarray, ts: np.ndarray
    ) -> tuple[Any, np.ndarray]:
        """Sums are as of every event, also where it has no value; means are the same as of any."""
        turns, weights = decay.phases(ts, self.half_lives[each])
        with np.errstate(all="ignore"):
            values = read[0].values.astype(np.float64) * weights if read else weights
        if each.kind == "decayed_mean":
            return (values, turns, weights), there
        if there.size:
            values = np.where(there, values, 0.0)
        return (values, turns, weights, there.astype(np.int64) if there.size else np.ones(ts.size, np.int64)), NONE

    def go_on(self, prepared: PreparedParts, size: int) -> None:
        """So many events were scanned."""
        self.places += size
        for name, placed in prepared.placed.items():
            self.told_apart[name].go_on(placed)

    def begins(self, column: str, partials: tuple[np.ndarray, ...], counts: np.ndarray) -> np.ndarray:
        """Of each key: from which place on its frame tells values of a column apart, if it does."""
        found, at = np.full(counts.size, NOT_BEGUN), 0
        for each, part in zip(self.parts, self.grown, strict=True):
            if each.kind in TELL_APART and each.columns[0] == column:
                begin = partials[at + 1 + frame_values.BEGIN_PLACE[type(part.op)]]
                found = np.minimum(found, np.where((counts > 0) & (partials[at] > 0), begin, NOT_BEGUN))
            at += 1 + len(part.dtypes if isinstance(part.dtypes, tuple) else (part.dtypes,))
        return found

    def forget(self, in_use: InUse) -> None:
        """Values that no frame has any more, where they are most."""
        for name, each in self.told_apart.items():
            if each.is_large:
                each.forget(*in_use(name))

    def state(self, in_use: InUse) -> State:
        each = {name: told.state(*in_use(name)) for name, told in self.told_apart.items()}
        return nested({"places": self.places, "tokens": self.tokens}, each)

    def restore(self, state: State) -> None:
        self.places, self.tokens = state[0]["places"], state[0]["tokens"]
        for name, each in self.told_apart.items():
            each.restore(part_of(state, name))


def _told_apart(each: Aggregated, read: Field, placed: PlacedValues) -> tuple[np.ndarray, ...]:
    if each.kind in DISTINCT:
        return placed.places, placed.before
    return read.values, placed.places, placed.before, placed.pairs


def grown_part(aggregate: Aggregated, kinds: Kinds) -> GrownPart:
    """An aggregate as kernels know it: its operator, its partials, and whether its answers are whole numbers."""
    check_columns(aggregate, kinds)
    kind = result_type(aggregate, kinds)
    if not is_number(kind):
        of = aggregate.columns[0] if aggregate.columns and pa.types.is_decimal(kind) else None
        hint = "an aggregate that is a number" if of is None else f"CAST({sql_of(of)} AS DOUBLE) in it"
        raise BadType(f"{aggregate} is {kind}, and is compared or computed with here.", hint)
    if aggregate.kind == "count":
        return GrownPart(None, (), True)
    of_columns = tuple(np.int64 if is_discrete(kinds[name]) else np.float64 for name in aggregate.columns)
    counts = KINDS[aggregate.kind].counts
    if aggregate.kind in DISTINCT:
        return GrownPart(frame_values.GrowingDistinct(), frame_values.DISTINCT_PARTIAL, True, counts)
    if aggregate.kind == "mode":
        op = frame_values.GrowingMode(np.zeros((0, 2), np.int64))
        return GrownPart(op, frame_values.mode_partial(of_columns[0]), is_discrete(kind))
    if aggregate.kind == "decayed_mean":
        return GrownPart(decaying.GrowingDecayedMean(), decaying.MEAN_PARTIAL, False)
    if aggregate.kind in DECAY:
        return GrownPart(decaying.GrowingDecayedSum(), decaying.SUM_PARTIAL, False)
    op = FURTHER[aggregate.kind] if aggregate.kind in FURTHER else operator(aggregate, kinds)
    return GrownPart(op, monoids.state_dtypes(op, of_columns), is_discrete(kind), counts)
