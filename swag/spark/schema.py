"""Spark's types and Arrow's: what a DataFrame's rows will be in a Python worker, known before any job runs."""

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from swag.errors import BadQuery, BadType
from swag.spark.places import col
from swag.tables.columns import column

DAY_IN_US, MINUTE_IN_US = 86_400_000_000, 60_000_000  # in microseconds


def check_frame(frame: Any, what: str) -> None:
    """Classic and Connect DataFrames share no base class but this one."""
    refuse_pandas(frame, what)
    if not isinstance(frame, DataFrame):
        raise BadType(
            f"{what} are a {type(frame).__name__}, not a Spark DataFrame.",
            "spark.createDataFrame(…), or sw.evaluate for tables in memory",
        )
    if frame.isStreaming:
        raise BadQuery(f"{what} are a stream.", "swag.spark.stream(queries, events, …), frames.spark.stream(spec, …)")


def refuse_pandas(frame: Any, what: str) -> None:
    if type(frame).__module__.startswith("pyspark.pandas"):
        raise BadType(f"{what} are a pandas-on-Spark {type(frame).__name__}, not a Spark DataFrame.", ".to_spark()")


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


def spark_fields(schema: pa.Schema) -> list[StructField]:
    return [StructField(each.name, from_arrow_type(each.type), True) for each in schema]


def arrow_of(schema: StructType, frame: DataFrame) -> pa.Schema:
    zone = timezone(frame)
    return pa.schema([pa.field(each.name, to_arrow_type(each.dataType, timezone=zone)) for each in schema])


def key_names(key: str | list[str] | tuple[str, ...] | None) -> list[str]:
    """One column, several, or none."""
    names = [] if key is None else [key] if isinstance(key, str) else list(key)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise BadType(f"key={key!r} is not a list of names of columns.", 'key="symbol", or key=["venue", "symbol"]')
    return names


def check_key(each: StructField) -> None:
    """Refuse a key column of a Spark type that is no key: arrays, maps, variants, and text with a collation."""
    if _holds(each.dataType, ArrayType | MapType | VariantType):
        raise BadType(
            f'a key of type {each.dataType.simpleString()} ("{each.name}") can not be grouped by.',
            f'a column of text instead: F.to_json("{each.name}")',
        )

    if _holds(each.dataType, StringType) and "collate" in each.dataType.simpleString().lower():
        raise BadType(
            f'a key of type {each.dataType.simpleString()} ("{each.name}") has many spellings for one key.',
            f'one spelling of each: F.lower("{each.name}").cast("string")',
        )


def _holds(kind: DataType, what: Any) -> bool:
    if isinstance(kind, StructType):
        return any(_holds(each.dataType, what) for each in kind)
    return isinstance(kind, what)


def key_columns(frame: DataFrame, keys: list[str]) -> tuple[list[Column], tuple[str, ...]]:
    """Columns of placed(frame): the key's as k0, k1 …, with g0 … where those do not tell keys apart; and the names of
    those that do."""
    found, by = [], []
    for i, name in enumerate(keys):
        found.append(col(frame, name).alias(f"k{i}"))
        apart = _apart(col(frame, name), frame.schema[name].dataType)
        by.append(f"k{i}" if apart is None else f"g{i}")
        if apart is not None:
            found.append(apart.alias(f"g{i}"))
    return found, tuple(by)


def _apart(key: Column, kind: DataType) -> Column | None:
    """0.0 is -0.0."""
    return key + F.lit(0.0).cast(kind) if isinstance(kind, FloatType | DoubleType) else None


SIMPLE = (StringType, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType, IntegralType)


def is_simple(kind: DataType) -> bool:
    """Types whose values swag.tables.keys can number."""
    return isinstance(kind, SIMPLE)


def written(frame: DataFrame, keys: list[str]) -> Column:
    """Several columns, or one of a type of its own, as one text: equal where they are equal."""
    each = [
        own if apart is None else apart
        for own, kind in ((col(frame, name), frame.schema[name].dataType) for name in keys)
        for apart in [_apart(own, kind)]
    ]
    exact = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
    named = [column.alias(f"k{i}") for i, column in enumerate(each)]
    return F.to_json(F.struct(*named), {**exact, "ignoreNullFields": "false"})


def one_key(frame: DataFrame, keys: list[str]) -> tuple[list[Column], str]:
    """k0, k1 …, and the name of the one column that tells keys apart: text, if the key is not of a simple type."""
    columns, by = key_columns(frame, keys)
    if by == ("k0",) and is_simple(frame.schema[keys[0]].dataType):
        return columns, "k0"
    return [*columns, written(frame, keys).alias("known_by")], "known_by"


def instant(frame: DataFrame, ts: str) -> Column:
    """A ts column of placed(frame) as tables.columns.instants has it: microseconds, days, or the integer, as int64."""
    kind = field(frame, ts, "ts is").dataType
    at = col(frame, ts)
    if isinstance(kind, TimestampType):
        return F.unix_micros(at)
    if isinstance(kind, TimestampNTZType):  # in pieces: a cast would go through the session's time zone
        second = (F.date_part(F.lit("SECOND"), at) * 1_000_000).cast("long")
        minute = (F.hour(at) * 60 + F.minute(at)).cast("long")
        return F.unix_date(F.to_date(at)).cast("long") * F.lit(DAY_IN_US) + minute * F.lit(MINUTE_IN_US) + second
    return F.unix_date(at).cast("long") if isinstance(kind, DateType) else at.cast("long")
