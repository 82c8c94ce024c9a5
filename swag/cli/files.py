"""Sink: answers in a file, Parquet, CSV or Arrow by its ending, written whole or not at all."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from swag.durable.atomic_file import reason, replacing
from swag.files.source import CALLED, KINDS, in_short


def kind_of_output(path: Path) -> str:
    """What a file will be, by its name."""
    if path.suffix.lower() not in KINDS:
        raise click.UsageError(f'"{path}" ends in none of {", ".join(KINDS)}. Hint: a name that says what is in it')
    return KINDS[path.suffix.lower()]


@contextmanager
def written(path: Path) -> Iterator["Sink"]:
    """A file that appears under its name once all of it is there; if anything goes wrong, what was there stays."""
    kind = kind_of_output(path)
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
        """What the file system or Arrow has against writing these answers, as one line about the output file."""
        try:
            yield
        except OSError as why:
            raise click.UsageError(f"{self.called} can not be written: {reason(why)}.") from None
        except pa.ArrowException as why:
            hint = " Hint: --out answers.parquet" if self.kind == "csv" else ""
            message = f"{CALLED[self.kind]} file can not hold these answers: {in_short(why)}.{hint}"
            raise click.UsageError(message) from None

    def _open(self, schema: pa.Schema) -> Any:
        if self.kind == "parquet":
            return pa.parquet.ParquetWriter(self.file, schema)
        if self.kind == "arrow":
            return pa.ipc.new_file(self.file, schema)
        return pa.csv.CSVWriter(self.file, schema)


def check_apart(inputs: dict[str, Iterable[Path]], outputs: dict[str, Path | None]) -> None:
    """No output may be a file that is read, or that another output is written to, by whatever name it goes."""
    given = {name: [] if path is None else [path] for name, path in outputs.items()}
    for name, paths in given.items():
        for other, files in {**inputs, **given}.items():
            for path, read in product(paths, files):
                if name != other and _are_one(path, read):
                    raise click.UsageError(f'{name} "{path}" is the file of {other}. Hint: another name for {name}')


def _are_one(a: Path, b: Path) -> bool:
    with suppress(OSError, ValueError):
        return os.path.realpath(a) == os.path.realpath(b) or os.path.samefile(a, b)
    return False
