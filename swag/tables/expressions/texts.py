"""Functions of text. Letters are those of Unicode; places are counted from 1, and from the end if they are negative."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swag.tables.expressions.casting import cast
from swag.tables.expressions.rows import Unfit
from swag.tables.expressions.types import is_text


def of_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuses what is no text; nulls without a type are text that is not known."""
    return lambda a, *others: function(text(a), *others)


def text(a: Any) -> Any:
    if pa.types.is_null(a.type):
        return pc.cast(a, pa.string())
    if not is_text(a.type):
        raise pa.ArrowTypeError(f"{a.type} is no text: CAST(… AS TEXT)")
    return a


def length(a: Any) -> Any:
    return pc.cast(pc.utf8_length(a), pa.int64())


def substring(a: Any, start: Any, count: Any = None) -> Any:
    """SUBSTRING(a, start, count): letters from a place on, the first being 1; from the end if start is negative."""
    first = _whole(start, "SUBSTRING")
    size = None if count is None else _whole(count, "SUBSTRING")
    if size is not None and size < 0:
        raise pa.ArrowTypeError("SUBSTRING takes a length of 0 or more")
    if first < 0:
        end = None if size is None or first + size >= 0 else first + size
        return pc.utf8_slice_codeunits(a, first, end)
    end = None if size is None else max(0, first - 1 + size)
    return pc.utf8_slice_codeunits(a, max(0, first - 1), end)


def left(a: Any, count: Any) -> Any:
    size = _whole(count, "LEFT")
    return pc.utf8_slice_codeunits(a, 0, size)


def right(a: Any, count: Any) -> Any:
    size = _whole(count, "RIGHT")
    if size < 0:
        return pc.utf8_slice_codeunits(a, -size, None)
    return pc.utf8_slice_codeunits(a, -size, None) if size else pc.utf8_slice_codeunits(a, 0, 0)


def trimmed(side: str) -> Callable[..., Any]:
    """Of blanks, or of given characters."""
    function = {"": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}[side]
    return lambda a, letters=None: function(text(a), characters=" " if letters is None else word(letters, "TRIM"))


def joined(a: Any, b: Any) -> Any:
    """a || b: null if either is."""
    return pc.binary_join_element_wise(as_text(a), as_text(b), "")


def concatenated(*values: Any) -> Any:
    """CONCAT: nulls are left out."""
    return pc.binary_join_element_wise(*(pc.fill_null(as_text(each), "") for each in values), "")


def as_text(a: Any) -> Any:
    return cast(a, pa.string()) if not is_text(a.type) or a.type != pa.string() else a


def replaced(a: Any, old: Any, new: Any) -> Any:
    """REPLACE(a, old, new). Of nothing there is nothing to replace: Arrow would look for it for ever."""
    found, other = word(old, "REPLACE"), word(new, "REPLACE")
    return pc.replace_substring(a, pattern=found, replacement=other) if found else a


def begins(a: Any, start: Any) -> Any:
    return pc.starts_with(a, pattern=word(start, "STARTS_WITH"))


def ends(a: Any, end: Any) -> Any:
    return pc.ends_with(a, pattern=word(end, "ENDS_WITH"))


def holds(a: Any, inner: Any) -> Any:
    return pc.match_substring(a, pattern=word(inner, "CONTAINS"))


def matches(a: Any, pattern: Any) -> Any:
    return pc.match_substring_regex(a, pattern=word(pattern, "REGEXP_MATCHES"))


def like(a: Any, pattern: Any, escape: Any = None, ignore_case: bool = False) -> Any:
    """a LIKE pattern ESCAPE escape. No character escapes others unless ESCAPE names one.

    To Arrow a backslash does, and not at the end of some patterns: these are written as regular expressions.
    """
    found, mark = word(pattern, "LIKE"), "" if escape is None else word(escape, "ESCAPE")
    if len(mark) > 1:
        raise Unfit(f"ESCAPE takes one character, not '{mark}'", "s LIKE '100!%' ESCAPE '!'")
    if "\\" in found or (mark and mark in found):
        return pc.match_substring_regex(text(a), _as_regex(found, mark), ignore_case=ignore_case)
    return pc.match_like(text(a), found, ignore_case=ignore_case)


def _as_regex(pattern: str, mark: str) -> str:
    letters, found = iter(pattern), ""
    for letter in letters:
        if letter == mark:
            follows = next(letters, None)
            if follows is None:
                rule = f"the pattern '{pattern}' ends with {mark}, behind which ESCAPE expects another letter"
                raise Unfit(rule, "s LIKE '100!%' ESCAPE '!'")
            found += re.escape(follows)
        else:
            found += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
    return rf"(?s)\A{found}\z"


def word(value: Any, function: str) -> str:
    if not isinstance(value, pa.Scalar) or not is_text(value.type) or not value.is_valid:
        raise pa.ArrowTypeError(f"{function} takes text in quotes there, the same for all rows")
    found: str = value.as_py()
    return found


def _whole(value: Any, function: str) -> int:
    if not isinstance(value, pa.Scalar) or not pa.types.is_integer(value.type) or not value.is_valid:
        raise pa.ArrowTypeError(f"{function} takes whole numbers there, the same for all rows")
    found: int = value.as_py()
    return found
