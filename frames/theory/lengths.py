"""How long a frame may be: the conditions on it that do not depend on data."""

from collections.abc import Sequence
from typing import Any

from frames.specs import Spec
from frames.theory.schemes import Event
from swag.errors import BadQuery


def is_long_enough(spec: Spec, extent: Sequence[Event], ts: str = "ts") -> bool:
    """The data-independent condition: rows and duration (here in the unit of ts).

    >>> import frames as fr
    >>> fr.theory.is_long_enough(fr.Session(9, min_rows=2), [{"ts": 1}])
    False
    """
    if len(extent) < spec.min_rows or spec.min_duration == 0:
        return len(extent) >= spec.min_rows
    return bool(extent[-1][ts] - extent[0][ts] >= units(spec.min_duration, "min_duration", extent[0][ts]))


def is_short_enough(spec: Spec, extent: Sequence[Event], ts: str = "ts") -> bool:
    """The other one: at most so many rows, and so long.

    >>> import frames as fr
    >>> fr.theory.is_short_enough(fr.Session(9, max_duration=3), [{"ts": 1}, {"ts": 4}])
    True
    """
    if spec.max_rows is not None and len(extent) > spec.max_rows:
        return False
    if spec.max_duration is None:
        return True
    return bool(extent[-1][ts] - extent[0][ts] <= units(spec.max_duration, "max_duration", extent[0][ts]))


def units(duration: Any, name: str, instant: Any) -> int:
    """A length, as theory counts: in the unit of an integer ts."""
    if not isinstance(duration, int) or not isinstance(instant, int):
        raise BadQuery(f"{name}={duration!r}: theory counts in the unit of an integer ts.", f"{name}=2")
    return duration
