"""The demo's job: a stream of trades, hundreds of windows over it, and what it costs to keep them together or apart."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import swag as sw
from swag.query.windows import reach

START = np.datetime64("2024-03-01T09:30:00", "us")
OPEN = 2 * 3600 * 10**6  # microseconds that the stream lasts
LOOKBACK = (
    "5s 10s 15s 20s 30s 45s 60s 90s 2m 3m 4m 5m 6m 8m 10m 12m 15m 18m 20m 22m 24m 26m 28m 30m 35m 40m 45m 50m 55m 60m"
)
ROWS = (5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 250, 300, 400, 500)
PAST = (("2m", "1m"), ("5m", "1m"), ("10m", "5m"), ("30m", "15m"), ("60m", "30m"))
AGGREGATES = {
    "trades": sw.count(),
    "volume": sw.sum("volume"),
    "bought": sw.sum("volume"),  # where side = 'buy'
    "vwap": sw.wmean("price", "volume"),
    "mean": sw.mean("price"),
    "std": sw.std("price"),
    "high": sw.max("price"),
    "low": sw.min("price"),
}
Tick = Callable[[int], None]


def trades(count: int, symbols: int, seed: int) -> pa.Table:
    """Trades of two hours: a few symbols trade all the time and most hardly ever (Zipf); prices walk at random."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / (np.arange(symbols) + 10.0)
    ids = rng.choice(symbols, count, p=shares / shares.sum())
    by_symbol = np.argsort(ids, kind="stable")
    steps = rng.normal(0.0, 4e-4, count)
    walk = np.cumsum(steps)
    first = np.searchsorted(ids[by_symbol], np.arange(symbols))
    before = np.concatenate([[0.0], walk])[first]
    opening = np.exp(rng.normal(3.8, 0.7, symbols))
    price = np.empty(count)
    price[by_symbol] = np.exp(walk - before[ids[by_symbol]]) * opening[ids[by_symbol]]
    moments = np.sort(rng.integers(1, OPEN + 1, count)).astype("timedelta64[us]")
    return pa.table(
        {
            "ts": START + moments,
            "symbol": pa.array(ticker_names(symbols, rng)).take(pa.array(ids)),
            "price": np.round(price, 2),
            "volume": 100 * rng.geometric(0.15, count),
            "side": pa.array(["buy", "sell"]).take(pa.array(rng.integers(0, 2, count))),
        }
    )


