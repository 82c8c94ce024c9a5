"""Strategies that several targets share: values, events, windows, queries."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from swag.query.kind import KINDS
from tests.every_kind import options_of, others
from tests.fuzz.asking import WHERE, Ask, Of
from tests.oracle import Range, Rows
from tests.oracle_ticks import Every


@st.composite
def programs(draw: st.DrawFn, step: Any, about: int = 20, most: int = 60) -> list[Any]:
    """Longer lists than Hypothesis makes of its own accord, of which it can leave any step out."""
    steps: list[Any] = []
    flagged = st.tuples(st.integers(0, about), step)
    while len(steps) < most:
        more, each = draw(flagged)
        if not more:
            break
        steps.append(each)
    return steps


# One choice for each value: drawing cases takes longer than anything else.
TAME = [0.0, 1.0, -1.0, 0.1, 2.7, -355.4807838986733, 98.6, 1e-9]
WILD = [1e9 + 0.5, 1e18, -1e18, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0]
COLUMNS: dict[str, Any] = {
    "x": st.sampled_from([None, *TAME, *WILD]),
    "y": st.sampled_from([None, 0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0]),
    "i": st.sampled_from([None, 0, 1, -1, 2, -2, 2**40, -(2**40), 2**53 + 1, -(2**55) - 1]),
    "n": st.sampled_from([None, 0, 1, 2, 3, 4, 5]),
    "p": st.sampled_from([None, 0.0, 0.5, 1.0, 2.5, 1e-3, 1e6]),
    "s": st.sampled_from([None, "", "bid", "ask", "buy"]),
    "b": st.sampled_from([None, True, False]),
}
GAPS = st.sampled_from([0, 0, 1, 1, 2, 5, 30])
KEYS = st.sampled_from("abcd")
EVENT = st.tuples(GAPS, KEYS, *COLUMNS.values())  # how long after the one before, its key, its columns

OF_ONE = [(kind, (column,)) for kind in ("sum", "mean", "min", "max", "first", "last") for column in "xinp"]
OF_ALL_KINDS = [
    Of("count"), *(Of("count", (column,)) for column in "xns"), *(Of(kind, columns) for kind, columns in OF_ONE),
    Of("first", ("s",)), Of("last", ("s",)), Of("var", ("x",), ddof=1), Of("var", ("i",), ddof=0),
    Of("std", ("y",), ddof=0), Of("std", ("n",), ddof=1), Of("wmean", ("x", "y")), Of("wmean", ("y", "n")),
    Of("cov", ("y", "n"), ddof=1), Of("cov", ("x", "i"), ddof=0), Of("corr", ("x", "y")), Of("corr", ("y", "n")),
    Of("quantile", ("x",), phi=0.3, method="floor"), Of("quantile", ("n",), phi=0.9, method="linear"),
    Of("quantile", ("i",), phi=1.0, method="floor"), Of("median", ("y",)),
    Of("skew", ("y",)), Of("skew", ("x",)), Of("kurtosis", ("n",)), Of("slope", ("x", "y")),
    Of("intercept", ("n", "y")), Of("r2", ("y", "n")), Of("product", ("x",)), Of("product", ("n",)), Of("any", ("b",)),
    Of("all", ("b",)), Of("count_if", ("b",)), Of("arg_max", ("s", "x")), Of("arg_max", ("n", "y")),
    Of("arg_min", ("b", "i")), Of("decayed_sum", ("x",), half_life=3), Of("decayed_sum", ("n",), half_life=50),
    Of("age"), Of("decayed_mean", ("y",), half_life=3), Of("decayed_count", half_life=7), Of("first_n", ("s",), n=2),
    Of("last_n", ("x",), n=3), *(Of(kind, (c,)) for kind in ("count_distinct", "mode") for c in "xnsb"),
]  # fmt: skip
OF_ALL_KINDS += [
    Of(each.kind, each.columns, **options_of(each)) for each in others((of.kind for of in OF_ALL_KINDS), "y")
]
# Of lists there are no conditions, nor of these others against numbers.
NO_CONDITION = {"mode", *(kind.name for kind in KINDS.values() if kind.answers in ("lists", "durations", "booleans"))}
AGGREGATES = st.sampled_from(OF_ALL_KINDS)
EXACT = st.sampled_from(
    [
        Of("count"),
        Of("count", ("y",)),
        *(Of(kind, (c,)) for kind in ("sum", "min", "max", "first", "last") for c in "yn"),
    ]
)  # of what they give nothing is rounded, so conditions and arithmetic over them are certain


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    until = draw(st.sampled_from([0, 0, 0, 1, 3]))
    return Rows(until + draw(st.integers(1, 12)), until)


@st.composite
def ranges(draw: st.DrawFn, until: bool = True) -> Range:
    near = draw(st.sampled_from([0, 0, 0, 1, 4])) if until else 0
    closed = draw(st.sampled_from(["right", "right", "left", "both", "none"])) if until else "right"
    return Range(near + draw(st.integers(1, 20) | st.sampled_from([50, 1000])), near, closed)


WINDOWS = st.one_of(rows(), ranges(), ranges(until=False))
CONDITIONS = [where for where in WHERE if where and "v" not in where]
FILTERS = st.none() | st.sampled_from(CONDITIONS)
NUMBERS = st.integers(-1, 6) | st.sampled_from([0.5, 2.5, -1.5, 1e9, 2**41, 2**53 + 1])
BOUNDS = NUMBERS | st.sampled_from([1e300, 5e-324, math.inf, -math.inf, 10**18, 1e-300])
PLAIN_CONDITIONS = st.tuples(st.sampled_from([">", ">=", "<", "<="]), BOUNDS) | st.tuples(
    st.just("between"), st.integers(-1, 2), st.integers(2, 9)
)
FREQUENCIES = st.builds(Every, rows=st.integers(1, 7), per_key=st.booleans()) | st.builds(
    Every, time=st.integers(1, 9), anchor=st.sampled_from(["tick", "tuple"]), per_key=st.booleans()
)


@st.composite
def leaves(draw: st.DrawFn) -> Of:
    of = draw(EXACT)
    window, where = draw(st.none() | WINDOWS), draw(st.none() | FILTERS)
    return replace(of, window=window, where=where)


@st.composite
def terms(draw: st.DrawFn, depth: int = 2) -> Any:
    """A number computed from aggregates."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(leaves())
    op = draw(st.sampled_from(["+", "-", "*", "/", "neg", "abs", "coalesce"]))
    rest = [] if op in ("neg", "abs") else [draw(terms(depth - 1) | st.sampled_from([0, 1, -3, 0.5]))]
    return (op, draw(terms(depth - 1)), *rest)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 1) -> Any:
    """A condition over aggregates."""
    if depth and draw(st.booleans()):
        op = draw(st.sampled_from(["and", "or", "not"]))
        return (op, *(draw(conditions(depth - 1)) for _ in range(1 if op == "not" else 2)))
    op = draw(st.sampled_from([">", ">=", "<", "<=", "=", "<>", "between", "is null"]))
    bounds = {"between": 2, "is null": 0}.get(op, 1)
    return (op, draw(terms(1)), *(draw(st.sampled_from([0, 1, 2, 0.5, -1])) for _ in range(bounds)))


@st.composite
def simple_asks(draw: st.DrawFn, aggregates: Any = AGGREGATES, conditions: Any = PLAIN_CONDITIONS) -> Ask:
    of = draw(aggregates)
    plain = of.kind == "count" or (of.columns[:1] not in (("s",), ("b",)) and of.kind not in NO_CONDITION)
    having = draw(st.none() | conditions) if plain else None
    return Ask(of, draw(WINDOWS), draw(FILTERS), having, draw(st.sampled_from([True, True, False])))


@st.composite
def computed_asks(draw: st.DrawFn) -> Ask:
    """Expressions over several aggregates, conditions over several, or both."""
    having = draw(st.none() | conditions() | PLAIN_CONDITIONS)
    return Ask(draw(terms()), draw(WINDOWS), draw(FILTERS), having, draw(st.booleans()))
