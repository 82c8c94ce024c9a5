"""`swag demo`, as a terminal shows it. What it runs and measures is swag/cli/demo_job.py."""

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import swag as sw
from swag.cli import demo_job as demo
from swag.cli.warming import compile_for
from swag.evaluate import evaluate

BATCHES = 20
COMPARED = 8  # windows that are recomputed from the events
REQUESTS = 10_000
SHOWN = ("trades_60s", "volume_5m", "bought_5m", "vwap_15m", "std_30m", "high_60m", "low_100_trades")


def show(count: int, symbols: int, seed: int) -> None:
    """All of `swag demo` on a terminal: measure windows together and apart, then print one section after the other."""
    console = Console(highlight=False)
    asked, alone = demo.queries(), demo.sample()
    console.print(f"[bold]swag {sw.__version__}[/]: {len(asked)} windows over one stream of trades\n")
    _say(
        console,
        f"{count:,} made-up trades of {symbols:,} symbols in two hours. {len(demo.AGGREGATES)} aggregates, each over "
        f"{len(demo.windows())} windows per symbol: the last 5 seconds to 60 minutes, the last 5 to 500 trades, "
        f"and windows that end in the past.",
    )
    events = demo.trades(count, symbols, seed)
    size = -(-count // BATCHES)
    batches = [events.slice(start, size) for start in range(0, count, size)]
    _warm(console, events.slice(0, 2000), asked)

    with _progress(console) as progress:
        engine = demo.engine_for(asked)
        answers, shared = demo.drive(engine, batches, _bar(progress, f"{len(asked)} windows together", count))
        apart = demo.apart(alone, batches, _bar(progress, f"{len(alone)} of them one by one", count * len(alone)))

    _answers(console, answers, events["ts"][-1].as_py(), len(asked), shared.lookup / len(batches))
    _plan(console, engine)
    _saved(console, asked, answers, events, shared, apart, len(alone), len(batches))
    _filters(console, engine, symbols)
    _features(console, events, asked, seed)


# -- sections ---------------------------------------------------------------------------------------------------------


def _answers(console: Console, answers: pa.Table, now: datetime, windows: int, took: float) -> None:
    """The demo's section of answers: some windows of a few symbols, from the busiest on, and how long a lookup took."""
    busiest = answers.sort_by([("trades_60m", "descending")])["symbol"].to_pylist()
    chosen = [busiest[i] for i in (0, 1, 2, 10, 100, 1000) if i < len(busiest)]
    _title(console, f"Answers at {now:%H:%M:%S}, for {len(chosen)} of {answers.num_rows:,} symbols")
    _say(
        console,
        f"One lookup of all {windows} windows for all symbols: "
        f"{answers.num_rows * windows:,} answers in {took:.2f} s (on average).",
    )
    rows = {row["symbol"]: row for row in answers.select(["symbol", *SHOWN]).to_pylist()}
    _table(
        console, ["symbol", *SHOWN], [[symbol, *(_number(rows[symbol][name]) for name in SHOWN)] for symbol in chosen]
    )


def _plan(console: Console, engine: sw.Engine) -> None:
    _title(console, "Who shares what: engine.explain()")
    for line in engine.explain().splitlines():
        indent = len(line) - len(line.lstrip())
        _lines(console, line.strip(), "  " + " " * indent, "  " + " " * (indent + 4))
    console.print()


def _saved(
    console: Console,
    asked: list[sw.Query],
    answers: pa.Table,
    events: pa.Table,
    shared: demo.Cost,
    apart: demo.Cost,
    measured: int,
    batches: int,
) -> None:
    """The demo's section of savings: structures, memory and time, together and one by one; some answers are checked."""
    queries = len(asked)
    scale = queries / measured
    _title(console, "What sharing saved")
    lines = [
        (
            "structures",
            f"{shared.structures}",
            f"{apart.structures * scale:.0f}",
            apart.structures * scale / shared.structures,
        ),
        ("memory", _size(shared.bytes), _size(apart.bytes * scale), apart.bytes * scale / shared.bytes),
        (
            f"append {events.num_rows:,} trades",
            _seconds(shared.append),
            _seconds(apart.append * scale),
            apart.append * scale / shared.append,
        ),
        (
            f"look all up, {batches} times",
            _seconds(shared.lookup),
            _seconds(apart.lookup * scale),
            apart.lookup * scale / shared.lookup,
        ),
    ]
    _table(console, ["", "together", "one by one *", "ratio"], [[*cells, f"{ratio:.0f}x"] for *cells, ratio in lines])
    _say(
        console,
        f"* {measured} of the {queries} queries measured (two of each aggregate, windows of all lengths), "
        f"an engine for each, over the same batches in this run; times {scale:.0f}.",
    )
    again = [query for query in asked if demo.recomputable(query)]
    again = again[:: max(1, len(again) // COMPARED)]
    started = time.perf_counter()
    theirs = [demo.recompute(query, events) for query in again]
    each = (time.perf_counter() - started) / len(again)
    wrong = sum(demo.disagreements(answers, query.label, table) for query, table in zip(again, theirs, strict=True))
    verdict = "Same answers" if wrong == 0 else f"{wrong} DIFFERENT ANSWERS"
    _say(
        console,
        f"Without any structure, recomputing a window from the stored trades (pyarrow: slice, group by symbol) "
        f"took {1000 * each:.0f} ms: {each * queries:.1f} s for one look at {queries} windows; "
        f"together, {shared.lookup / batches:.2f} s. {verdict} in the {len(again)} windows recomputed.",
    )


def _filters(console: Console, engine: sw.Engine, symbols: int) -> None:
    """The same alerts, from the indexes and by looking at every symbol."""
    asked, apart = demo.alerts(), demo.alerts(index=False)
    engine.register(asked)
    engine.filters()  # the indexes are made from the trades kept, the first time
    started = time.perf_counter()
    passing = engine.filters()
    took = time.perf_counter() - started
    for query in asked:
        engine.unregister(query.label)
    engine.register(apart)
    started = time.perf_counter()
    again = engine.filters()
    naive = time.perf_counter() - started
    for query in apart:
        engine.unregister(query.label)
    same = passing.select(["symbol", "value"]) == again.select(["symbol", "value"])
    _title(console, f"Which symbols trade unusually much? {len(asked)} alerts: engine.filters()")
    _say(
        console,
        f"{passing.num_rows:,} (alert, symbol) pairs pass, out of {len(asked) * symbols:,}. From the indexes over the "
        f"symbols: {1000 * took:.0f} ms; looking at every symbol: {1000 * naive:.0f} ms. "
        f"{'Same answers.' if same else 'DIFFERENT ANSWERS.'}",
    )
    rows = [[row["query"], row["symbol"], _number(row["value"])] for row in passing.slice(0, 4).to_pylist()]
    _table(console, ["alert", "symbol", "value"], rows)


def _features(console: Console, events: pa.Table, asked: list[sw.Query], seed: int) -> None:
    """The demo's section of features: all windows at requests of the past, evaluated over the stored trades."""
    wanted = demo.requests(events, REQUESTS, seed)
    started = time.perf_counter()
    features = evaluate(asked, events, at=wanted, ts="ts", key="symbol")
    took = time.perf_counter() - started
    _title(console, "Features as of a point in time: sw.evaluate(queries, trades, at=requests)")
    _say(
        console,
        f"{wanted.num_rows:,} requests (a symbol, a moment), all {len(asked)} windows each, as they were then: "
        f"{wanted.num_rows * len(asked):,} answers in {took:.2f} s.",
    )
    some = features.select(["symbol", "ts", *SHOWN[:5]]).take(
        pa.array([0, features.num_rows // 2, features.num_rows - 1])
    )
    rows = [
        [row["symbol"], f"{row['ts']:%H:%M:%S}", *(_number(row[name]) for name in SHOWN[:5])]
        for row in some.to_pylist()
    ]
    _table(console, ["symbol", "ts", *SHOWN[:5]], rows)


# -- the terminal -----------------------------------------------------------------------------------------------------


def _warm(console: Console, few: pa.Table, asked: list[sw.Query]) -> None:
    """Compile on all cores, then run everything once, small, so that what is measured afterwards is not compilation."""
    started = time.perf_counter()
    if not console.is_terminal:
        console.print("  compiling kernels, if this is the first run ...")
    compile_for(demo.rehearsal, console)
    with console.status("loading kernels"):
        demo.rehearse(asked, few)
    _say(console, f"Kernels ready in {time.perf_counter() - started:.1f} s.")


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """Bars for what the demo measures, with the time elapsed; nothing where the output is no terminal."""
    columns = (
        TextColumn("  {task.description}"),
        BarColumn(None),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, expand=True) as progress:
        yield progress
    if console.is_terminal:
        console.print()


def _bar(progress: Progress, what: str, total: int) -> demo.Tick:
    task = progress.add_task(what, total=total)
    return lambda rows: progress.advance(task, rows)


def _title(console: Console, text: str) -> None:
    console.print(Text(text, style="bold cyan"))


def _say(console: Console, text: str) -> None:
    _lines(console, text, "  ", "  ")
    console.print()


def _lines(console: Console, text: str, first: str, after: str) -> None:
    width = min(console.width, 120)
    wrapped = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )
    console.print(Text("\n".join(wrapped) if wrapped else ""))


def _table(console: Console, header: list[str], rows: list[list[str]]) -> None:
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim")
    for i, name in enumerate(header):
        table.add_column(name.replace("_", " "), justify="left" if i == 0 else "right", vertical="bottom")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def _size(count: float) -> str:
    return f"{count / 2**20:,.0f} MB" if count < 2**30 else f"{count / 2**30:.1f} GB"
