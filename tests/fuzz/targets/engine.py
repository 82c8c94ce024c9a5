"""An engine through anything: queries of every kind come and go while events do, time passes, it is saved and loaded.

A case is an engine, its first queries and a list of steps: the names of the methods of Driven, and their arguments.
"""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import clocks, drawing
from tests.fuzz.asking import Ask, Of
from tests.fuzz.driven import HUGE, Driven, Ended
from tests.fuzz.target import Target, plain

NAMES = ("q0", "q1", "q2", "q3", "q4")


@st.composite
def ticking_asks(draw: st.DrawFn) -> Ask:
    of = draw(drawing.EXACT | st.sampled_from([Of("sum", ("i",)), Of("max", ("i",)), Of("last", ("s",))]))
    having, where = draw(st.none() | st.tuples(st.sampled_from([">", "<="]), st.integers(0, 3))), draw(drawing.FILTERS)
    source = draw(st.none() | st.sampled_from(drawing.CONDITIONS))
    having = None if of.columns == ("s",) else having
    return Ask(of, draw(drawing.WINDOWS), where, having, every=draw(drawing.FREQUENCIES), source=source)


@st.composite
def chosen_asks(draw: st.DrawFn) -> Ask:
    of = draw(drawing.AGGREGATES)
    return Ask(of, draw(drawing.WINDOWS), draw(drawing.FILTERS), source=draw(st.sampled_from(drawing.CONDITIONS)))


ASKS = st.one_of(
    drawing.simple_asks(), drawing.simple_asks(drawing.EXACT), drawing.computed_asks(), ticking_asks(), chosen_asks()
)
BACK = st.sampled_from([None, None, 0, 1, 5, 20, -1, -7, -100])
NUMBER = st.integers(0, 9)
LATE = st.sampled_from([0, 0, 0, 0, 1, 4, 25])
EVENTS = st.lists(st.tuples(LATE, drawing.EVENT), max_size=10)
IN_ORDER = st.lists(st.tuples(st.just(0), drawing.EVENT), max_size=10)
STEP = st.one_of(
    st.tuples(st.just("append"), IN_ORDER),
    st.tuples(st.just("append"), IN_ORDER),
    st.tuples(st.just("append"), EVENTS),
    st.tuples(st.just("register"), st.sampled_from(NAMES), ASKS),
    st.tuples(st.just("unregister"), NUMBER),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 10, 100, HUGE])),
    st.tuples(st.just("lookup"), NUMBER, st.sampled_from(["a", "b", "never seen"]), BACK),
    st.tuples(st.just("lookup"), NUMBER, st.none(), BACK),
    st.tuples(st.just("lookup_all"), BACK),
    st.tuples(st.just("filters"), BACK),
    st.tuples(st.just("emitted")),
    st.tuples(st.just("save")),
)
CASES = st.fixed_dictionaries(
    {
        "key": st.sampled_from([None, "k"]),
        "lateness": st.sampled_from([None, None, 0, 3, 20]),
        "hold": st.sampled_from([True, True, False]),
        "algorithm": st.sampled_from(["auto", "auto", "auto", "b-int", "l-int", "r-int"]),
        "clock": st.sampled_from(["integer", "integer", *clocks.TYPES]),
        "queries": st.lists(ASKS, max_size=4),
        "steps": drawing.programs(STEP),
    }
)


def check(case: dict[str, Any]) -> None:
    driven = Driven(case["key"], case["lateness"], case["hold"], case["algorithm"], case["clock"])
    with contextlib.suppress(Ended):
        for name, ask in zip(NAMES, case["queries"], strict=False):
            driven.register(name, ask)
        for what, *arguments in case["steps"]:
            getattr(driven, what)(*arguments)
            driven.counted()
        driven.conclude()


def target() -> Target:
    return plain("engine", CASES, check, lambda case: len(case["steps"]))
