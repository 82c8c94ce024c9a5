"""The logical frame operator, by definition: what Custom frames are, in plain Python. Grossniklaus et al. 2016, 5.1."""

from collections.abc import Sequence
from typing import Any

from frames.specs.custom import Custom
from swag.query.user_defined import dtype_of

Frame = tuple[int, int]


def processed(spec: Custom, rows: Sequence[dict[str, Any]], ts: str = "ts") -> list[Frame]:
    """The frames of one substream, in the order in which they end; of those that end together, as they began."""
    event_of = spec.event_type()
    whole, found = spec.state, list[Frame]()
    running: list[tuple[int, Any]] = []  # frames that are open: their first position and their state
    for at, row in enumerate(rows):
        event = event_of(row[ts], *(_number(row[column]) for column in spec.fields.values()))
        inside, still = False, []
        for start, state in running:
            what = int(spec.close(event, state))
            if what in (1, 2):
                found.append((start, at if what == 2 else at - 1))
            if what == 0:
                still.append((start, _like(spec.update(event, state), spec.state)))
            inside |= what in (0, 2)
        running = still
        if (spec.overlap or not inside) and spec.open(event, whole):
            if int(spec.close(event, spec.state)) == 2:
                found.append((at, at))
            else:
                running.append((at, _like(spec.update(event, spec.state), spec.state)))
        whole = _like(spec.update(event, whole), spec.state)
    found += [(start, len(rows) - 1) for start, _ in running] if spec.unfinished else []
    return [(s, e) for s, e in found if _is_allowed(spec, rows[s : e + 1], ts)]


def _number(value: Any) -> Any:
    return float("nan") if value is None else int(value) if isinstance(value, bool) else value


def _like(state: Any, first: Any) -> Any:
    """In the types of the first state, as compiled code keeps them."""
    if isinstance(first, tuple):
        return tuple(dtype_of(like)(each).item() for each, like in zip(state, first, strict=True))
    return dtype_of(first)(state).item()


def _is_allowed(spec: Custom, extent: Sequence[dict[str, Any]], ts: str) -> bool:
    span: Any = extent[-1][ts] - extent[0][ts]
    short: Any = len(extent) < spec.min_rows or span < spec.min_duration
    return (
        not short
        and len(extent) <= (spec.max_rows or len(extent))
        and span <= (span if spec.max_duration is None else spec.max_duration)
    )
