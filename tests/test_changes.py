"""`engine.changes()`: who began or ceased to pass, against the oracle asked at every instant that could matter.

What was told adds up to `filters()` at every call, however the stream was cut, saved, loaded; and `ts` is when the
present state began, as the oracle finds by looking at every event, and at every instant at which one left a window.
"""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import swag as sw
from swag.live import store
from swag.live.alerting import alerts
from tests import oracle

EVENT = st.fixed_dictionaries(
    {
        "gap": st.sampled_from([0, 0, 0, 1, 1, 2, 7, 40]),
        "back": st.integers(0, 9),
        "k": st.integers(0, 3),
        "g": st.sampled_from(["u", "v"]),
        "x": st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 7.25, math.nan, math.inf])),
        "i": st.one_of(st.none(), st.integers(0, 5)),
        "z": st.one_of(st.none(), st.integers(-4, 4)),
    }
)
COLUMNS = ("k", "g", "x", "i", "z")
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("g", pa.string()), ("x", pa.float64()), ("i", pa.int64()),
                    ("z", pa.int64())])  # fmt: skip
AGGREGATES = [("count", ()), ("count", ()), ("count", ("x",)), ("sum", ("i",)), ("sum", ("x",)), ("sum", ("z",)),
              ("max", ("z",)), ("min", ("z",)), ("max", ("x",)), ("min", ("x",)), ("mean", ("z",)),
              ("last", ("i",)), ("spread", ("z",))]  # fmt: skip
WHERE = {None: None, "z > 0": lambda e: None if e["z"] is None else e["z"] > 0}
GROUPINGS = [("k",), ("k",), ("k",), ("g",), (), ("k", "g")]
RULES = st.tuples(
    st.sampled_from(AGGREGATES),
    st.one_of(
        st.tuples(st.sampled_from([1, 3, 10, 25]), st.just(0), st.sampled_from(["right", "right", "both", "left"])),
        st.tuples(st.sampled_from([10, 25]), st.sampled_from([0, 1, 4]), st.sampled_from(["right", "left", "none"])),
        st.sampled_from([(2, 0, None), (3, 1, None)]),
    ),
    st.sampled_from([None, None, None, "z > 0"]),
    st.one_of(
        st.tuples(st.sampled_from([">", ">=", "<", "<="]), st.sampled_from([-1, 0, 1, 2, 3, 0.5, 7.25, math.inf])),
        st.just(("between", 1, 2)),
    ),
    st.sampled_from(GROUPINGS),
)  # fmt: skip


def answer(query, window):
    """Over a window; None where it is empty. An expression, the spread, is no aggregate of the oracle's."""
    if not window or query.agg.kind != "spread":
        return oracle.aggregate(query.agg, window) if window else None
    values = [e["z"] for e in window if e["z"] is not None]
    return max(values) - min(values) if values else None


@dataclass
class Watched:
    """A rule, as the oracle knows it, and what was seen and told of it."""

    theirs: oracle.Q
    by: tuple[str, ...]
    born: float
    exact: bool  # is all there that it is answered from?
    seen: dict[Any, Any]  # by key that passes: True
    began: dict[Any, float | None]
    told: dict[Any, Any]


