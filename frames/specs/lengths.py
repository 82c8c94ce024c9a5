"""How short and how long a frame may be, by rows and by time, and where it ends: what every kind of frame takes."""

from dataclasses import fields
from typing import Any, Literal, TypedDict

import numpy as np

from kernels.frames.lengths import AllowedLengths
from swag.arguments import LARGEST, is_option, is_whole
from swag.errors import BadQuery
from swag.query.as_json import duration_from_json, duration_to_json
from swag.tables.times.durations import Duration, canonical, in_units, is_duration, length

Extent = Literal["closed", "open"]
ENDLESS = 2**64 - 1  # no two instants of int64 are further apart


class Lengths(TypedDict, total=False):
    """The arguments of every kind: minimums drop shorter frames, maximums split longer ones, `extent` is what ends."""

    min_rows: int
    max_rows: int | None
    min_duration: Duration
    max_duration: Duration | None
    extent: Extent


NAMES = tuple(Lengths.__annotations__)


def allowed(spec: Any, unit: str | None) -> AllowedLengths:
    """The lengths of a spec as kernels compare them, on a clock of this unit; a duration of none is so in any."""
    least = in_units(spec.min_duration, unit) if spec.min_duration else 0
    most = ENDLESS if spec.max_duration is None else in_units(spec.max_duration, unit) if spec.max_duration else 0
    if most < least:
        raise _below(spec, "duration")
    rows = LARGEST if spec.max_rows is None else int(spec.max_rows)
    splits, is_open = most < ENDLESS or rows < LARGEST, spec.extent == "open"
    return AllowedLengths(int(spec.min_rows), rows, np.uint64(least), np.uint64(most), splits, is_open)


def check_lengths(spec: Any) -> None:
    """Refuse what is no number of rows, no duration, no extent, and a maximum below its minimum."""
    for name in ("min_rows", "max_rows"):
        rows = getattr(spec, name)
        if (name == "min_rows" or rows is not None) and not (is_whole(rows) and 1 <= rows <= LARGEST):
            raise BadQuery(f"{name}={rows!r} is not a whole number >= 1.", f"{name}=20")
    check_duration(spec.min_duration, "min_duration")
    if spec.max_duration is not None:
        check_duration(spec.max_duration, "max_duration")
        alike = is_duration(spec.max_duration) == is_duration(spec.min_duration)  # else only the unit of ts can tell
        if alike and length(spec.max_duration, "max_duration") < length(spec.min_duration, "min_duration"):
            raise _below(spec, "duration")
    if spec.max_rows is not None and spec.max_rows < spec.min_rows:
        raise _below(spec, "rows")
    check_extent(spec.extent)


def check_extent(extent: Any) -> None:
    if not is_option(extent, ("closed", "open")):
        raise BadQuery(f'extent={extent!r} is neither "closed" nor "open".', 'extent="open"')


def check_duration(duration: Any, name: str) -> None:
    if length(duration, name) > LARGEST:
        raise BadQuery(f"{name}={duration!r} does not fit int64.", f'{name}="2m"')


def _below(spec: Any, what: str) -> BadQuery:
    most, least = getattr(spec, f"max_{what}"), getattr(spec, f"min_{what}")
    return BadQuery(
        f"max_{what}={most!r} is below min_{what}={least!r}: no frame would be left.", f"max_{what}={least!r}"
    )


def lengths_to_json(spec: Any) -> dict[str, Any]:
    """Those that are not as usual."""
    usual = {each.name: each.default for each in fields(spec) if each.name in NAMES}
    given = {name: getattr(spec, name) for name in NAMES if getattr(spec, name) != usual[name]}
    return {name: value if name == "extent" else duration_to_json(value) for name, value in given.items()}


def lengths_from_json(entry: dict[str, Any]) -> Lengths:
    """What is not said is as usual: older entries say less."""
    return {name: duration_from_json(entry[name]) for name in NAMES if name in entry}  # type: ignore[return-value]


def lengths_clause(spec: Any) -> str:
    """What FOR and EXTENT say of them in SQL, with a blank in front; nothing if all are as usual."""
    least = _amounts(spec.min_rows if spec.min_rows != 1 else None, spec.min_duration or None)
    most = _amounts(spec.max_rows, spec.max_duration)
    said = [least] * bool(least) + [f"AT MOST {most}"] * bool(most)
    return (f" FOR {' '.join(said)}" if said else "") + (" EXTENT OPEN" if spec.extent == "open" else "")


def _amounts(rows: int | None, duration: Duration | None) -> str:
    """So many tuples, so much time, or both."""
    from swag.query.as_sql import duration as written

    said = [] if rows is None else [f"{int(rows)} TUPLES"]
    short = None if duration is None else canonical(duration)
    return " AND ".join(said + ([] if short is None else [written(short)]))
