"""Spark's types and Arrow's: what a DataFrame's rows will be in a Python worker, known before any job runs."""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, functions as F
from pyspark.sql.column import Column
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from swag.columns import column
from swag.errors import BadQuery, BadType

DAY = 86_400_000_000


def check_frame(frame: Any, what: str) -> None:
    """Classic and Connect DataFrames share no base class but this one."""
    if not isinstance(frame, DataFrame):
        raise BadType(
            f"{what} are a {type(frame).__name__}, not a Spark DataFrame.",
            "spark.createDataFrame(…), or sw.evaluate for tables in memory",
        )
    if frame.isStreaming:
        raise BadQuery(f"{what} are a stream.", "swag.spark.stream(queries, events, …)")


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The Arrow types of a DataFrame's columns."""
    zone = timezone(frame)
    return pa.schema([pa.field(field.name, _arrow(field, zone)) for field in frame.schema])


def _arrow(field: StructField, zone: str) -> pa.DataType:
    try:
        return to_arrow_type(field.dataType, timezone=zone)
    except Exception:  # a type that Arrow has no place for is no harm, unless it is asked for
        return pa.null()


def timezone(frame: DataFrame) -> str:
    return str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))


def empty_table(frame: DataFrame) -> pa.Table:
    return arrow_schema(frame).empty_table()


def field(frame: DataFrame, name: str, asked_by: str) -> StructField:
    """A column's field; a misspelt name is refused with the nearest there is."""
    column(empty_table(frame), name, asked_by)
    return frame.schema[name]


def answer_fields(schema: pa.Schema) -> list[StructField]:
    return [StructField(each.name, from_arrow_type(each.type), True) for each in schema]


def key_names(key: str | list[str] | tuple[str, ...] | None) -> list[str]:
    """One column, several, or none."""
    names = [] if key is None else [key] if isinstance(key, str) else list(key)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise BadType(f"key={key!r} is not a list of names of columns.", 'key="symbol", or key=["venue", "symbol"]')
    return names


def check_key(each: StructField) -> None:
    if _holds(each.dataType, ArrayType | MapType | VariantType):
        raise BadType(
            f'a key of type {each.dataType.simpleString()} ("{each.name}") can not be grouped by.',
            f'a column of text instead: F.to_json("{each.name}")',
        )


def _holds(kind: DataType, what: Any) -> bool:
    if isinstance(kind, StructType):
        return any(_holds(each.dataType, what) for each in kind)
    return isinstance(kind, what)


def grouping(name: str, kind: DataType) -> Column:
    """What tells a key from another: itself, save for collated text, and for 0.0, which is -0.0 as well."""
    if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        return F.collation_key(name)
    if isinstance(kind, FractionalType) and kind.typeName() in ("float", "double"):
        return F.col(name) + F.lit(0.0).cast(kind)
    return F.col(name)


def instant(name: str, kind: DataType) -> Column:
    """A ts column as int64 in its own unit, as swag.columns.instants has it: microseconds, days, or the integer."""
    at = F.col(name)
    if isinstance(kind, TimestampType):
        return F.unix_micros(at)
    if isinstance(kind, TimestampNTZType):  # piece by piece: to cast it would go through the session's time zone
        second = (F.date_part(F.lit("SECOND"), at) * 1_000_000).cast("long")
        return F.unix_date(F.to_date(at)) * F.lit(DAY) + (F.hour(at) * 60 + F.minute(at)) * F.lit(60_000_000) + second
    if isinstance(kind, DateType):
        return F.unix_date(at).cast("long")
    if isinstance(kind, IntegralType):
        return at.cast("long")
    raise BadType(
        f'ts column "{name}" is {kind.simpleString()}; ts is an integer or a timestamp.',
        f'cast it, e.g. F.to_timestamp("{name}")',
    )
