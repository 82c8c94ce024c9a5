"""How a frozen value shows itself: as the call that makes it, without what is as usual."""

import json
from dataclasses import MISSING, fields
from typing import Any

BY_POSITION = {"by position": True}  # of a field that may be left out: how it is given if it is not


def as_call(value: Any) -> str:
    """A dataclass as the call of its constructor; fields without a default come first, by position."""
    given = []
    for each in sorted(fields(value), key=lambda each: each.kw_only is True):
        one = getattr(value, each.name)
        if not each.repr:
            continue
        if each.default is MISSING or (each.metadata == BY_POSITION and one is not each.default):
            given.append(shown(one))
        elif not _is_same(one, each.default):
            given.append(f"{each.name}={shown(one)}")
    return called(value, given)


def called(value: Any, given: list[str]) -> str:
    """The constructor's name as users write it, with these arguments."""
    package = "fr" if type(value).__module__.partition(".")[0] == "frames" else "sw"
    return f"{package}.{type(value).__name__}({', '.join(given)})"


def shown(value: Any) -> str:
    """A value as it is written in a call; text in the quotes that the documentation has."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if type(value) is tuple:
        return f"({', '.join(map(shown, value))}{',' * (len(value) == 1)})"
    if type(value) is dict:
        return f"{{{', '.join(f'{shown(name)}: {shown(each)}' for name, each in value.items())}}}"
    return repr(value)


def _is_same(value: Any, usual: Any) -> bool:
    """Anything may be asked here, also what can not be compared."""
    return value is usual or (type(value) is type(usual) and value == usual)
