"""Tables in files, by their ending: Parquet, CSV, Arrow IPC. Read batch by batch; written whole or not at all."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from swag.cli import csv_types
from swag.durable.atomic_file import reason, replacing, why_not_regular
from swag.tables.predicate import holds

KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".br", ".zip", ".tar")
_CALLED = {"parquet": "a Parquet", "csv": "a CSV", "arrow": "an Arrow"}


def kind_of(path: Path) -> str:
    ending = path.suffix.lower()
    if str(path) == "-":
        raise click.UsageError("- (a pipe) is not supported, as files are read twice. Hint: the name of a file")
    if ending in PACKED:
        raise click.UsageError(f'"{path}" is compressed, which is not supported. Hint: unpack it, or use Parquet')
    if ending not in KINDS:
        raise click.UsageError(f'"{path}" ends in none of {", ".join(KINDS)}. Hint: a name that says what is in it')
    return KINDS[ending]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What the file system or Arrow has against a file, as one line."""
    try:
        found = why_not_regular(path)
        if found:
            raise click.UsageError(f'"{path}" can not be read: {found}. Hint: a file, which can be read twice')
        path.open("rb").close()  # says in fewer words than Arrow why it can not be opened
        if not path.stat().st_size:
            raise click.UsageError(f'"{path}" is empty. Hint: a file with events')
        yield
    except (OSError, UnicodeError) as why:
        raise click.UsageError(f'"{path}" can not be read: {reason(why)}.') from None
    except pa.ArrowException as why:
        raise click.UsageError(f'"{path}" is not {_CALLED[kind_of(path)]} file: {_in_short(why)}.') from None


def _in_short(why: pa.ArrowException) -> str:
    said = (str(why).strip().splitlines() or [type(why).__name__])[0].rstrip(".")
    said = said if len(said) <= 200 else f"{said[:199]}…"  # Arrow shows whole rows
    return f"a row is longer than {csv_types.BLOCK:,} bytes" if "straddling object" in said else said


class Source:
    """A file of events or requests. Nothing but the names of its columns is read until it is asked for more."""

    def __init__(self, path: Path) -> None:
        self.path, self.kind = path, kind_of(path)
        self.rows: int | None = None  # unknown of a CSV until it is read
        self.where: str | None = None  # rows for which this does not hold are left out
        self._types: csv_types.Types = {}  # of a CSV, as far as they were asked for
        with _readable(path):
            self._schema = self._look()
        self.names: list[str] = self._schema.names

    def _look(self) -> pa.Schema:
        if self.kind == "parquet":
            with pa.parquet.ParquetFile(self.path) as file:
                self.rows = file.metadata.num_rows
                return file.schema_arrow
        if self.kind == "arrow":
            with pa.memory_map(str(self.path)) as memory, pa.ipc.open_file(memory) as file:
                return file.schema
        with csv_types.reader(self.path) as reader:
            if not any(batch.num_rows for batch in reader):
                raise click.UsageError(f'"{self.path}" has no rows, and so no types. Hint: Parquet keeps them')
            first, *others = reader.schema.names
            if not others and any(mark in first for mark in ";\t|"):
                raise click.UsageError(f'"{self.path}" has one column, "{first}". Hint: a comma between columns')
            return reader.schema

    def typed(self, columns: list[str]) -> pa.Schema:
        """Some columns with their types: of a CSV, those that all of its rows have."""
        if self.kind != "csv":
            return pa.schema([self._schema.field(name) for name in columns])
        unknown = [name for name in columns if name not in self._types]
        if unknown:
            with _readable(self.path):
                self._types |= csv_types.types_of(self.path, unknown)
        for name in columns:
            if pa.types.is_binary(self._types[name]):
                raise click.UsageError(f'"{self.path}": column "{name}" is not text in UTF-8. Hint: save it as UTF-8')
        return pa.schema([(name, self._types[name]) for name in columns])

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
            schema = self.typed(columns)
            with csv_types.reader(self.path, columns, dict(zip(columns, schema.types))) as reader:
                yield from reader

    def read(self, columns: list[str] | None = None) -> pa.Table:
        chosen = self._all_names() if columns is None else columns
        batches = list(self.batches(chosen, 1 << 20))
        return pa.concat_tables(batches) if batches else self.typed(chosen).empty_table()

    def _all_names(self) -> list[str]:
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise click.UsageError(f'"{self.path}" has more than one column "{twice[0]}". Hint: rename one')
        return self.names


@contextmanager
def written(path: Path) -> Iterator["Sink"]:
    """A file that appears under its name once all of it is there; if anything goes wrong, what was there stays."""
    kind = kind_of(path)
    try:
        with replacing(path) as draft, Sink(kind, draft.file, f'"{path}"', draft.folder) as sink:
            yield sink
    except (OSError, UnicodeError) as why:
        raise click.UsageError(f'"{path}" can not be written: {reason(why)}.') from None


class Sink:
    """A file that is being written, table by table; the end of a `with` completes it. folder: room for more, if any."""

    def __init__(self, kind: str, file: BinaryIO, called: str, folder: Path | None = None) -> None:
        self.kind, self.file, self.called, self.folder = kind, file, called, folder
        self._writer: Any = None
        self._schema: pa.Schema = pa.schema([])

    def write(self, table: pa.Table) -> None:
        if self._writer is not None and table.schema != self._schema:
            table = table.cast(self._schema)
        with self._possible():
            if self._writer is None:
                self._writer, self._schema = self._open(table.schema), table.schema
            self._writer.write_table(table)

    def start_over(self) -> None:
        """Forget what was written."""
        self._abandon()
        self.file.seek(0)
        self.file.truncate()

    def __enter__(self) -> "Sink":
        return self

    def __exit__(self, failed: Any, *details: Any) -> None:
        if failed:
            self._abandon()
            return
        if self._writer is None:
            self.write(pa.table({}))
        with self._possible():
            self._writer.close()

    def _abandon(self) -> None:
        """A writer of Arrow that is not closed closes itself later, when its file is gone."""
        with suppress(OSError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()
        self._writer = None

    @contextmanager
    def _possible(self) -> Iterator[None]:
        try:
            yield
        except OSError as why:
            raise click.UsageError(f"{self.called} can not be written: {reason(why)}.") from None
        except pa.ArrowException as why:
            hint = " Hint: --out answers.parquet" if self.kind == "csv" else ""
            message = f"{_CALLED[self.kind]} file can not hold these answers: {_in_short(why)}.{hint}"
            raise click.UsageError(message) from None

    def _open(self, schema: pa.Schema) -> Any:
        if self.kind == "parquet":
            return pa.parquet.ParquetWriter(self.file, schema)
        if self.kind == "arrow":
            return pa.ipc.new_file(self.file, schema)
        return pa.csv.CSVWriter(self.file, schema)


def check_apart(inputs: dict[str, Path | None], outputs: dict[str, Path | None]) -> None:
    """No output may be a file that is read, or that another output is written to, by whatever name it goes."""
    for name, path in outputs.items():
        for other, read in {**inputs, **outputs}.items():
            if name != other and path is not None and read is not None and _are_one(path, read):
                raise click.UsageError(f'{name} "{path}" is the file of {other}. Hint: another name for {name}')


def _are_one(a: Path, b: Path) -> bool:
    with suppress(OSError, ValueError):
        return os.path.realpath(a) == os.path.realpath(b) or os.path.samefile(a, b)
    return False
