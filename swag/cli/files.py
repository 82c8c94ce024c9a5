"""Tables in files, by their ending: Parquet, CSV, Arrow IPC. Read batch by batch; written whole or not at all."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from swag.predicate import holds

KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip


def kind_of(path: Path) -> str:
    if path.suffix.lower() not in KINDS:
        raise click.UsageError(f'"{path}" ends in none of {", ".join(KINDS)}.')
    return KINDS[path.suffix.lower()]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What the file system or Arrow has against a file, as one line."""
    if not path.is_file():
        raise click.UsageError(f'"{path}" can not be read: {"it is a folder" if path.is_dir() else "no such file"}.')
    try:
        yield
    except OSError as why:
        raise click.UsageError(f'"{path}" can not be read: {why.strerror or _first_line(why)}.') from None
    except pa.ArrowException as why:
        raise click.UsageError(f'"{path}" is not {_article(kind_of(path))} file: {_first_line(why)}.') from None


def _article(kind: str) -> str:
    return {"parquet": "a Parquet", "csv": "a CSV", "arrow": "an Arrow"}[kind]


def _first_line(why: Exception) -> str:
    return (str(why).strip().splitlines() or [type(why).__name__])[0].rstrip(".")


class Source:
    """A file of events or requests. Nothing but its schema is read until `batches` are."""

    def __init__(self, path: Path) -> None:
        self.path, self.kind = path, kind_of(path)
        self.rows: int | None = None  # unknown of a CSV until it is read
        self.where: str | None = None  # rows for which this does not hold are left out
        with _readable(path):
            self.schema = self._look()

    def _look(self) -> pa.Schema:
        if self.kind == "parquet":
            with pa.parquet.ParquetFile(self.path) as file:
                self.rows = file.metadata.num_rows
                return file.schema_arrow
        if self.kind == "arrow":
            with pa.memory_map(str(self.path)) as memory, pa.ipc.open_file(memory) as file:
                return file.schema
        with pa.csv.open_csv(self.path) as reader:
            if all(map(pa.types.is_null, reader.schema.types)):
                raise click.UsageError(f'"{self.path}" has no rows, and so no types. Hint: Parquet keeps them')
            return reader.schema

    def batches(self, columns: list[str], size: int) -> Iterator[pa.Table]:
        """The rows in order, `size` at a time, of some columns."""
        waiting: list[pa.RecordBatch] = []
        count = 0
        with _readable(self.path):
            for batch in map(self._chosen, self._batches(columns, size)):
                for start in range(0, batch.num_rows, size):
                    piece = batch.slice(start, size)
                    if count + piece.num_rows > size and waiting:
                        yield pa.Table.from_batches(waiting)
                        waiting, count = [], 0
                    waiting.append(piece)
                    count += piece.num_rows
        if waiting:
            yield pa.Table.from_batches(waiting)

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.where is None:
            return batch
        return batch.filter(pa.array(holds(self.where, pa.Table.from_batches([batch]))))

    def _batches(self, columns: list[str], size: int) -> Iterator[pa.RecordBatch]:
        if self.kind == "parquet":
            with pa.parquet.ParquetFile(self.path, pre_buffer=False) as file:
                for group in range(file.num_row_groups):  # asked for all of them, Arrow reads far ahead
                    yield from file.iter_batches(min(size, 1 << 16), [group], columns)
        elif self.kind == "arrow":
            with pa.memory_map(str(self.path)) as memory, pa.ipc.open_file(memory) as file:
                for i in range(file.num_record_batches):
                    yield file.get_batch(i).select(columns)
        else:
            options = pa.csv.ConvertOptions(
                include_columns=columns, column_types={name: self.schema.field(name).type for name in columns}
            )
            with pa.csv.open_csv(self.path, convert_options=options) as reader:
                yield from reader

    def read(self, columns: list[str] | None = None) -> pa.Table:
        chosen = self.schema.names if columns is None else columns
        batches = list(self.batches(chosen, 1 << 20))
        schema = pa.schema([self.schema.field(name) for name in chosen])
        return pa.concat_tables(batches) if batches else schema.empty_table()


@contextmanager
def written(path: Path) -> Iterator["Sink"]:
    """A file that appears under its name once all of it is there; if anything goes wrong, what was there stays."""
    kind_of(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        os.close(handle)
    except OSError as why:
        raise click.UsageError(f'"{path}" can not be written: {why.strerror}.') from None
    sink = Sink(path, Path(temporary))
    try:
        yield sink
        sink.finish()
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as why:
        raise click.UsageError(f'"{path}" can not be written: {why.strerror or _first_line(why)}.') from None
    finally:
        sink.close()
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Sink:
    """A file that is being written, table by table."""

    def __init__(self, path: Path, temporary: Path) -> None:
        self.kind, self.temporary, self.rows = kind_of(path), temporary, 0
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        if self._writer is None:
            self._writer = self._open(table.schema)
        elif table.schema != self._writer_schema:
            table = table.cast(self._writer_schema)
        self._writer.write_table(table)
        self.rows += table.num_rows

    def start_over(self) -> None:
        """Forget what was written."""
        self.close()
        self._writer, self.rows = None, 0

    def finish(self) -> None:
        if self._writer is None:
            self.write(pa.table({}))
        self.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, schema: pa.Schema) -> Any:
        self._writer_schema = schema
        if self.kind == "parquet":
            return pa.parquet.ParquetWriter(self.temporary, schema)
        if self.kind == "arrow":
            return pa.ipc.new_file(str(self.temporary), schema)
        return pa.csv.CSVWriter(str(self.temporary), schema)


def write_all(path: Path, tables: Iterable[pa.Table]) -> int:
    with written(path) as sink:
        for table in tables:
            sink.write(table)
    return sink.rows
