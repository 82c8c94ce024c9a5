"""Constants that answers are compared with: which there are, and one way to write each, for JSON and for SQL alike.

5, 0.5, 'text', TRUE                         as they are
DATE '2024-03-01', DECIMAL '0.98'            a word for the type, and the value as text
"""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadQuery

Number = int | float | Decimal
_MICROSECOND = datetime.timedelta(microseconds=1)

# By the word that SQL has for the type: the Python type, how a value is written, and how it is read.
_WORDS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "TIMESTAMP_NS": (np.datetime64, str, lambda text: np.datetime64(text, "ns")),
    "TIMESTAMPTZ": (datetime.datetime, lambda value: value.isoformat(" "), datetime.datetime.fromisoformat),
    "TIMESTAMP": (datetime.datetime, lambda value: value.isoformat(" "), datetime.datetime.fromisoformat),
    "DATE": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "TIME": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "DECIMAL": (Decimal, str, Decimal),
    "MICROSECONDS": (
        datetime.timedelta,
        lambda value: str(value // _MICROSECOND),
        lambda text: int(text) * _MICROSECOND,
    ),
    "BLOB": (bytes, bytes.hex, bytes.fromhex),
}


def plain(value: Any) -> Any:
    """A scalar of NumPy, pandas or Arrow as the Python value that it equals."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if hasattr(value, "to_datetime64") or hasattr(value, "to_timedelta64"):  # of pandas
        value = value.to_numpy() if not _is_zoned(value) else _zoned(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _in_microseconds(value)
    return value.item() if isinstance(value, np.generic) else value


def _zoned(value: Any) -> datetime.datetime:
    """A pandas.Timestamp with a zone."""
    if value.nanosecond:
        raise BadQuery(f"{value!r} is finer than a microsecond.", 'threshold.floor("us")')
    found: datetime.datetime = value.to_pydatetime()
    return found


def _is_zoned(value: Any) -> bool:
    return getattr(value, "tzinfo", None) is not None


def _in_microseconds(value: np.datetime64 | np.timedelta64) -> Any:
    """A date, datetime or timedelta; nanoseconds that these can not tell stay with NumPy."""
    kind, unit = value.dtype.kind, np.datetime_data(value.dtype)[0]
    if unit in ("Y", "M", "W", "D") and kind == "M":
        return value.astype("M8[D]").item()
    if unit in ("Y", "M"):  # months are not equally long: such a duration is no number of microseconds
        return value
    short = value.astype(f"{kind}8[us]")
    return short.item() if short == value else value


def is_constant(value: Any) -> bool:
    return isinstance(value, str) or is_number(value) or isinstance(value, bool) or word(value) is not None


def is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def word(value: Any) -> str | None:
    """What SQL calls the type of a value that is not simply written down."""
    found = next((word for word, (kind, _, _) in _WORDS.items() if isinstance(value, kind)), None)
    return "TIMESTAMP" if found == "TIMESTAMPTZ" and not _is_zoned(value) else found


def read(word: str, text: str) -> Any:
    """The value that a word and a text stand for."""
    try:
        return _WORDS[word][2](text)
    except (ValueError, ArithmeticError):
        raise BadQuery(
            f"{word} '{text}' can not be read.", "DATE '2024-03-01', TIMESTAMP '2024-03-01 09:30:00'"
        ) from None


def is_word(word: str) -> bool:
    return word in _WORDS


def to_json(value: Any) -> Any:
    kind = word(value)
    return value if kind is None else {"constant": kind, "value": _WORDS[kind][1](value)}


def from_json(entry: Any) -> Any:
    return read(entry["constant"], entry["value"]) if isinstance(entry, dict) else entry


def to_sql(value: Any) -> str:
    """A constant as SQL writes it, so that it reads back the same."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return str(value).upper()
    kind = word(value)
    if kind is None:
        infinite = isinstance(value, float) and math.isinf(value)
        return repr(value) if not infinite else "1e999" if value > 0 else "-1e999"
    text = f"'{_WORDS[kind][1](value)}'"
    return f"INTERVAL {text} MICROSECONDS" if kind == "MICROSECONDS" else f"{kind} {text}"
