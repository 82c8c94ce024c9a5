"""`swag run --engine spark`: the same statements and answers, by a local or configured Spark."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pyarrow.dataset

from swag.cli.answering import check_alone, check_over, columns_read, key_of
from swag.cli.files import kind_of_output, written
from swag.errors import NEEDS_SPARK
from swag.files.files import Files
from swag.query.groupings import By
from swag.query.over_statement import OverStatement


def run_on_spark(
    queries: list[Any],
    events: Files,
    ts: str,
    key: By,
    out: Path | None,
    at: Files | None,
    streams: Mapping[str, Files],
) -> None:
    """Spark writes its part files beside `out`; they are put together there, batch by batch."""
    if out is None:
        raise click.UsageError("--engine spark writes a file. Hint: --out answers.parquet")
    kind_of_output(out)
    over = any(isinstance(query, OverStatement) for query in queries)
    if over:
        check_over(queries, key, at)
    else:
        check_alone(queries, at)
        key = key_of(queries, key)
        columns_read(queries, events, ts, key)
    try:
        from pyspark.sql import SparkSession

        from swag.spark.batch.evaluate import evaluated
        from swag.spark.batch.over import evaluate_over
    except ModuleNotFoundError:
        raise click.UsageError(f"--engine spark {NEEDS_SPARK}") from None
    session = SparkSession.builder.appName("swag run").config("spark.ui.enabled", "false").getOrCreate()
    if getattr(session, "sparkContext", None) is not None:  # there is none under Spark Connect
        session.sparkContext.setLogLevel("FATAL")  # what goes wrong is raised, and said once
    with written(out) as sink, _mistakes_in_one_line():
        frame, requests = _frame(session, events), None if at is None else _frame(session, at)
        if over:
            answers = evaluate_over(queries[0], frame, ts)
        else:
            others = {name: _frame(session, files) for name, files in streams.items()}
            answers = evaluated(queries, frame, requests, ts, list(key), streams=others)
        assert sink.folder is not None
        answers.write.mode("overwrite").parquet(str(sink.folder / "parts"))
        parts = pyarrow.dataset.dataset(sink.folder / "parts", format="parquet")
        sink.write(parts.schema.empty_table())  # no answers have columns as well
        for batch in parts.to_batches():
            sink.write(pyarrow.Table.from_batches([batch]))


@contextmanager
def _mistakes_in_one_line() -> Iterator[None]:
    """What a worker has against the data, without the tracebacks of Python and Java around it."""
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as why:
        said = [line for line in str(why).splitlines() if line.startswith("swag.errors.")]
        if not said:
            raise
        raise click.UsageError(said[-1].split(": ", 1)[1]) from None


def _frame(session: Any, files: Files) -> Any:
    """A DataFrame of files that Spark reads itself; others go through Arrow."""
    if all(source.kind == "parquet" for source in files.sources):
        return session.read.parquet(*(str(path.resolve()) for path in files.paths))
    return session.createDataFrame(files.read())