class ChangesMachine(RuleBasedStateMachine):
    @initialize(order=st.sampled_from([{}, {}, {"lateness": 9}, {"lateness": 9, "hold": False}]), keeps=st.booleans(),
                asked=st.booleans(), chosen=st.lists(RULES, min_size=1, max_size=5),
                clock=st.sampled_from([0, -1000]))  # fmt: skip
    def start(self, order, keeps, asked, chosen, clock):
        self.engine = sw.Engine(key="k", **order)
        self.truth = oracle.Engine(**order)
        self.clock, self.rules, self.looked, self.keeps, self.number = clock, {}, {}, keeps, 0
        if keeps:
            for by in dict.fromkeys(GROUPINGS):
                for column in (None, "x", "i", "z"):
                    kept = sw.count() if column is None else sw.max(column)
                    self.engine.register(sw.Query(kept, sw.Range(10**6), name=f"{by} {column}", by=by))
        for each in chosen:
            self.register(each)
        if asked:
            self.ask()

    # -- rules --------------------------------------------------------------------------------------------------------

    @rule(chosen=RULES)
    def register(self, chosen):
        (kind, columns), (t, until, closed), where, having, by = chosen
        self.number += 1
        name = f"rule {self.number}"
        window, theirs = (sw.Rows(t, until), oracle.Rows(t, until)) if closed is None else (
            sw.Range(t, until, closed), oracle.Range(t, until, closed))  # fmt: skip
        ours = sw.max("z") - sw.min("z") if kind == "spread" else getattr(sw, kind)(*columns)
        index = columns != ("z",) or kind != "sum"
        self.engine.register(sw.Query(ours, window, name, where, having, index, by=by))
        first = not self.truth.taken
        exact = first or (self.keeps and where is None)
        now = self.truth.watermark
        self.rules[name] = Watched(oracle.Q(oracle.agg(kind, *columns), theirs, WHERE[where], having), by,
                                   -math.inf if first else now, exact, {}, {}, {})  # fmt: skip

    @precondition(lambda self: self.rules)
    @rule(data=st.data())
    def unregister(self, data):
        name = data.draw(st.sampled_from(sorted(self.rules)))
        del self.rules[name]
        self.engine.unregister(name)

    # -- events -------------------------------------------------------------------------------------------------------

    def row(self, event):
        self.clock += event["gap"]
        back = min(event["back"], self.truth.lateness or 0)
        return {"ts": self.clock - back} | {name: event[name] for name in COLUMNS}

    @rule(drawn=st.lists(EVENT, min_size=1, max_size=12), cuts=st.integers(1, 4))
    def append(self, drawn, cuts):
        rows = [self.row(event) for event in drawn]
        for begin in range(0, len(rows), cuts):
            some = rows[begin : begin + cuts]
            assert self.engine.append(pa.Table.from_pylist(some, SCHEMA)) == self.truth.append(some)

    @rule(gap=st.sampled_from([0, 1, 3, 12, 60]))
    def advance(self, gap):
        self.clock += gap
        self.engine.advance(self.clock)
        self.truth.advance(self.clock)

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            self.engine.save(Path(folder) / "snapshot")
            self.engine = sw.Engine.load(Path(folder) / "snapshot")

    @rule()
    def look_again(self):
        """What was known of the future is forgotten."""
        for stream in self.engine._streams.streams.values():
            stream.core.alerts.look_again()

    # -- what is told -------------------------------------------------------------------------------------------------

    @rule()
    def ask(self):
        self.compare(self.engine.changes(), list(self.rules))

    @rule()
    def ask_again(self):
        self.ask()
        assert self.engine.changes().num_rows == 0

    @rule(gaps=st.lists(st.sampled_from([1, 1, 2, 3, 9]), min_size=2, max_size=5))
    def ask_as_time_passes(self, gaps):
        for gap in gaps:
            self.advance(gap)
            self.ask()

    @precondition(lambda self: self.rules)
    @rule(data=st.data())
    def ask_by_name(self, data):
        name = data.draw(st.sampled_from(sorted(self.rules)))
        self.compare(self.engine.changes(name), [name])

    def compare(self, table, names):
        groupings = {self.rules[name].by for name in names}
        for watched in self.rules.values():
            if watched.by in groupings and self.truth.taken:
                self.look(watched)
        for by in groupings:
            self.looked[by] = self.truth.watermark if self.truth.taken else -math.inf  # time begins with an event
        for name in names:
            watched = self.rules[name]
            rows = {tuple(row.get(c) for c in watched.by): row for row in table.to_pylist() if row["query"] == name}
            self.check(name, watched, rows)
            watched.told = dict(watched.seen)
            passing = self.engine.filters(name).to_pylist()
            assert {tuple(row[c] for c in watched.by) for row in passing} == set(watched.told), name

    def look(self, watched):
        """What the oracle sees now, and since when."""
        events = self.truth.applied()
        now, since = self.truth.watermark, max(watched.born, self.looked.get(watched.by, -math.inf))
        for key in {tuple(e[c] for c in watched.by) for e in events}:
            past = [e for e in events if tuple(e[c] for c in watched.by) == key]
            passes = self.passes(watched, past, now)
            if passes != (key in watched.seen):
                unknown = not self.keeps and watched.by not in self.looked  # rows are kept from the first call on
                watched.began[key] = None if unknown else self.began(watched, past, passes, since, now)
                if passes:
                    watched.seen[key] = True
                else:
                    del watched.seen[key]

    def passes(self, watched, past, at):
        window = oracle.window_at_time(watched.theirs, past, at)
        value, (op, *bounds) = answer(watched.theirs, window), watched.theirs.having
        return value is not None and value == value and oracle.CONDITIONS[op](value, *bounds)

    def began(self, watched, past, passes, since, now):
        """Every event, and every instant at which one could enter or leave."""
        lengths = {0, 1, *(getattr(watched.theirs.window, n, 0) + d for n in ("t", "until") for d in (0, 1))}
        instants = {e["ts"] + length for e in past for length in lengths}
        instants = sorted({i for i in instants if since < i <= now} | ({since} if since > -math.inf else set()))
        first = instants[-1] if instants else since
        for instant in reversed(instants):
            if self.passes(watched, past, instant) != passes:
                break
            first = instant
        return first

    def check(self, name, watched, rows):
        """Rows of those, and only those, that are otherwise than was told."""
        changed = set(watched.seen) ^ set(watched.told)
        if not watched.exact:  # what it was answered from is not all there
            passing = {tuple(row[c] for c in watched.by) for row in self.engine.filters(name).to_pylist()}
            assert {key for key, row in rows.items() if row["passing"]} == passing - set(watched.told)
            assert {key for key, row in rows.items() if not row["passing"]} == set(watched.told) - passing
            watched.seen = dict.fromkeys(passing, True)
            return
        assert set(rows) == changed, (name, watched.theirs)
        now, events = self.truth.watermark, self.truth.applied()
        for key, row in rows.items():
            past = [e for e in events if tuple(e[c] for c in watched.by) == key]
            window = oracle.window_at_time(watched.theirs, past, now)
            value = answer(watched.theirs, window)
            value = float(value) if isinstance(row["value"], float) and value is not None else value  # beside floats
            assert row["passing"] == (key in watched.seen)
            off = 0.0 if watched.theirs.agg.kind == "spread" else oracle.tolerance(watched.theirs.agg, window)
            assert oracle.same(value, row["value"], off), (name, key)
            assert watched.began[key] in (None, row["ts"]), (name, key, watched.theirs, past)


