"""The query language: how long statements take to read and to register, and what they add to an event."""

import numpy as np

import swag as sw
from bench.report import Finding, Report
from bench.timing import best_of, cpu_clock, elapsed, interleaved

STATEMENTS = [
    "SELECT AVG(shares) FROM trades [ROWS {n}]",
    "SELECT AVG(shares) FROM trades [RANGE BETWEEN {n} MINUTES AND 1 SECOND PRECEDING]",
    "SELECT symbol, SUM(volume) FROM trades [RANGE {n}] GROUP BY symbol HAVING SUM(volume) > 1000",
    "SELECT site, COUNT(*) FROM cpu [RANGE {n} HOURS, FREQUENCY 1000 TUPLES] WHERE load < 30 GROUP BY site",
    "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM cpu [RANGE 1 HOUR, FREQUENCY {n} TUPLES] WHERE load < 30) "
    "[RANGE 1 HOUR, FREQUENCY 1 HOUR]",
    "SELECT K, SUM(A) FROM S [RANGE {n}, FREQUENCY 10 TUPLES PARTITIONED BY K] GROUP BY K",
    "SELECT symbol FROM trades GROUP BY symbol HAVING LAST(price) OVER [RANGE {n} MINUTES] < 0.98 * FIRST(price) OVER "
    "[RANGE {n} MINUTES] AND SUM(volume) FILTER (WHERE side = 'ask') OVER [RANGE 2 MINUTES] >= 0.7 * SUM(volume) OVER "
    "[RANGE 2 MINUTES]",
    "SELECT router, AVG(total_pkts) FROM reports [FRAME WHERE drop_pct > 0.3 FOR {n} MINUTES] GROUP BY router",
]


def run(quick: bool) -> Report:
    count, many, rounds = (80, 500, 1) if quick else (1000, 10_000, 3)
    report = Report("the query language: reading, registering, and what statements cost an event")
    text = ";\n".join(STATEMENTS[i % len(STATEMENTS)].format(n=i + 2) for i in range(count))
    sw.sql(text)
    seconds = best_of(lambda: sw.sql(text), rounds, cpu_clock)
    report.findings.append(Finding("statements of the guide to SQL", f"read {count:,}", seconds, "s", 2, at_most=True))
    report.findings += [one_by_one(many, STATEMENTS[:3], 10), one_by_one(many, STATEMENTS[2:3], 3)]
    simple, computed = queries(many)
    for label, some in (("one aggregate each", simple), ("expressions of two windows", computed)):
        seconds = best_of(lambda some=some: sw.Engine(key="k").register(some), rounds, cpu_clock)
        report.findings.append(Finding(label, f"register {many:,} queries", seconds, "s", 2, at_most=True))
    report.findings += [updates(simple, computed, quick), expressions(quick), candidates(quick)]
    return report


def one_by_one(count: int, statements: list[str], reach: float) -> Finding:
    """Each in a call of its own, as users' rules come; of one form, or of several."""
    texts = [
        statements[i % len(statements)].format(n=i + 2).replace(" FROM", f" AS q{i} FROM", 1) for i in range(count)
    ]
    engine = sw.Engine(key="symbol")
    seconds = elapsed(lambda: [engine.register(text) for text in texts], cpu_clock)
    label = "statements that differ in constants" if len(statements) == 1 else f"statements of {len(statements)} forms"
    return Finding(label, f"read and register {count:,}, one by one", seconds, "s", reach, at_most=True)


def queries(count: int) -> tuple[list[sw.Query], list[sw.Query]]:
    """Queries over as many windows of time, as long as each other on average."""
    kinds = [sw.sum("x"), sw.mean("x"), sw.max("x"), sw.count()]
    windows = [sw.Range(1000 + i) for i in range(count)]
    simple = [sw.Query(kinds[i % 4], window, f"q{i}") for i, window in enumerate(windows)]
    spread = sw.max("x") - sw.sum("x")
    return simple, [
        sw.Query(spread.over(w) / sw.count().over(sw.Range(99)), name=f"c{i}") for i, w in enumerate(windows)
    ]


def updates(simple: list[sw.Query], computed: list[sw.Query], quick: bool) -> Finding:
    """The same aggregates over 10 windows, and over all of them: what an event costs must not change."""
    return per_event([*simple[-4:], computed[-1]], [*simple, *computed], "registered queries", quick)


def expressions(quick: bool) -> Finding:
    """An expression over the columns of an event is computed once, whoever asks for it."""
    queries = [sw.Query(sw.sum("x * y"), sw.Range(1000 + i), f"e{i}") for i in range(100)]
    return per_event(queries[-1:], queries, "queries over x * y", quick)


def per_event(few: list[sw.Query], many: list[sw.Query], what: str, quick: bool) -> Finding:
    """What an event costs with many queries, against few that have the same structures."""
    events, batch = (20_000, 2_000) if quick else (1_000_000, 10_000)
    rng = np.random.default_rng(1)
    stream = {"ts": np.arange(events), "k": rng.integers(0, 100, events), "x": rng.random(events)}
    stream["y"] = stream["x"] + 1
    batches = [{name: column[b : b + batch] for name, column in stream.items()} for b in range(0, events, batch)]

    def rest_of_the_stream(asked: list[sw.Query]) -> float:
        engine = sw.Engine(key="k")
        engine.register(asked)
        engine.append(batches[0])  # structures are made, and differ in nothing but their number of queries
        return elapsed(lambda: [engine.append(each) for each in batches[1:]], cpu_clock)

    pairs = [(rest_of_the_stream(few), rest_of_the_stream(many)) for _ in range(2)]
    best = [min(times) for times in zip(*pairs, strict=True)]
    against = f"{len(many):,} {what} against {len(few)}"
    return Finding("cost of an event", against, best[1] / best[0], "x", 1.2, at_most=True)


def candidates(quick: bool) -> Finding:
    """A condition of several parts, of which an index over the keys knows one."""
    keys = 2_000 if quick else 100_000
    rng = np.random.default_rng(2)
    events = 10 * keys
    text = """SELECT {hint} k, (MAX(x) - MIN(x)) / LAST(x) AS {name} FROM t [RANGE 100000000] GROUP BY k
              HAVING COUNT(*) > 28 AND (MAX(x) - MIN(x)) / LAST(x) > 0.03 AND AVG(x) > 0.1"""
    engine = sw.Engine(key="k")
    engine.register(text.format(hint="", name="indexed"))
    engine.register(text.format(hint="/*+ NO_INDEX */", name="plain"))
    engine.append({"ts": np.arange(events), "k": rng.integers(0, keys, events), "x": rng.random(events) + 0.01})
    assert engine.lookup("indexed").equals(engine.lookup("plain"))
    best = interleaved({name: lambda name=name: engine.lookup(name) for name in ("indexed", "plain")}, 5)
    return Finding(
        f"HAVING with three conditions, {keys:,} keys",
        "a lookup: candidates of one condition against every key",
        best["plain"] / best["indexed"],
        "x",
        5,
    )
