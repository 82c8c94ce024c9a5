"""Custom(…): frames that functions of a user's open, grow and close: the logical frame operator."""

import itertools
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from frames.specs.as_json import PROCESS
from frames.specs.lengths import lengths_from_json, lengths_to_json
from frames.specs.spec import Spec, check_name
from swag.arguments import is_number
from swag.errors import BadQuery
from swag.query.as_call import called, shown

HINT = 'fr.Custom("x", open=lambda event, state: event.x > 5, close=lambda event, state: not event.x > 5)'
_numbers = itertools.count()
_known: dict[int, "Custom"] = {}


def _same(event: Any, state: Any) -> Any:
    """What becomes of a state that nobody updates."""
    return state


@dataclass(frozen=True)
class Custom(Spec):
    """Frames by your own functions of (event, state), which Numba compiles: the logical operator of the papers.

    `event` has `event.ts` (a whole number in the unit of ts) and the columns, by name; a mapping of names to columns or
    SQL gives them others. A null is NaN, where the column has floats; a column of integers may have none.

    open(event, state)     may a frame begin with this event? state: of all events of the key before it
    update(event, state)   the state with one event more; it begins as `state`, a number or a tuple of numbers
    close(event, state)    of a frame that is open, and the state of its events so far: False, it stays open, and this
                           event is in it; True or 1, it has ended before this event; 2, it ends with it; -1, it has
                           ended and is no frame. The event that opens a frame may end it as well (2)

    One frame is open at a time, and an event that is in none is asked to open one. With overlap=True frames may
    overlap, and every event is asked. unfinished=False drops those that are open when the stream ends. Frames that are
    shorter than a minimum, or longer than a maximum, are dropped, not split. A frame is certain when it has ended.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4, 5, 6], "x": [0, 7, 9, 1, 8, 2]}
    >>> high = fr.Custom("x", open=lambda event, state: event.x > 5, close=lambda event, state: not event.x > 5)
    >>> fr.detect(high, events).select(["start", "end"]).to_pylist()
    [{'start': 2, 'end': 3}, {'start': 5, 'end': 5}]

    The windows of three rows, every other row, as frames:

    >>> count = lambda event, rows: rows + 1
    >>> three = fr.Custom(open=lambda event, seen: seen % 2 == 0, update=count, state=0, overlap=True,
    ...                   close=lambda event, rows: 2 * (rows == 2), unfinished=False)
    >>> fr.detect(three, events).select(["start", "end"]).to_pylist()
    [{'start': 1, 'end': 3}, {'start': 3, 'end': 5}]
    """

    kind: ClassVar[str] = "custom"
    scans_ends: ClassVar[bool] = False

    fields: Mapping[str, str]
    open: Callable[..., Any]
    update: Callable[..., Any]
    close: Callable[..., Any]
    state: Any
    overlap: bool
    unfinished: bool
    number: int = field(compare=False, repr=False)
    fingerprint: str | None = field(compare=False, repr=False)  # of the functions, where they come from elsewhere

    def __init__(
        self, columns: str | Sequence[str] | Mapping[str, str] = (), *, open: Any, close: Any, update: Any = None,
        state: Any = 0, overlap: bool = False, unfinished: bool = True, **lengths: Any,
    ) -> None:  # fmt: skip
        fields = _fields(columns)
        for name, function in (("open", open), ("close", close), ("update", update or _same)):
            if not callable(function):
                raise BadQuery(f"{name}={function!r} is no function of (event, state).", HINT)
        parts = state if isinstance(state, tuple) else (state,)
        if not parts or not all(is_number(part) for part in parts):
            raise BadQuery(f"state={state!r} is neither a number nor a tuple of numbers.", "state=(0, 0.0)")
        for name, flag in (("overlap", overlap), ("unfinished", unfinished)):
            if not isinstance(flag, bool):
                raise BadQuery(f"{name}={flag!r} is neither True nor False.", f"{name}=True")
        given = {"fields": fields, "open": open, "update": update or _same, "close": close, "state": state}
        for name, value in {**given, "overlap": overlap, "unfinished": unfinished, "number": next(_numbers)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "fingerprint", None)
        super().__init__(**lengths)

    def __hash__(self) -> int:
        return hash((tuple(self.fields.items()), self.open, self.update, self.close, self.state, self.overlap))

    def __repr__(self) -> str:
        plain = all(name == column for name, column in self.fields.items())
        given = [shown(tuple(self.fields) if plain else dict(self.fields))] * bool(self.fields)
        given += [f"{name}=…" for name in ("open", "update", "close") if getattr(self, name) is not _same]
        given += [f"state={shown(self.state)}"] * (self.state != 0) + ["overlap=True"] * self.overlap
        given += ["unfinished=False"] * (not self.unfinished)
        return called(self, given + [f"{name}={shown(value)}" for name, value in lengths_to_json(self).items()])

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.fields.values()))

    @property
    def in_runs(self) -> bool:
        return not self.overlap

    def event_type(self) -> Any:
        """What events are to the functions: a named tuple of ts and the columns."""
        return cast(Any, namedtuple)("Event", ["ts", *self.fields])

    def to_json(self) -> dict[str, Any]:
        """The functions can not be written down: they are known by a number, in the process that has them."""
        _known[self.number] = self
        return {"custom": [PROCESS, self.number], **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Custom | None":
        process, number = entry["custom"]
        lengths_from_json(entry)
        return _known.get(number) if process == PROCESS else None


def _fields(columns: Any) -> dict[str, str]:
    """What events have, by name."""
    if isinstance(columns, str):
        columns = (columns,)
    if not isinstance(columns, Mapping):
        if not isinstance(columns, Sequence):
            raise BadQuery(f"Custom reads the columns {columns!r}.", HINT)
        columns = {name: name for name in columns}
    for name, column in columns.items():
        check_name(column, "Custom", HINT)
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or name == "ts":
            raise BadQuery(
                f"event.{name} can not be written.", 'another name for it: fr.Custom({"rho": "temp * 0.8"}, …)'
            )
    return dict(columns)