class EagerChangesMachine(ChangesMachine):
    """What is seen is brought up to date unasked, as it is where many events have come."""

    def __init__(self):
        super().__init__()
        self.many, alerts.MANY_EVENTS = alerts.MANY_EVENTS, 3

    def teardown(self):
        alerts.MANY_EVENTS = self.many

    def check(self, name, watched, rows):
        """When it looked is not known here: only what is told counts."""
        passing = {tuple(row[c] for c in watched.by) for row in self.engine.filters(name).to_pylist()}
        assert {key for key, row in rows.items() if row["passing"]} == passing - set(watched.told)
        assert {key for key, row in rows.items() if not row["passing"]} == set(watched.told) - passing
        watched.seen = dict.fromkeys(passing, True)


class ForgetfulChangesMachine(ChangesMachine):
    """Keys that come and go, and are numbered anew as soon as half of them have gone."""

    def __init__(self):
        super().__init__()
        self.many, store.MANY_KEYS = store.MANY_KEYS, 2

    def teardown(self):
        store.MANY_KEYS = self.many

    def row(self, event):
        found = super().row(event)
        return found | {"k": found["k"] + 4 * (found["ts"] // 30)}


RUN = settings(
    max_examples=settings().max_examples * 3 // 10, stateful_step_count=25, deadline=None, report_multiple_bugs=False
)
TestChanges = ChangesMachine.TestCase
TestChanges.settings = RUN
TestEagerChanges = EagerChangesMachine.TestCase
TestEagerChanges.settings = RUN
TestForgetfulChanges = ForgetfulChangesMachine.TestCase
TestForgetfulChanges.settings = RUN


def test_what_ceases_before_1970_is_told():
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.count(), sw.Range(1), name="any", having=(">", 0)))
    engine.append({"ts": [-5], "k": [1]})
    assert engine.changes()["ts"].to_pylist() == [-5]
    engine.advance(-3)
    assert engine.changes().to_pylist() == [{"query": "any", "k": 1, "ts": -4, "value": None, "passing": False}]


def test_rows_are_kept_for_what_is_to_be_told_also_where_late_events_are_put_into_their_place():
    engine = sw.Engine(key="k", lateness=2, hold=False)
    engine.register(sw.Query(sw.count(), sw.Range(10), name="busy", having=(">", 1)))
    engine.append({"ts": [1, 2, 9], "k": [1, 1, 1]})
    assert engine.changes().to_pylist() == [{"query": "busy", "k": 1, "ts": 2, "value": 3, "passing": True}]
    engine.advance(100)
    assert engine.changes().to_pylist() == [{"query": "busy", "k": 1, "ts": 12, "value": None, "passing": False}]
