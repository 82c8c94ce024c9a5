"""Hundreds of alert rules over many keys: all of them at once, and what has changed, beside NumPy by hand."""

import statistics
from typing import Any

import numpy as np
import pyarrow as pa

import swag as sw
from bench.report import Finding, Report, Table
from bench.timing import elapsed

SPAN = 1_000_000  # of time, in which all events lie
WINDOWS = 20
BATCH = 1_000


class Workload:
    """Events of many keys, and rules over counts and sums, each of which some of these keys pass."""

    def __init__(self, keys: int, events: int, rules: int, passing: int) -> None:
        rng = np.random.default_rng(1)
        self.keys, self.rng = keys, rng
        self.ts, self.k = np.sort(rng.integers(0, SPAN, events)), rng.integers(0, keys, events)
        self.x = rng.integers(1, 100, events)
        self.now = int(self.ts[-1])
        self.rules = [self._rule(i, passing) for i in range(rules)]

    def _rule(self, i: int, passing: int) -> sw.Query:
        t = int(np.linspace(SPAN // 20, SPAN // 2, WINDOWS)[i % WINDOWS])
        kind = "count" if i // WINDOWS % 2 else "sum"
        v = int(np.partition(self._answers(kind, t), -passing)[-passing]) + 1 + i // (2 * WINDOWS) % 3
        aggregate = sw.count() if kind == "count" else sw.sum("x")
        return sw.Query(aggregate, sw.Range(t), name=f"rule {i}", having=(">=", v))

    def _answers(self, kind: str, t: int) -> Any:
        begin = np.searchsorted(self.ts, self.now - t, "right")
        return np.bincount(self.k[begin:], None if kind == "count" else self.x[begin:], self.keys)

    def by_hand(self) -> int:
        """One bincount for each aggregate and window, then all thresholds; how many rows."""
        answers: dict[Any, Any] = {}
        found = 0
        for rule in self.rules:
            key = rule.aggregate.kind, rule.window.t
            if key not in answers:
                answers[key] = self._answers(*key)
            keys = np.flatnonzero(answers[key] >= rule.having[1])
            found += answers[key][keys].size
        return found

    def engine(self) -> sw.Engine:
        engine = sw.Engine(key="k")
        engine.register(self.rules)
        for rows in np.array_split(np.arange(self.ts.size), max(1, self.ts.size // 100_000)):
            engine.append({"ts": self.ts[rows], "k": self.k[rows], "x": self.x[rows]})
        return engine

    def batch(self) -> pa.Table:
        """As many events to the unit of time as there were so far."""
        ts = np.sort(self.now + self.rng.integers(0, max(1, SPAN * BATCH // self.ts.size), BATCH))
        self.now = int(ts[-1])
        return pa.table({"ts": ts, "k": self.rng.integers(0, self.keys, BATCH), "x": self.rng.integers(1, 100, BATCH)})


def measured(keys: int, events: int, rules: int, rounds: int) -> list[Any]:
    """In turns; medians, in milliseconds."""
    work = Workload(keys, events, rules, max(2, keys // 2_000))
    engine = work.engine()
    rows = engine.filters().num_rows
    assert rows == work.by_hand()
    turns = [(elapsed(engine.filters), elapsed(work.by_hand)) for _ in range(rounds)]
    engine.changes()
    changes, told = [], []
    for _ in range(rounds + 2):
        engine.append(work.batch())
        changes.append(elapsed(lambda: told.append(engine.changes().num_rows)))
    filters, by_hand = (statistics.median(times) * 1e3 for times in zip(*turns, strict=True))
    return [rules, rows, filters, by_hand, int(statistics.median(told[2:])), statistics.median(changes[2:]) * 1e3]


def run(quick: bool) -> Report:
    keys, events, rounds = (2_000, 20_000, 3) if quick else (100_000, 1_000_000, 15)
    lines = [measured(keys, events, rules, rounds) for rules in ((30,) if quick else (300, 1_000))]
    report = Report(f"alert rules over {keys:,} keys, {events:,} events: all at once, and what has changed")
    header = ["rules", "rows", "ms, filters()", "ms, NumPy by hand", "changed", f"ms, changes() after {BATCH:,} events"]
    report.tables.append(Table("counts and sums over 20 windows, thresholds of their own; wall time", header, lines))
    for (rules, _, filters, by_hand, _, changes), most in zip(lines, (10, 20), strict=False):
        report.findings.append(Finding("filters()", f"{rules:,} rules", filters, "ms", most, at_most=True))
        report.findings.append(Finding("filters(), by hand / swag", f"{rules:,} rules", by_hand / filters, "x", 1))
        limit = 5 if rules <= 300 else None
        report.findings.append(Finding("changes()", f"{rules:,} rules, {BATCH:,} events", changes, "ms", limit, True))
    report.notes.append("By hand: one bincount per window and aggregate over the events, then a comparison per rule.")
    return report
