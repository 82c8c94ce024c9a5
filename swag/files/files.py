"""Files: one or several files, by name or with wildcards, read one after the other as if they were one."""

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from swag.errors import BadEvents
from swag.files import csv_types
from swag.files.source import Source

AT_ONCE = 1 << 20  # rows
WILD = "*?["


def found(path: str | os.PathLike[str]) -> list[Path]:
    """The files that a path means: in order of their names, where it has wildcards."""
    text = os.fspath(path)
    if "://" in text:
        raise BadEvents(f'"{text}" is an address, not the path of a file.', "pyarrow.dataset.dataset(address)")
    if not text or "\0" in text:
        raise BadEvents(f"{text!r} is not the name of a file.", '"trades.parquet"')
    text = os.path.expanduser(text)
    if not any(mark in text for mark in WILD) or os.path.exists(text):
        return [Path(text)]
    files = [Path(each) for each in sorted(glob.glob(text, recursive=True)) if os.path.isfile(each)]
    if not files:
        raise BadEvents(f'no file matches "{text}".', '"folder/*.parquet"; "folder/**/*.csv" looks into folders, too')
    return files


def read(paths: Iterable[str | os.PathLike[str]]) -> pa.Table:
    """All rows of all files."""
    return Files([file for path in paths for file in found(path)]).read()


class Files:
    """Files with the same columns. Nothing but their names is read until more is asked for.

    choose: rows of every batch that it leaves out are never seen.
    """

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.sources = [Source(path) for path in paths]
        self.names = self.sources[0].names
        self.choose: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch
        for other in self.sources[1:]:
            self._check_names(other)

    def _check_names(self, other: Source) -> None:
        differing = set(self.names) ^ set(other.names)
        if differing:
            name = min(differing)
            has, lacks = (self.paths[0], other.path) if name in self.names else (other.path, self.paths[0])
            rule = "Files that are read together have the same columns."
            raise BadEvents(f'"{has}" has a column "{name}", and "{lacks}" has none. {rule}')

    @property
    def called(self) -> str:
        """How it is spoken of."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f'"{self.paths[0]}"{more}'

    @property
    def rows(self) -> int | None:
        """None: unknown before they are read, as of a CSV."""
        counts = [source.rows for source in self.sources]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def typed(self, columns: list[str]) -> pa.Schema:
        """Some columns, of types that hold the values of all files."""
        schemas = [source.typed(columns) for source in self.sources]
        if all(source.kind == "csv" for source in self.sources):
            return csv_types.of_all(zip(self.paths, schemas, strict=True))
        joined = schemas[0]
        for path, schema in zip(self.paths[1:], schemas[1:], strict=True):
            joined = _joined(joined, schema, path)
        return joined

    def batches(self, columns: list[str], size: int) -> Iterator[pa.Table]:
        """The rows in order, `size` at a time, of some columns."""
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in map(self.choose, self._batches(columns, size)):
            for start in range(0, batch.num_rows, size):
                piece = batch.slice(start, size)
                if count + piece.num_rows > size and waiting:
                    yield pa.Table.from_batches(waiting)
                    waiting, count = [], 0
                waiting.append(piece)
                count += piece.num_rows
        if waiting:
            yield pa.Table.from_batches(waiting)

    def _batches(self, columns: list[str], size: int) -> Iterator[pa.RecordBatch]:
        schema = self.typed(columns)
        for source in self.sources:
            yield from source.batches(schema, size)

    def read(self, columns: list[str] | None = None) -> pa.Table:
        chosen = self._all_names() if columns is None else columns
        tables = list(self.batches(chosen, AT_ONCE))
        return pa.concat_tables(tables) if tables else self.typed(chosen).empty_table()

    def _all_names(self) -> list[str]:
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise BadEvents(f'"{self.paths[0]}" has more than one column "{twice[0]}".', "rename one")
        return self.names


def _joined(one: pa.Schema, other: pa.Schema, path: Path) -> pa.Schema:
    """The columns of two files in types that hold the values of both; path: the second, for when there are none."""
    fields = []
    for a, b in zip(one, other, strict=True):
        try:
            fields += pa.unify_schemas([pa.schema([a]), pa.schema([b])], promote_options="permissive")
        except pa.ArrowException:
            differ = f'{a.type} in others, {b.type} in "{path}"'
            raise BadEvents(
                f'column "{a.name}" is {differ}, which have nothing in common.', "read them apart"
            ) from None
    return pa.schema(fields)
