"""How an aggregate is answered: which shared structures it reads (its parts), and how their partials become the answer.

    count                   positions alone
    first, last, age        the value at one end
    first_n, last_n         those at one end
    sum, mean               "sum"        s
    wmean                   "sum" twice  Σ x·w and Σ w
    var, std                "moments"    n, s, mean, m2          (serves sum and mean of the column too)
    cov, corr, slope …      "comoments"  n, mean x, mean y, xx, yy, xy
    skew                    "skew"       n, mean, m2, m3
    kurtosis                "shape"      n, mean, m2, m3, m4
    min, max                "min", "max" m
    arg_max, arg_min        their own    x, extreme
    product                 "product"    m, e                    m * 2^e
    any, all, count_if      "sum"        how many are true
    decayed_sum, …          "decayed"    s, lost, k              of what is weighted as by its own time
    count_distinct          "distinct"   how many                (approx: of unbounded windows in engines "registers")
    mode                    "mode"       x
    quantile                "quantile"   two neighbours in sorted order, and how far from one to the other
    user-defined            "user"       what they say

Rows that do not count (a null in a column of the aggregate, a `where` that does not hold) are not in the positions.

Of decimals of more digits than int64 has (swag/tables/decimals.py) sum and mean read "sum" of four limbs, what has an
order reads numbers of words, as of text, and all else reads floats. Products and functions of users read floats of all
decimals.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators import monoids
from kernels.operators.decayed import Decayed
from kernels.operators.extreme_rows import ArgMax, ArgMin
from kernels.operators.products import Product
from kernels.operators.shape import Shape
from kernels.operators.skewness import Skewness
from swag.errors import BadType
from swag.query.aggregates import Aggregate
from swag.query.kind import AS_FLOAT, KINDS, SCALED, TIME, Part, Reads
from swag.query.try_out import try_out
from swag.query.user_defined import compiled
from swag.tables.columns import Clock, decoded_type, is_discrete, is_number
from swag.tables.decimals import is_wide, limb_names, sum_type
from swag.tables.expressions.types import is_text
from swag.tables.keys import is_groupable, is_spelled
from swag.tables.times.durations import in_units


def parts_of(aggregate: Aggregate, kinds: Mapping[str, pa.DataType] | None = None) -> tuple[Part, ...]:
    """kinds: of its columns, as far as they are known."""
    kind = KINDS[aggregate.kind]
    if kind.parts is not None:
        return kind.parts(aggregate)
    if not kind.family:
        return ()
    kept = columns_kept(aggregate, kinds or {})
    if aggregate.kind in OF_LIMBS and len(kept) > 1:
        return tuple(Part(kind.family, (each,)) for each in kept)
    return (Part(kind.family, kept, aggregate.user),)


OF_LIMBS = ("sum", "mean")  # kinds that add up decimals exactly


def is_summed(aggregate: Aggregate) -> bool:
    """Does it compute with numbers? Others count values, compare them, or hand them back."""
    kind = KINDS[aggregate.kind]
    return kind.scaled or (kind.degrees is not None and aggregate.method != "floor")


def columns_kept(aggregate: Aggregate, kinds: Mapping[str, pa.DataType]) -> tuple[str, ...]:
    """The columns that are kept for those of an aggregate. kinds: of its columns, as far as they are known."""
    return tuple(each for name in aggregate.columns for each in kept_for(aggregate, name, kinds.get(name, pa.null())))


def kept_for(aggregate: Aggregate, name: str, kind: pa.DataType) -> tuple[str, ...]:
    """The same of one of its columns: this itself, unless it is one of decimals."""
    kind = decoded_type(kind)
    if not pa.types.is_decimal(kind) or not is_summed(aggregate):
        return (name,)
    if KINDS[aggregate.kind].scaled:
        return (name + SCALED,)
    if not is_wide(kind):
        return (name,)
    return limb_names(name) if aggregate.kind in OF_LIMBS else (name + AS_FLOAT,)


def operator(part: Part) -> Any:
    """The monoid of a part that has one."""
    if part.user is not None:
        return compiled(part.user)
    return {
        "sum": monoids.Sum,
        "moments": monoids.Moments,
        "comoments": monoids.CoMoments,
        "min": monoids.Min,
        "max": monoids.Max,
        "skew": Skewness,
        "shape": Shape,
        "product": Product,
        "arg_max": ArgMax,
        "arg_min": ArgMin,
        "decayed": Decayed,
    }[part.family]()


def reads_of(aggregate: Aggregate) -> dict[str, Reads]:
    """What each column of an aggregate may be, by its name; of one that is named twice, the stricter."""
    reads, columns = KINDS[aggregate.kind].reads, aggregate.columns
    found: dict[str, Reads] = {}
    for name, read in zip(columns, reads if isinstance(reads, tuple) else (reads,) * len(columns), strict=True):
        if found.get(name, "anything") == "anything" or read != "anything":
            found[name] = read
    return found


def check_columns(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> list[str]:
    """Refuse an aggregate over columns it can not be computed of. Returns those that it computes with, or compares; of
    others values are counted, or handed back."""
    of = KINDS[aggregate.kind]
    computed, is_of_decimals = [], of.scaled or of.degrees is not None
    for name, reads in reads_of(aggregate).items():
        kind = decoded_type(kinds[name])
        if of.tells_apart and not (is_groupable(kind) or pa.types.is_null(kind)):
            raise BadType(
                f'{aggregate} tells values of "{name}" apart, but of type {kind} none are known to be equal.',
                "a column of numbers, text, times or booleans",
                name,
            )
        if reads == "anything":
            continue
        computed.append(name)
        if reads == "booleans" and not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise BadType(
                f'{aggregate} takes true and false, but "{name}" is a column of type {kind}.',
                f'"{name} > 0", or another condition',
                name,
            )
        if pa.types.is_decimal(kind) and reads != "booleans" and (reads == "what has an order" or is_of_decimals):
            if aggregate.user is not None:
                try_out(aggregate, pa.float64())
            continue
        if reads == "numbers" and not is_number(kind):
            as_number = pa.types.is_decimal(kind) or is_text(kind)
            raise BadType(
                f'{aggregate} computes with "{name}", a column of type {kind}.',
                f'CAST("{name}" AS DOUBLE)' if as_number else "cast it to float64 or int64",
                name,
            )
        if not (is_number(kind) or is_discrete(kind) or (reads == "what has an order" and is_spelled(kind))):
            raise BadType(
                f'{aggregate} reads "{name}", a column of type {kind}, of which it knows no order.',
                "numbers, times and booleans have one, and to sw.min, sw.max and sw.arg_max text has, too; sw.first, "
                "sw.last and sw.count take any type",
                name,
            )
        if aggregate.user is not None:
            try_out(aggregate, kind)
    return computed


def computed_columns(aggregate: Aggregate) -> list[str]:
    """The columns whose values are computed with, or compared: of others they are only counted, or handed back."""
    reads = reads_of(aggregate)
    return [name for name, read in reads.items() if read != "anything"]


def compared_columns(aggregate: Aggregate) -> list[str]:
    """Those whose values it compares, where these are no numbers that it computes with."""
    return [] if is_summed(aggregate) else computed_columns(aggregate)


def check_unit(aggregate: Aggregate, unit: str | None) -> None:
    """Refuse a half-life that is none in the unit of ts."""
    if aggregate.half_life is not None:
        in_units(aggregate.half_life, unit)


def result_type(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> pa.DataType:
    """Elements of a column keep its type, as quantiles do unless they are numbers between two. kinds: by name, that of
    TIME among them."""
    answers = KINDS[aggregate.kind].answers
    if answers in ("counts", "booleans"):
        return pa.int64() if answers == "counts" else pa.bool_()
    if answers == "durations":
        return duration_type(kinds[TIME])
    if answers == "floats" and aggregate.method != "floor":
        return kinds[aggregate.columns[0]] if is_between_times(aggregate, kinds) else pa.float64()
    kind = kinds[aggregate.columns[0]]
    if answers == "lists":
        return pa.list_(kind)
    if answers == "as the column" or aggregate.method == "floor":
        return kind
    if pa.types.is_decimal(kind):
        return sum_type(kind)
    return pa.int64() if is_discrete(kind) else pa.float64()


def is_between_times(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> bool:
    """Is it a quantile that lies between two times, and is one itself?"""
    return aggregate.method == "linear" and pa.types.is_temporal(decoded_type(kinds[aggregate.columns[0]]))


def unit_of(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> float:
    """What answers that are floats are to be divided by, where columns of decimals were whole numbers. Of wide ones
    only the mean is computed of such."""
    degrees = KINDS[aggregate.kind].degrees
    decimals = [name for name in aggregate.columns if pa.types.is_decimal(kinds[name])]
    if degrees is None or not decimals or result_type(aggregate, kinds) != pa.float64():
        return 1.0
    of = [decoded_type(kinds[name]) for name in aggregate.columns]
    whole = [pa.types.is_decimal(kind) and (aggregate.kind in OF_LIMBS or not is_wide(kind)) for kind in of]
    tens = sum(d * kind.scale for d, kind, some in zip(degrees, of, whole, strict=True) if some)
    return float(10.0**tens)


def duration_type(ts: pa.DataType) -> pa.DataType:
    """Of the time between two events: in the unit of ts, but for dates, as there is none of days."""
    unit = Clock(ts).unit
    return ts if pa.types.is_null(ts) else pa.int64() if unit is None else pa.duration("s" if unit == "d" else unit)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Answers of windows that hold n rows each, and which of them are not null (None: all).

    partials: for each part of the aggregate, its array or tuple of arrays. Empty windows hold anything in them.
    """
    return KINDS[aggregate.kind].lower(aggregate, n, partials)


def read_by(aggregates: Iterable[Aggregate]) -> tuple[int, ...] | None:
    """The places in a partial that any of these reads; None: all."""
    places: set[int] = set()
    for aggregate in aggregates:
        of = KINDS[aggregate.kind].of
        if of is None:
            return None
        places.update(of)
    return tuple(sorted(places))


def lower_into(aggregate: Aggregate, n: np.ndarray, partials: list[Any], out: np.ndarray) -> np.ndarray | None:
    """The same, into room for the answers."""
    into = KINDS[aggregate.kind].into
    if into is not None:
        return into(aggregate, n, partials, out)
    out[:], valid = lower(aggregate, n, partials)
    return valid
