"""Rows of events as the search for matches wants them: which conditions hold, and numbers for those over the match."""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frames.patterns.compiled import Compiled
from frames.patterns.conditions import MEASURE, parsed
from kernels.frames.backtracking import Growing
from swag.errors import BadEvents, BadType
from swag.tables.columns import column, decoded, one_chunk
from swag.tables.expressions.expression import compiled, saying, values
from swag.tables.expressions.logic import satisfied

CONDITIONS_AT_ONCE = 1 << 16  # rows whose columns stay in the cache while their conditions are computed
UNITS = ("s", "ms", "us", "ns")
EXACT = 2**53  # whole numbers that float64 has
NEVER_FAIL = frozenset(  # nodes of SQL that compare, and put comparisons together
    ("And", "Or", "Not", "Paren", "LT", "LTE", "GT", "GTE", "EQ", "NEQ", "In", "Is", "Between", "Like", "Null",
     "Boolean", "Column", "Identifier", "Literal")
)  # fmt: skip


def counted(table: pa.Table, size: int) -> pa.Table:
    """The same rows, if there are columns: without any, Arrow loses count of them."""
    return table if table.num_columns else pa.table({"": np.zeros(size, bool)})


def value_of(text: str, table: pa.Table, what: str = "the pattern reads") -> pa.Array:
    """SQL over columns, a value for each row."""
    expression = compiled(text)
    for name in sorted(expression.columns):
        column(table, name, what)
    return decoded(one_chunk(values(expression, table, f"{what} {text}, which")))


def in_order(pattern: Compiled, table: pa.Table, first: np.ndarray) -> pa.Table:
    """Rows in order, with what the rows before them have. first: where the rows of each row's key begin."""
    at = np.arange(table.num_rows)
    found = table
    for each in pattern.shifted:
        there = at - each.back >= first
        rows = pa.array(np.where(there, at - each.back, 0), mask=~there)
        found = found.append_column(each.name, value_of(each.text, table).take(rows))
    return found


def holding(pattern: Compiled, table: pa.Table, symbols: Iterable[int], out: np.ndarray) -> None:
    """out[row] |= 1 << i, where the condition of the i-th of these symbols holds for the row, as far as rows decide it.

    Symbols without such a condition hold everywhere."""
    for begin in range(0, table.num_rows, CONDITIONS_AT_ONCE) or (0,):
        piece, here = table.slice(begin, CONDITIONS_AT_ONCE), out[begin : begin + CONDITIONS_AT_ONCE]
        for i, symbol in enumerate(symbols):
            text = pattern.conditions[symbol].rows
            here |= (np.ones(here.size, bool) if text is None else satisfying(pattern, symbol, piece)).astype(
                out.dtype
            ) << out.dtype.type(i)


def satisfying(pattern: Compiled, symbol: int, rows: pa.Table) -> np.ndarray:
    """For which rows the condition of a symbol holds, as far as rows decide it."""
    text = pattern.conditions[symbol].rows or "TRUE"
    predicate = compiled(text)
    what = f"DEFINE {pattern.symbols[symbol]} AS {text}"
    for name in sorted(predicate.columns):
        column(rows, name, f"{what} reads")
    with saying(what, predicate, rows):
        return satisfied(predicate.links, predicate.rows(rows))


def try_out(pattern: Compiled, rows: pa.Table) -> None:
    """Raise if a condition about a row alone can not be computed of one of these. Those about rows before it are only
    known to fail when they are searched."""
    for symbol in pattern.conditional:
        if may_fail(pattern.conditions[symbol].rows or ""):
            satisfying(pattern, symbol, rows)


@lru_cache(maxsize=256)
def may_fail(text: str) -> bool:
    """Does SQL over columns of one row do more than to compare them? Comparisons never fail."""
    reads_before = any(name.startswith(("PREV(", MEASURE)) for name in compiled(text).columns)
    return not reads_before and any(type(node).__name__ not in NEVER_FAIL for node in parsed(text, text).walk())


def growing(pattern: Compiled, table: pa.Table) -> Growing:
    """The columns that conditions over the match so far read, as float64: null is NaN, times count from one of them."""
    found = pattern.programs
    arrays = [None if text is None else value_of(text, table) for text in found.columns]
    times = [each for each in arrays if each is not None and pa.types.is_temporal(each.type)]
    unit = max((getattr(each.type, "unit", "s") for each in times), key=UNITS.index, default="s")
    origin = min((int(_whole(each, unit).min()) for each in times if _is_instant(each) and _some(each)), default=0)
    numbers, there = np.ones((len(arrays), table.num_rows)), np.ones((len(arrays), table.num_rows), bool)
    for i, (text, each) in enumerate(zip(found.columns, arrays, strict=True)):
        if each is not None:
            numbers[i], there[i] = _numbers(text or "", each, unit, origin), each.is_valid()
    kinds, of, columns, steps, starts, constants, _, _ = found.growing
    return Growing(kinds, of, columns, steps, starts, constants, numbers, there)


def try_numbers(pattern: Compiled, rows: pa.Table) -> None:
    """Raise if conditions over the match so far can not read what one of these has, whatever rows come before it."""
    before = {each.name for each in pattern.shifted}
    for text in pattern.programs.columns:
        if text is not None and not before & set(compiled(text).columns):
            array = value_of(text, rows)
            if pa.types.is_integer(array.type):
                _numbers(text, array, UNITS[0], 0)


def _numbers(text: str, array: pa.Array, unit: str, origin: int) -> np.ndarray:
    kind = array.type
    if pa.types.is_temporal(kind):
        away = _whole(array, unit) - (origin if _is_instant(array) else 0)
    elif pa.types.is_integer(kind):
        away = np.asarray(array.fill_null(0).cast(pa.int64()))
    elif pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return np.asarray(array.cast(pa.float64()).fill_null(np.nan))
    else:
        raise BadType(
            f"DEFINE compares {text}, of type {kind}, with the match so far.",
            "numbers and times; text of rows alone",
            about=text,
        )
    if away.size and max(int(away.max()), -int(away.min())) > EXACT:
        raise BadEvents(
            f"DEFINE reads {text} beyond 2^53, where numbers are not exact.", "smaller ones: x - 1700000000"
        )
    return np.where(np.asarray(array.is_valid()), away.astype(np.float64), np.nan)


def _is_instant(array: pa.Array) -> bool:
    return bool(pa.types.is_timestamp(array.type) or pa.types.is_date(array.type))


def _some(array: pa.Array) -> bool:
    return len(array) > array.null_count


def _whole(array: pa.Array, unit: str) -> np.ndarray:
    """Times and durations as whole numbers of a unit; 0 for null."""
    kind = array.type
    if _is_instant(array):
        array = array.cast(pa.timestamp(unit, getattr(kind, "tz", None)))
    elif pa.types.is_duration(kind):
        array = array.cast(pa.duration(unit))
    else:
        raise BadType(f"DEFINE compares values of type {kind} with the match so far.", "timestamps and intervals")
    return np.asarray(pc.cast(array, pa.int64()).fill_null(0))
