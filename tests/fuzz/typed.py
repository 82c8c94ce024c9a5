"""Tables whose columns are of any type: how to draw them, the Python that makes them, and the tables."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.fuzz import drawing


def whole(least: int, most: int) -> Any:
    return st.sampled_from([None, *range(max(least, -2), 4), least, most, most - 1])


SINGLE = st.sampled_from(
    [None, *(float(np.float32(x)) for x in drawing.TAME), math.nan, math.inf, float(np.float32(1e30))]
)
DAYS = st.integers(-3, 20_000).map(lambda day: datetime.date(1970, 1, 1) + datetime.timedelta(days=day))
MOMENTS = st.integers(-3, 10**9).map(lambda s: datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=s))
TEXT = st.sampled_from([None, "", "bid", "ask", "buy", "é"])
TYPES: dict[str, tuple[str, Any]] = {
    "float64": ("pa.float64()", drawing.COLUMNS["x"]),
    "float32": ("pa.float32()", SINGLE),
    "small float64": ("pa.float64()", drawing.COLUMNS["y"]),
    "small float32": ("pa.float32()", drawing.COLUMNS["y"]),
    "int64": ("pa.int64()", st.sampled_from([None, 0, 1, -1, 2, 2**40, 2**53 + 1, 2**62, -(2**63), 2**63 - 1])),
    "int32": ("pa.int32()", whole(-(2**31), 2**31 - 1)),
    "int16": ("pa.int16()", whole(-(2**15), 2**15 - 1)),
    "int8": ("pa.int8()", whole(-128, 127)),
    "uint8": ("pa.uint8()", whole(0, 255)),
    "uint32": ("pa.uint32()", whole(0, 2**32 - 1)),
    "uint64": ("pa.uint64()", whole(0, 2**63 - 1)),
    "null": ("pa.null()", st.none()),
    "bool": ("pa.bool_()", st.none() | st.booleans()),
    "date32": ("pa.date32()", st.none() | DAYS),
    "timestamp": ("pa.timestamp('s')", st.none() | MOMENTS),
    "string": ("pa.string()", TEXT),
    "large_string": ("pa.large_string()", TEXT),
    "dictionary": ("pa.dictionary(pa.int8(), pa.string())", TEXT),
    "dictionary with a null": ("pa.dictionary(pa.int8(), pa.string())", TEXT),
}
FLOATS, SMALL_FLOATS = ["float64", "float32"], ["small float64", "small float32"]
WHOLE = ["int64", "int32", "int16", "int8", "uint8", "uint32", "uint64"]
TEXTS = ["string", "large_string", "dictionary", "dictionary with a null"]
NUMBERS = {*FLOATS, *SMALL_FLOATS, *WHOLE}
ROLES = {"x": list(TYPES), "y": SMALL_FLOATS, "i": WHOLE, "n": ["int8", "uint8", "int16"], "p": FLOATS, "s": TEXTS}
ROLES |= {"b": ["bool"]}
KEYS = {"string": "abc", "dictionary": "abc", "int64": [0, 1, 2**40], "int8": [0, 1, -1], "bool": [True, False]}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """The type of every column, and rows in any order."""
    types = {name: draw(st.sampled_from(roles)) for name, roles in ROLES.items()}
    types["k"] = draw(st.sampled_from(list(KEYS)))
    values = {name: st.sampled_from(KEYS[kind]) if name == "k" else TYPES[kind][1] for name, kind in types.items()}
    times = st.integers(-3, 15) | st.sampled_from([40, -(2**40)])
    names = ["ts", *types]
    row = st.tuples(times, *values.values()).map(lambda row: dict(zip(names, row, strict=True)))
    return {"types": types, "rows": draw(st.lists(row, max_size=20))}


def arrow(kind: str) -> pa.DataType:
    return eval(TYPES[kind][0], {"pa": pa})


def made(rows: list[dict[str, Any]], types: dict[str, str], chunks: int) -> pa.Table:
    """In chunks that are slices of something larger."""
    kinds = {"ts": pa.int64(), **{name: arrow(kind) for name, kind in types.items()}}
    padded = [*rows[:1], *rows]
    arrays = {name: pa.array([row[name] for row in padded], kind) for name, kind in kinds.items()}
    odd = [name for name, kind in types.items() if kind == "dictionary with a null"]
    table = pa.table(arrays | {name: _with_a_null(arrays[name]) for name in odd})
    table, cut = table[len(padded) - len(rows) :], -(-len(rows) // chunks) or 1
    return pa.concat_tables([table[at : at + cut] for at in range(0, len(rows), cut)]) if rows else table


def _with_a_null(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Nulls are a value of the dictionary."""
    values = pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)])
    return pa.DictionaryArray.from_arrays(array.indices.fill_null(len(values) - 1), values)


def code(rows: list[dict[str, Any]], types: dict[str, str], read: set[str]) -> str:
    """Of the columns that are read."""
    kinds = {"ts": "pa.int64()", **{name: TYPES[kind][0] for name, kind in types.items() if name in read}}
    columns = [f"{name!r}: pa.array({[row[name] for row in rows]!r}, {kind})" for name, kind in kinds.items()]
    return f"pa.table({{{', '.join(columns)}}})"
