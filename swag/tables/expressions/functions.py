"""What expressions may say: for each operator and function, by sqlglot's name for it, the Arrow function that does it.

A new function is a line: `takes` are the names that sqlglot has for its operands, `*` before one that is a list.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swag.tables import arithmetic
from swag.tables.expressions import logic, numbers, texts, times
from swag.tables.expressions.numbers import floats, kept_whole, tested
from swag.tables.expressions.texts import of_text

ONE, TWO = ("this",), ("this", "expression")


class Operation(NamedTuple):
    """A function of Arrow columns, the operands it takes, and those of them that are the same for all rows."""

    kernel: Callable[..., Any]
    takes: tuple[str, ...]
    constant: tuple[str, ...] = ()


def _one(kernel: Callable[..., Any]) -> Operation:
    return Operation(kernel, ONE)


def _two(kernel: Callable[..., Any]) -> Operation:
    return Operation(kernel, TWO)


def _by(kernel: Callable[..., Any], *constant: str) -> Operation:
    """A function of one column, and of constants."""
    return Operation(kernel, (*ONE, *constant), constant)


OPERATIONS: dict[str, Operation] = {
    "EQ": _two(logic.compare("=")), "NEQ": _two(logic.compare("<>")), "LT": _two(logic.compare("<")),
    "LTE": _two(logic.compare("<=")), "GT": _two(logic.compare(">")), "GTE": _two(logic.compare(">=")),
    "Not": _one(lambda a: pc.invert(logic.truth(a))),
    "NullSafeEQ": _two(logic.same), "NullSafeNEQ": _two(logic.distinct), "Nullif": _two(logic.nullif),
    "In": Operation(logic.among, ("this", "*expressions")),
    # numbers
    "Add": _two(numbers.plus), "Sub": _two(numbers.minus), "Mul": _two(arithmetic.multiply),
    "Div": _two(arithmetic.divide), "Mod": _two(numbers.remainder), "IntDiv": _two(numbers.quotient),
    "Neg": _one(arithmetic.negate), "Abs": _one(arithmetic.absolute), "Sign": _one(numbers.sign),
    "Round": _by(numbers.rounded, "decimals"), "Trunc": _one(kept_whole(pc.trunc)),
    "Floor": _one(kept_whole(pc.floor)), "Ceil": _one(kept_whole(pc.ceil)),
    "Greatest": Operation(numbers.greatest, ("this", "*expressions")),
    "Least": Operation(numbers.least, ("this", "*expressions")),
    "Sqrt": _one(floats(pc.sqrt)), "Cbrt": _one(numbers.cube_root), "Exp": _one(floats(pc.exp)),
    "Ln": _one(floats(pc.ln)), "Log": _two(numbers.logarithm), "Pow": _two(floats(pc.power)),
    "Sin": _one(floats(pc.sin)), "Cos": _one(floats(pc.cos)), "Tan": _one(floats(pc.tan)),
    "Asin": _one(floats(pc.asin)), "Acos": _one(floats(pc.acos)), "Atan": _one(floats(pc.atan)),
    "Atan2": _two(floats(pc.atan2)), "Pi": Operation(lambda: pa.scalar(3.141592653589793), ()),
    "IsNan": _one(tested(pc.is_nan)), "IsInf": _one(tested(pc.is_inf)),
    # text
    "Length": _one(of_text(texts.length)), "Lower": _one(of_text(pc.utf8_lower)),
    "Upper": _one(of_text(pc.utf8_upper)), "Reverse": _one(of_text(pc.utf8_reverse)),
    "Substring": _by(of_text(texts.substring), "start", "length"),
    "Left": _by(of_text(texts.left), "expression"), "Right": _by(of_text(texts.right), "expression"),
    "DPipe": _two(texts.joined), "Concat": Operation(texts.concatenated, ("*expressions",)),
    "Replace": _by(of_text(texts.replaced), "expression", "replacement"),
    "Like": _by(texts.like, "expression"), "ILike": _by(partial(texts.like, ignore_case=True), "expression"),
    "StartsWith": _by(of_text(texts.begins), "expression"), "EndsWith": _by(of_text(texts.ends), "expression"),
    "Contains": _by(of_text(texts.holds), "expression"), "RegexpLike": _by(of_text(texts.matches), "expression"),
    # times
    "TimeToUnix": _one(times.epoch),
}  # fmt: skip
OPERATIONS |= {
    name: _one(times.part(of))
    for name, of in {
        "Year": "year", "Quarter": "quarter", "Month": "month", "Week": "week", "WeekOfYear": "week", "Day": "day",
        "DayOfMonth": "day", "Hour": "hour", "Minute": "minute", "Second": "second", "DayOfWeek": "dow",
        "DayOfWeekIso": "isodow", "DayOfYear": "doy",
    }.items()
}  # fmt: skip

CALLS: dict[str, Operation] = {  # functions that sqlglot has no class for
    name: Operation(kernel, ("*expressions",))
    for name, kernel in {
        "ISFINITE": tested(pc.is_finite), "MILLISECOND": times.part("millisecond"), "WEEKDAY": times.part("dow"),
        "MICROSECOND": times.part("microsecond"), "EPOCH": times.epoch,
    }.items()
}  # fmt: skip

THERE_ARE = "comparisons, + - * / %, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASE, CAST, ABS …: see docs/sql.md"


def takes_of(name: str) -> tuple[str, ...]:
    """What a function takes, as an example of each; nothing where that is not known."""
    from sqlglot import exp

    called = exp.FUNCTION_BY_NAME.get(name.upper())
    found = OPERATIONS.get(called.__name__) if called is not None else None
    return () if found is None else tuple("xyz"[: len(found.takes)]) + ("…",) * ("*expressions" in found.takes)