def ticker_names(count: int, rng: np.random.Generator) -> list[str]:
    """`count` different made-up names of four letters."""
    chosen = rng.choice(26**4, count, replace=False)
    return ["".join(chr(65 + number // 26**place % 26) for place in range(4)) for number in chosen.tolist()]


def windows() -> dict[str, sw.Range | sw.Rows]:
    by_time: dict[str, sw.Range | sw.Rows] = {length: sw.Range(length) for length in LOOKBACK.split()}
    by_rows = {f"{n}_trades": sw.Rows(n) for n in ROWS}
    return by_time | by_rows | {f"{t}_to_{until}": sw.Range(t, until=until) for t, until in PAST}


def queries() -> list[sw.Query]:
    """Every aggregate over every window: 8 x 50."""
    return [
        sw.Query(aggregate, window, name=f"{what}_{length}", where="side = 'buy'" if what == "bought" else None)
        for what, aggregate in AGGREGATES.items()
        for length, window in windows().items()
    ]


def sample() -> list[sw.Query]:
    """Two queries of every aggregate; over all aggregates, their windows are spread over all windows."""
    every, width = queries(), len(windows())
    picked = [
        i * width + (i * width // len(AGGREGATES) + j * width // 2) % width
        for i in range(len(AGGREGATES))
        for j in (0, 1)
    ]
    return [every[i] for i in picked]


@dataclass(frozen=True)
class Cost:
    """Of bringing a stream in and looking everything up after each batch: seconds, bytes, structures."""

    append: float
    lookup: float
    bytes: int
    structures: int


def drive(engine: sw.Engine, batches: list[pa.Table], tick: Tick) -> tuple[pa.Table, Cost]:
    """Append the batches; after each, look up all queries for all symbols. Returns the last answers, and the cost."""
    append = lookup = 0.0
    answers = engine.lookup_all()
    for batch in batches:
        started = time.perf_counter()
        engine.append(batch)
        appended = time.perf_counter()
        answers = engine.lookup_all()
        lookup += time.perf_counter() - appended
        append += appended - started
        tick(batch.num_rows)
    return answers, Cost(append, lookup, engine.stats()["bytes"], engine.stats()["structures"])


def alerts(index: bool = True) -> list[sw.Query]:
    """Which symbols trade unusually much? Many windows, each with its own thresholds."""
    suffix = "" if index else " (no index)"
    return [
        sw.Query(what, sw.Range(f"{m}m"), name=f"{name}_{m}m{suffix}", having=(">", m * each), index=index)
        for m in range(1, 61)
        for name, what, each in (("busy", sw.count(), 150), ("heavy", sw.sum("volume"), 60_000))
    ]


def engine_for(asked: list[sw.Query], algorithm: str = "auto") -> sw.Engine:
    engine = sw.Engine(ts="ts", key="symbol", algorithm=algorithm)
    engine.register(asked)
    return engine


def rehearse(asked: list[sw.Query], few: pa.Table) -> None:
    """Everything that the demo does, over a few trades."""
    engine, first = engine_for(asked + alerts()), few.num_rows // 20  # most symbols come later
    for one in (engine, engine_for(asked[:1])):
        drive(one, [few.slice(0, first), few.slice(first)], lambda rows: None)
    engine.filters()
    sw.evaluate(asked, few, at=requests(few, 10, 0), ts="ts", key="symbol")


def rehearsal() -> None:
    """The same with fewer windows and trades, as many for a request as in the demo: what is to be compiled is learned
    from that."""
    rehearse(queries()[::7], trades(200, 50, 0))


def apart(asked: list[sw.Query], batches: list[pa.Table], tick: Tick) -> Cost:
    """An engine for each query."""
    costs = [drive(engine_for([query]), batches, tick)[1] for query in asked]
    return Cost(*(sum(getattr(cost, name) for cost in costs) for name in Cost.__dataclass_fields__))


def recompute(query: sw.Query, events: pa.Table) -> pa.Table:
    """The answers of a query by time, from the events: cut its window out (they are sorted), group by symbol."""
    assert isinstance(query.window, sw.Range)
    ts = events.column("ts").to_numpy().astype(np.int64)
    edges = reach(query.window, "us")
    lo, hi = np.searchsorted(ts, [ts[-1] - edges.far, ts[-1] - edges.near], side="right")
    kind = {"count": "count_all", "std": "stddev"}.get(query.aggregate.kind, query.aggregate.kind)
    options = pc.VarianceOptions(ddof=1) if kind == "stddev" else None
    asked: Any = ([], kind) if kind == "count_all" else (query.aggregate.columns[0], kind, options)
    return events.slice(lo, hi - lo).group_by("symbol", use_threads=False).aggregate([asked])


def recomputable(query: sw.Query) -> bool:
    return isinstance(query.window, sw.Range) and query.where is None and query.aggregate.kind != "wmean"


def disagreements(mine: pa.Table, name: str, theirs: pa.Table) -> int:
    """How many symbols have answers that differ by more than rounding. (Ours list empty windows too.)"""
    left = dict(zip(mine["symbol"].to_pylist(), mine[name].to_pylist(), strict=True))
    right = dict(zip(theirs["symbol"].to_pylist(), theirs.column(theirs.num_columns - 1).to_pylist(), strict=True))
    return len(right.keys() - left.keys()) + sum(not _close(left[symbol], right.get(symbol)) for symbol in left)


def _close(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return not a and not b
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b)) + 1e-6


def requests(events: pa.Table, count: int, seed: int) -> pa.Table:
    """Moments at which the features of a symbol are wanted: a second before some of the trades."""
    rows = np.sort(np.random.default_rng(seed).choice(events.num_rows, min(count, events.num_rows), replace=False))
    chosen = events.select(["symbol", "ts"]).take(pa.array(rows))
    earlier = chosen["ts"].to_numpy() - np.timedelta64(1, "s")
    return chosen.set_column(1, "ts", pa.array(earlier))
