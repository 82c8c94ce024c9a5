"""Several groupings of one stream: features of one customer or of many, what an event costs, training sets, threads."""

import functools
import itertools
import threading
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import swag as sw
from bench.report import Finding, Report, Table
from bench.timing import elapsed, interleaved

KINDS = (sw.count, sw.sum, sw.mean, sw.max)


def run(quick: bool) -> list[Report]:
    return [one_customer(quick), an_event(quick), training_set(quick), beside_each_other(quick), many_keys(quick)]


def features(windows: list[int], column: str, **options: Any) -> list[sw.Query]:
    """count, sum, mean and max over each window."""
    name = "_".join(np.atleast_1d(options.get("by", "own")))
    asked = [(width, kind, kind() if kind is sw.count else kind(column)) for width in windows for kind in KINDS]
    return [sw.Query(of, sw.Range(w), name=f"{name}_{kind.__name__}_{w}", **options) for w, kind, of in asked]


def payments(count: int, cards: int, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    card = rng.integers(0, cards, count)
    return {
        "ts": np.arange(count),
        "card": card,
        "shop": rng.integers(0, max(cards // 10, 1), count),
        "country": (card + rng.integers(0, 2, count)) % 40,  # each card has two
        "amount": rng.lognormal(3, 1, count),
    }


def loaded(queries: list[sw.Query], events: dict[str, np.ndarray], batch: int = 100_000) -> sw.Engine:
    engine = sw.Engine(key="card")
    engine.register(queries)
    for first in range(0, events["ts"].size, batch):
        engine.append({name: values[first : first + batch] for name, values in events.items()})
    return engine


# -- all features of one entity ---------------------------------------------------------------------------------------


class ByHand:
    """What one would write with NumPy: the events of each key in arrays of their own, with running sums. No updates."""

    def __init__(self, events: dict[str, np.ndarray], windows: list[int]) -> None:
        order = np.argsort(events["card"], kind="stable")
        card, ts, x = (events[name][order] for name in ("card", "ts", "amount"))
        starts = np.searchsorted(card, np.arange(card.max() + 2))
        self.keys = {
            k: (ts[a:b], np.concatenate([[0.0], np.cumsum(x[a:b])]), np.maximum.accumulate(x[a:b][::-1])[::-1])
            for k, (a, b) in enumerate(itertools.pairwise(starts))
        }
        self.now, self.widths = int(ts.max()), np.array(windows)

    def features(self, card: int) -> np.ndarray:
        ts, sums, largest = self.keys[card]
        lo = np.searchsorted(ts, self.now - self.widths, side="right")
        n, total = ts.size - lo, sums[-1] - sums[lo]
        return np.stack([n, total, total / np.maximum(n, 1), largest[np.minimum(lo, ts.size - 1)]])


def one_customer(quick: bool) -> Report:
    count, cards, calls = (50_000, 500, 200) if quick else (1_000_000, 10_000, 5_000)
    windows = [count // 50 * (i + 1) for i in range(20)]
    events = payments(count, cards)
    engine, hand = loaded(features(windows, "amount"), events), ByHand(events, windows)
    rng = np.random.default_rng(1)
    ours, theirs = [], []
    for _ in range(calls):
        card = int(rng.integers(0, cards))
        ours.append(elapsed(lambda card=card: engine.features({"card": [card]})))  # type: ignore[misc]
        theirs.append(elapsed(lambda card=card: hand.features(card)))  # type: ignore[misc]
    some = {"card": rng.integers(0, cards, 1000)}
    thousand = float(np.median([elapsed(lambda: engine.features(some)) for _ in range(5 if quick else 30)]))
    report = Report(f"80 features of one card: {count:,} events of {cards:,} cards, 20 windows x count, sum, mean, max")
    median, hand_median = float(np.median(ours)), float(np.median(theirs))
    found = report.findings
    found.append(
        Finding(
            "features of one card / NumPy by hand",
            f"medians of {calls:,}, in turns",
            median / hand_median,
            "x",
            20,
            True,
        )
    )
    found.append(Finding("features of one card", "median", median * 1e6, "µs", 250, True))
    found.append(
        Finding("features of one card", "99th percentile", float(np.percentile(ours, 99)) * 1e6, "µs", 1000, True)
    )
    found.append(Finding("features of 1,000 cards", "median, one call", thousand * 1e3, "ms", 15, True))
    report.notes.append(
        "By hand: an array per card with running sums, which nobody updates; swag answers as of all events appended."
    )
    return report


# -- what an event costs ----------------------------------------------------------------------------------------------

FIVE = ["card", "shop", "country", ("card", "country"), ()]


def an_event(quick: bool) -> Report:
    count, cards = (20_000, 500) if quick else (400_000, 10_000)
    events = payments(count + 200_000, cards)
    report = Report("an event in several groupings: per card, shop, country, (card, country), and all together")
    engine = loaded(
        [query for by in FIVE for query in features([count // 4 * i for i in range(1, 6)], "amount", by=by)],
        some(events, 0, count),
    )
    one = [
        elapsed(lambda i=i: engine.append(some(events, count + i, count + i + 1)))
        for i in range(100 if quick else 2_000)
    ]  # type: ignore[misc]
    report.findings.append(
        Finding("append of one event", "5 groupings, 100 queries; median", float(np.median(one)) * 1e6, "µs", 400, True)
    )
    three = loaded(
        [query for by in FIVE[:2] + FIVE[3:4] for query in features([count // 4, count // 2], "amount", by=by)],
        some(events, 0, count),
    )
    batches = [some(events, count + first, count + first + 10_000) for first in range(0, 150_000, 10_000)]
    times = [elapsed(lambda batch=batch: three.append(batch)) for batch in batches]  # type: ignore[misc]
    report.findings.append(
        Finding("append of 10,000 events", "3 groupings, 24 queries", 0.01 / float(np.median(times)), "M events/s", 1)
    )
    return report


def some(events: dict[str, np.ndarray], first: int, last: int) -> dict[str, np.ndarray]:
    return {name: values[first:last] for name, values in events.items()}


# -- training sets ----------------------------------------------------------------------------------------------------

FOUR: list[Any] = ["card", "shop", ("card", "country"), ()]


def training_set(quick: bool) -> Report:
    count, cards = (30_000, 300) if quick else (2_000_000, 20_000)
    events = pa.table(payments(count, cards))
    per = {by if isinstance(by, tuple) else (by,): [count // 200 * i for i in range(1, 8)] for by in FOUR}
    per[()] = [count // 2000, count // 1000, count // 500, count // 200]  # the whole stream
    queries = [query for by, windows in per.items() for query in features(windows, "amount", by=by)]
    asked = sum(len(windows) for windows in per.values()) * len(KINDS)
    connection = duckdb.connect()
    connection.register("events", events)
    few = {by: windows[:1] for by, windows in per.items()}
    share = asked / (len(few) * len(KINDS))
    _agree(
        sw.evaluate([q for by, w in few.items() for q in features(w, "amount", by=by)], events, key="card"),
        connection,
        few,
    )
    theirs = elapsed(lambda: connection.execute(statement(few)).to_arrow_table()) * share
    times = interleaved(
        {
            "together": lambda: sw.evaluate(queries, events, key="card"),
            "apart": lambda: [sw.evaluate(features(w, "amount", by=by), events, key="card") for by, w in per.items()],
        },
        1 if quick else 3,
    )
    report = Report(f"a training set: {count:,} payments, {asked} features over 4 groupings, at each payment")
    took = f"swag {times['together']:.2f} s, DuckDB {theirs:.0f} s (from a window of each grouping, scaled)"
    report.findings.append(Finding("against DuckDB in one statement", took, theirs / times["together"], "x", 30))
    report.findings.append(
        Finding(
            "in one call / one call per grouping",
            "in turns, without joining them",
            times["together"] / times["apart"],
            "x",
            1.05,
            True,
        )
    )
    return report


def statement(per: dict[tuple[str, ...], list[int]]) -> str:
    """The same in SQL: RANGE is closed at its far end there, so it begins one later; ts are distinct."""
    sql = {"count": "COUNT(*)", "sum": "SUM(amount)", "mean": "AVG(amount)", "max": "MAX(amount)"}
    columns = []
    for by, windows in per.items():
        partition = f"PARTITION BY {', '.join(by)} " if by else ""
        for width, (kind, call) in itertools.product(windows, sql.items()):
            over = f"({partition}ORDER BY ts RANGE BETWEEN {width - 1} PRECEDING AND CURRENT ROW)"
            columns.append(f'{call} OVER {over} AS "{"_".join(by)}_{kind}_{width}"')
    return f"SELECT ts, {', '.join(columns)} FROM events ORDER BY ts"


def _agree(ours: pa.Table, connection: Any, per: dict[tuple[str, ...], list[int]]) -> None:
    theirs = connection.execute(statement(per)).to_arrow_table()
    for name in theirs.column_names[1:]:
        if not np.allclose(ours[name].to_numpy(), theirs[name].to_numpy(), rtol=1e-9):
            raise AssertionError(f"swag and DuckDB differ in {name}.")


# -- threads ----------------------------------------------------------------------------------------------------------


def beside_each_other(quick: bool) -> Report:
    count, cards, calls = (50_000, 500, 3) if quick else (1_000_000, 10_000, 30)
    windows = [count // 50 * (i + 1) for i in range(20)]
    events = payments(count + 100_000, cards)
    engine = loaded(features(windows, "amount"), some(events, 0, count))
    rng = np.random.default_rng(2)
    asked = {"card": rng.integers(0, cards, 10_000)}
    engine.features(asked)

    def ask() -> None:
        for _ in range(calls):
            engine.features(asked)

    def two() -> None:
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    times = interleaved({"one": ask, "two": two}, 1 if quick else 5)
    report = Report("threads: features of 10,000 cards, 80 each")
    report.findings.append(
        Finding("two threads / one", "answers per second, in turns", 2 * times["one"] / times["two"], "x", 1.7)
    )
    return report


# -- many keys --------------------------------------------------------------------------------------------------------


def many_keys(quick: bool) -> Report:
    sizes = (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000, 5_000_000)
    report, rows = Report("append as keys grow: batches of 100,000 events, one sum and one max"), []
    for keys in sizes:
        rows.append([keys, _rate(keys, 10_000 if quick else 100_000), _bytes_of_a_key(min(keys, 1_000_000))])
    report.tables.append(
        Table("by number of keys", ["keys", "M events/s", "bytes of a key with two rows and one sum"], rows)
    )
    report.findings.append(
        Finding(
            "append falls with keys by", f"{sizes[0]:,} to {sizes[-1]:,} keys", rows[0][1] / rows[-1][1], "x", 5, True
        )
    )
    report.findings.append(
        Finding("a key with two rows and one sum", "stats: bytes / keys", rows[-1][2], "bytes", 250, True)
    )
    return report


def _rate(keys: int, batch: int) -> float:
    """Millions of events per second, once each key has two rows."""
    engine, rng = sw.Engine(key="k"), np.random.default_rng(4)
    engine.register([sw.Query(kind("x"), sw.Range(10**12), name=kind.__name__) for kind in (sw.sum, sw.max)])

    def append(ts: int, k: np.ndarray) -> None:
        engine.append({"ts": np.full(k.size, ts), "k": k, "x": rng.random(k.size)})

    for ids in np.array_split(np.arange(2 * keys) % keys, 20):
        append(0, ids)
    drawn = [rng.integers(0, keys, batch) for _ in range(7)]
    return batch / float(np.median([elapsed(functools.partial(append, i + 1, k)) for i, k in enumerate(drawn)])) / 1e6


def _bytes_of_a_key(keys: int) -> float:
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.sum("x"), sw.Range(10**12), name="s"))
    for i in range(2):
        engine.append({"ts": np.full(keys, i), "k": np.arange(keys), "x": np.ones(keys)})
    return engine.stats()["bytes"] / keys
