"""Source: a file of events or requests, Parquet, CSV or Arrow by its ending, read batch by batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from swag.durable.atomic_file import reason, why_not_regular
from swag.errors import BadEvents
from swag.files import csv_types

KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
UNPACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")  # by Arrow, as a CSV is read
PACKED = (*UNPACKED, ".xz", ".zip", ".tar", ".tgz")
CALLED = {"parquet": "a Parquet", "csv": "a CSV", "arrow": "an Arrow"}


def kind_of(path: Path) -> str:
    """What a file is, by its name: also that of a CSV that is compressed, of which two endings say so."""
    endings = [ending.lower() for ending in path.suffixes]
    if str(path) == "-":
        raise BadEvents("- (a pipe) is not supported, as files are read twice.", "the name of a file")
    if endings[-2:-1] == [".csv"] and endings[-1] in UNPACKED:
        return "csv"
    if endings and endings[-1] in PACKED:
        rule = f"of compressed files, only CSV is read: {', '.join('.csv' + ending for ending in UNPACKED)}"
        raise BadEvents(f'"{path}" is compressed; {rule}.', "unpack it, or use Parquet")
    if not endings or endings[-1] not in KINDS:
        raise BadEvents(f'"{path}" ends in none of {", ".join(KINDS)}.', "a name that says what is in it")
    return KINDS[endings[-1]]


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What the file system or Arrow has against a file, as one line."""
    try:
        found = why_not_regular(path)
        if found:
            hint = f'"{path}/*.parquet", all such files in it' if found == "it is a folder" else "a file"
            raise BadEvents(f'"{path}" can not be read: {found}.', hint)
        path.open("rb").close()  # says in fewer words than Arrow why it can not be opened
        if not path.stat().st_size:
            raise BadEvents(f'"{path}" is empty.', "a file with events")
        yield
    except (OSError, UnicodeError) as why:
        raise BadEvents(f'"{path}" can not be read: {reason(why)}.') from None
    except pa.ArrowException as why:
        raise BadEvents(f'"{path}" is not {CALLED[kind_of(path)]} file: {in_short(why)}.') from None


def in_short(why: pa.ArrowException) -> str:
    """What Arrow says, in one line."""
    said = (str(why).strip().splitlines() or [type(why).__name__])[0].rstrip(".")
    said = said if len(said) <= 200 else f"{said[:199]}…"  # Arrow shows whole rows
    return f"a row is longer than {csv_types.CSV_BLOCK:,} bytes" if "straddling object" in said else said


class Source:
    """A file. Nothing but the names of its columns is read until it is asked for more."""

    def __init__(self, path: Path) -> None:
        self.path, self.kind = path, kind_of(path)
        self.rows: int | None = None  # unknown of a CSV until it is read
        self._types: csv_types.Types = {}  # of a CSV, as far as they were asked for
        with readable(path):
            self._schema = self._look()
        self.names: list[str] = self._schema.names

    def _look(self) -> pa.Schema:
        """The schema of the file, and of Parquet the number of rows; a CSV without rows or commas is refused."""
        if self.kind == "parquet":
            with pa.parquet.ParquetFile(self.path) as file:
                self.rows = file.metadata.num_rows
                return file.schema_arrow
        if self.kind == "arrow":
            with pa.OSFile(str(self.path)) as memory, pa.ipc.open_file(memory) as file:
                return file.schema
        with csv_types.reader(self.path) as reader:
            if not any(batch.num_rows for batch in reader):
                raise BadEvents(f'"{self.path}" has no rows, and so no types.', "Parquet keeps them")
            first, *others = reader.schema.names
            if not others and any(mark in first for mark in ";\t|"):
                raise BadEvents(f'"{self.path}" has one column, "{first}".', "a comma between columns")
            return reader.schema

    def typed(self, columns: list[str]) -> pa.Schema:
        """Some columns with their types: of a CSV, those that all of its rows have."""
        if self.kind != "csv":
            return pa.schema([self._schema.field(name) for name in columns])
        unknown = [name for name in columns if name not in self._types]
        if unknown:
            with readable(self.path):
                self._types |= csv_types.types_of(self.path, unknown)
        for name in columns:
            if pa.types.is_binary(self._types[name]):
                raise BadEvents(f'"{self.path}": column "{name}" is not text in UTF-8.', "save it as UTF-8")
        return pa.schema([(name, self._types[name]) for name in columns])

    def batches(self, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        """The rows in order, of the columns and types that are asked for; about `size` at a time, or fewer."""
        for batch in self._batches(schema, size):
            yield batch if batch.schema.equals(schema) else batch.cast(schema)

    def _batches(self, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        with readable(self.path):
            yield from _READERS[self.kind](self.path, schema, size)


def _from_parquet(path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    with pa.parquet.ParquetFile(path, pre_buffer=False) as file:
        for group in range(file.num_row_groups):  # asked for all of them, Arrow reads far ahead
            for batch in file.iter_batches(min(size, 1 << 16), [group], schema.names):
                yield batch.select(schema.names)


def _from_arrow(path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    """Read, not mapped: a file that is mapped may change under whoever keeps its rows."""
    with pa.OSFile(str(path)) as opened, pa.ipc.open_file(opened) as whole:
        options = pa.ipc.IpcReadOptions(included_fields=sorted(map(whole.schema.get_field_index, schema.names)))
        with pa.ipc.open_file(opened, options=options) as file:
            for i in range(file.num_record_batches):
                yield file.get_batch(i).select(schema.names)


def _from_csv(path: Path, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    with csv_types.reader(path, schema.names, dict(zip(schema.names, schema.types, strict=True))) as reader:
        yield from reader


_READERS: dict[str, Callable[[Path, pa.Schema, int], Iterator[pa.RecordBatch]]] = {
    "parquet": _from_parquet, "arrow": _from_arrow, "csv": _from_csv,
}  # fmt: skip
