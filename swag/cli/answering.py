"""`swag run`, `swag frames` and `swag explain`: statements in, tables out."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any

import click
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from swag.arguments import key_columns
from swag.cli.files import Sink, check_apart, kind_of_output, written
from swag.cli.plotting import check_plot, draw, drawn, say_if_several
from swag.cli.show import SHOWN, preview
from swag.cli.stream import Disorder, FileStream, needs_all
from swag.cli.ticking import Ticking, needs_whole_file
from swag.durable.atomic_file import reason
from swag.errors import BadQuery
from swag.evaluate import evaluate
from swag.files.files import Files
from swag.query.groupings import By, grouping_of, home_of
from swag.query.lowering import readers
from swag.query.over_frames import frames_package
from swag.query.over_statement import OverStatement
from swag.query.query import Events, Query, check_names
from swag.query.reading import Reading
from swag.sql import sql
from swag.tables.columns import column, instants
from swag.tables.expressions.derived import of_events
from swag.tables.predicate import holds

KEY = "--key symbol"
EVENTS_AT_ONCE = 1_000_000  # events at a time


def statements(path: Path | None, inline: tuple[str, ...] = ()) -> list[Any]:
    """The queries of a file of SQL; what is wrong with it is said with its name. inline: of the command line."""
    if (path is None) == (not inline):
        found = "there is no statement" if path is None else "there are statements in a file and on the command line"
        raise click.UsageError(f'{found}. Hint: swag run queries.sql …, or swag run -e "SELECT …" …')
    if path is None:
        return sql(";\n".join(each.strip().rstrip(";") for each in inline))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f'"{path}" is not text in UTF-8. Hint: a file of SQL') from None
    except (OSError, ValueError) as why:
        raise click.UsageError(f'"{path}" can not be read: {reason(why)}. Hint: {_meant(path)}') from None
    try:
        return sql(text)
    except BadQuery as why:
        raise click.UsageError(f"{path}: {why}") from None


def _meant(path: Path) -> str:
    return '-e "SELECT …", for a statement in place of a file' if " " in str(path).strip() else "a file of SQL"


def run(
    queries: list[Any], events: Files, ts: str, key: By, out: Path | None, at: Files | None, chunk: int,
    streams: Mapping[str, Files],
) -> None:  # fmt: skip
    """All queries over a file of events, written to another (or shown). streams: others, by their names."""
    if out is not None:
        kind_of_output(out)
    if any(isinstance(query, OverStatement) for query in queries):
        _run_over(queries, events, ts, key, out, at)
        return
    source, key = events, key_of(queries, key)
    if any(isinstance(query, Events) for query in queries):  # SELECT *: events as they are
        with _output(out) as sink:
            sink.write(evaluate(queries, source.read(source.names), at and at.read(), ts, key, progress=False))
        return
    columns = columns_read(queries, source, ts, key)
    requests = None if at is None else at.read()
    queries, where = of_one_condition(queries)
    if where is not None:
        source.choose = partial(_chosen, where)
    check_alone(queries, at)
    if any(not isinstance(query, Query) for query in queries):
        by = grouping_of(queries[0], key)
        if _is_filled(queries[0]):
            _fill_frames(queries[0], source.read(columns), streams, ts, by, out)
        else:
            _find_frames(queries[0].spec, queries[0], source, columns, ts, by, chunk, out)
        return
    with _output(out) as sink, _progress(source) as advance:
        why = needs_all(queries) or ("" if not _ticking(queries) else needs_whole_file(queries, key))
        if not why:
            try:
                _chunk_by_chunk(queries, source, columns, ts, key, requests, chunk, sink, advance)
                return
            except Disorder:
                why = f'it is not sorted by "{ts}"'
                sink.start_over()
        # What can not be answered together is refused before all is read.
        nothing = source.typed(columns).empty_table()
        evaluate(queries, nothing, None if requests is None else requests.slice(0, 0), ts, key, progress=False)
        if source.rows is None or source.rows > chunk:
            click.echo(f"swag: all of {source.called} is loaded: {why}.", err=True)
        sink.write(evaluate(queries, source.read(columns), requests, ts, key, progress=False))


def _run_over(queries: list[Any], source: Files, ts: str, key: By, out: Path | None, at: Files | None) -> None:
    """A statement with OVER ( … ): windows may lie ahead and rows be sorted, so that all of them are read."""
    check_over(queries, key, at)
    read = queries[0].columns
    everything = read is None or not read <= set(source.names)  # names that AS gives are among them
    columns = [name for name in source.names if everything or name in read or name == ts]
    with _output(out) as sink:
        sink.write(evaluate(queries, source.read(columns), ts=ts, progress=False))


def check_over(queries: list[Any], key: By, at: Files | None) -> None:
    """A statement with OVER ( … ) has rows and groupings of its own."""
    if len(queries) > 1 or at is not None:
        raise click.UsageError("a statement with OVER ( … ) has rows of its own. Hint: run it by itself, without --at")
    if key:
        raise click.UsageError("a statement with OVER ( … ) says itself what it groups by. Hint: leave --key out")


def _chosen(where: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pa.array(holds(where, pa.Table.from_batches([batch]))))


def of_one_condition(queries: list[Any]) -> tuple[list[Any], str | None]:
    """Queries that all read the events for which one condition holds: without it, and the condition."""
    sources = {query.source if isinstance(query, Query) else None for query in queries}
    chosen = sources.pop() if len(sources) == 1 else None
    if not isinstance(chosen, Events) or chosen.source is not None or chosen.every is not None:
        return queries, None
    return [replace(query, source=None, name=query.label) for query in queries], chosen.where


def check_alone(queries: list[Any], at: Files | None) -> None:
    """A statement over frames has rows of its own."""
    if any(not isinstance(query, Query) for query in queries) and (len(queries) > 1 or at is not None):
        raise click.UsageError(
            "a statement with a FRAME clause gives one row per frame. Hint: run it by itself, without --at"
        )


def check_streams(queries: list[Any], streams: Mapping[str, Files]) -> None:
    """Refuse streams that nobody fills frames from, and a statement whose stream is not there."""
    wanted = {name for query in queries if (name := getattr(query, "other", None)) is not None}
    for name in streams:
        if name not in wanted:
            raise click.UsageError(
                f"no frames are filled from --stream {name}. Hint: FROM … [FRAME …] FILL FROM {name}"
            )
    for name in wanted:
        if name not in streams:
            raise click.UsageError(f'frames are filled from "{name}", which is not there. Hint: --stream {name}=PATH')


def _ticking(queries: list[Any]) -> bool:
    return any(isinstance(query, Query) and query.every is not None for query in queries)


def key_of(queries: list[Any], key: By) -> By:
    """The key, said or as all statements group by it."""
    groups = {getattr(query, "by", None) for query in queries}
    return key_columns(key, "--key", KEY) or ((groups.pop() or ()) if len(groups) == 1 else ())


def columns_read(queries: list[Any], source: Files, ts: str, key: By) -> list[str]:
    """The columns that are needed; one that is not there is refused before anything is read."""
    check_names([query for query in queries if isinstance(query, Query)])
    keys = dict.fromkeys([*key, *(name for query in queries for name in home_of(query, key))])
    asked = [each for query in queries if isinstance(query, Query) for each in readers(query)]
    wanted = Reading(asked, ts, *keys).of_events(source.names)
    for query in queries:
        if not isinstance(query, Query):
            wanted |= of_events(dict.fromkeys(query.columns, "a frame statement reads"), query.texts, source.names)
    return _there(wanted, source, "; ".join(map(str, queries)))


def _there(wanted: dict[str, str], source: Files, sql: str = "") -> list[str]:
    """The names of columns, each with who asks for it; one that the file lacks is refused. sql: what names them."""
    nothing = pa.schema([(name, pa.null()) for name in source.names]).empty_table()
    for name, asked_by in wanted.items():
        column(nothing, name, asked_by, sql)
    return list(wanted)


def _chunk_by_chunk(
    queries: list[Query], source: Files, columns: list[str], ts: str, key: By,
    requests: pa.Table | None, size: int, sink: Any, advance: Any,
) -> None:  # fmt: skip
    """Answers at events, ticks or requests, while files are read a chunk at a time; all of them go to the sink."""

    def chunks() -> Iterator[pa.Table]:
        for table in source.batches(columns, size):
            yield table
            advance(table.num_rows)

    if _ticking(queries) and requests is not None:
        evaluate(
            queries, source.typed(columns).empty_table(), requests, ts, key, progress=False
        )  # refuses, and says why
    stream = Ticking(queries, ts, key)
    if requests is None:
        some = False
        for answers in stream.ticks(chunks()) if _ticking(queries) else stream.at_events(chunks()):
            sink.write(answers)
            some = True
        if not some:
            sink.write(evaluate(queries, source.read(columns), ts=ts, key=key, progress=False))
        return
    when = instants(column(requests, ts, "requests are at"), ts)
    order = np.argsort(when, kind="stable")
    answered = list(stream.at_requests(chunks(), requests.take(pa.array(order))))
    if not answered:
        answered = [evaluate(queries, source.read(columns), requests, ts, key, progress=False)]
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    sink.write(pa.concat_tables(answered).take(pa.array(back)))


# -- frames -----------------------------------------------------------------------------------------------------------


def frames(
    text: str, events: Files, ts: str, key: By, out: Path | None, plot: Path | None, chunk: int,
    streams: Mapping[str, Files], y: str | None,
) -> None:  # fmt: skip
    """Frames by a statement or by a FRAME clause alone. y: the column that the plot shows."""
    from swag.sql import frame_spec

    others = {f"--stream {name}": files.paths for name, files in streams.items()}
    check_apart({"--events": events.paths, **others}, {"--out": out, "--plot": plot})
    if out is not None:
        kind_of_output(out)
    is_statement = text.split(None, 1)[:1] and text.split(None, 1)[0].upper() == "SELECT"
    source = events
    if is_statement:
        queries = sql(text)
        if len(queries) != 1 or isinstance(queries[0], Query):
            raise click.UsageError("swag frames takes one statement with a FRAME clause. Hint: swag run")
        key = grouping_of(queries[0], key_of(queries, key))
        columns = columns_read(queries, source, ts, key)
        spec = queries[0].spec
    else:
        spec = frame_spec(text)
        columns = _frame_columns(spec, source, ts, key)
    query = queries[0] if is_statement else None
    check_streams([query], streams)
    if plot is not None:
        check_plot(plot)
        shown = drawn(y, source, columns, [ts, *key])
    if _is_filled(query):
        _fill_frames(query, source.read(columns), streams, ts, key, out)
    else:
        _find_frames(spec, query, source, columns, ts, key, chunk, out)
    if plot is not None:
        if not key:
            say_if_several(source, spec, ts)
        table = source.read(list(dict.fromkeys([*columns, shown])))
        draw(plot, frames_package().detect(spec, table, ts=ts, key=key), table, shown, ts)


def _is_filled(query: Any) -> bool:
    """Are frames filled from another stream, or with margins from the one that they are found in?"""
    return getattr(query, "fill_from", None) is not None


def _fill_frames(
    query: Any, events: pa.Table, streams: Mapping[str, Files], ts: str, key: By, out: Path | None
) -> None:
    """Frames of one stream, and what is said of the events of another in each, or of its own around them."""
    others = {name: _in_time_of(events, files.read(), ts) for name, files in streams.items()}
    with _output(out) as sink:
        sink.write(query.evaluate(events, ts, key, others))


def _in_time_of(events: pa.Table, others: pa.Table, ts: str) -> pa.Table:
    """With the unit of time of the events, where that loses nothing: kinds of files have units of their own."""
    there = column(others, ts, "ts is")
    if pa.types.is_timestamp(there.type) and pa.types.is_timestamp(events.schema.field(ts).type):
        with suppress(pa.ArrowInvalid):
            unit = events.schema.field(ts).type.unit
            there = there.cast(pa.timestamp(unit, there.type.tz))
    return others.set_column(others.column_names.index(ts), ts, there)


def _find_frames(
    spec: Any, query: Any, source: Files, columns: list[str], ts: str, key: By, size: int, out: Path | None
) -> None:
    """With a query, and what it says of each frame. Chunk by chunk, unless the events are in disorder."""
    of_frames, order = frames_package(), FileStream([], ts, key)

    def chunks() -> Iterator[pa.Table]:
        for table in source.batches(columns, size):
            yield table
            advance(table.num_rows)

    with _output(out) as sink, _progress(source) as advance:
        some = False
        try:
            for found in of_frames.frames_by_chunk(spec, query, chunks(), ts, key, order.check_order):
                sink.write(found)
                some = True
        except Disorder:
            click.echo(f'swag: all of {source.called} is loaded: it is not sorted by "{ts}".', err=True)
            sink.start_over()
            some = False
        if not some:
            table = source.read(columns)
            sink.write(
                of_frames.detect(spec, table, ts=ts, key=key) if query is None else query.evaluate(table, ts, key)
            )


def _frame_columns(spec: Any, source: Files, ts: str, key: By) -> list[str]:
    wanted = {ts: "ts is"} | dict.fromkeys(key_columns(key, "--key", KEY), "key is")
    read = of_events(dict.fromkeys(spec.columns, f"{type(spec).__name__} reads"), spec.texts, source.names)
    wanted |= {name: asked_by for name, asked_by in read.items() if name not in wanted}
    return _there(wanted, source)


# -- terminal ---------------------------------------------------------------------------------------------------------


@contextmanager
def _output(out: Path | None) -> Iterator[Any]:
    """A file; without one, the first answers on a terminal, and all of them, as CSV, in a pipe."""
    if out is not None:
        with written(out) as sink:
            yield sink
    elif sys.stdout.isatty():
        first = First()
        yield first
        preview(first.tables, first.rows)
    else:
        with TemporaryFile() as file:  # nothing is printed before all is answered
            with Sink("csv", file, f"a temporary file in {gettempdir()}") as sink:
                yield sink
            file.seek(0)
            sys.stdout.flush()
            shutil.copyfileobj(file, sys.stdout.buffer)


class First:
    """A sink that keeps what is shown, and counts the rest."""

    def __init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        self.tables: list[pa.Table] = []
        self.rows = 0

    def write(self, table: pa.Table) -> None:
        if not self.tables or self.rows < SHOWN:
            self.tables.append(table.slice(0, SHOWN))
        self.rows += table.num_rows


@contextmanager
def _progress(source: Files) -> Iterator[Any]:
    """A bar on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(source.paths[0].name, total=source.rows)
        yield lambda rows: progress.advance(task, rows)
