"""Answers as the frames of other libraries, for those who ask for them."""

import importlib
from typing import Any

import pyarrow as pa

from swag.arguments import is_option
from swag.errors import BadQuery, BadType
from swag.tables.inputs import sentence

KINDS = ("arrow", "pandas", "polars")


def check_out(out: Any) -> None:
    """Found to be possible before anything is computed."""
    if not is_option(out, KINDS):
        raise BadQuery(f"out={out!r} is none of {', '.join(KINDS)}.", 'sw.evaluate(…, out="polars")')
    try:
        importlib.import_module("pyarrow" if out == "arrow" else out)
    except ImportError:
        raise BadQuery(f'out="{out}" needs {out}, which is not installed.', f"pip install {out}") from None


def as_frame(table: pa.Table, out: str) -> Any:
    if out == "arrow":
        return table
    try:
        return importlib.import_module("polars").from_arrow(table) if out == "polars" else _pandas(table)
    except Exception as why:  # theirs, of which they have many: of types that they have not
        raise BadType(
            f"the answers can not be made a frame of {out}: {sentence(why)}", "without out=, they are a table of Arrow"
        ) from None


def _pandas(table: pa.Table) -> Any:
    """Whole numbers with nulls stay whole numbers, which by themselves would become floats."""
    frame = table.to_pandas()
    for place, column in enumerate(table.columns):
        if column.null_count and pa.types.is_integer(column.type):
            frame.isetitem(place, column.to_pandas(types_mapper=_nullable))
    return frame


def _nullable(kind: pa.DataType) -> Any:
    pandas = importlib.import_module("pandas")
    return pandas.array([], str(kind).replace("i", "I").replace("u", "U")).dtype
