"""When: how often a query answers, as a frozen value. A window that jumps instead of sliding.

Every(1000)          at every 1000th row of the stream: rows 1000, 2000 …
Every("1m")          once per slot of a minute ((j-1) minutes, j minutes], counted from 0 (timestamps: the epoch)
Every(time=60)       the same where ts is an integer: 60 in the unit of ts
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from swag.arguments import LARGEST, is_option, is_whole, key_columns
from swag.errors import BadQuery
from swag.query.as_call import called, shown
from swag.tables.times.durations import Duration, canonical, in_units, is_duration, nanoseconds

Anchor = Literal["tick", "tuple"]
EXAMPLES = 'sw.Every(1000) counts rows, sw.Every("1m") or sw.Every(time=60) is time'


@dataclass(frozen=True)
class Every:
    """`rows`: a bare number counts rows; a duration ("1m", a timedelta) is time. `time`: time, also as a number.

    anchor: where the window of a slot of time ends. "tick" (default), at the end of the slot, as hopping windows do:
    every slot answers whose window holds an event. "tuple", at the tuple that stands for the slot: the first one at
    its very end, else its last; a slot without one does not answer. A row that was counted is its own anchor.

    per_key: count within each key and answer for that key alone. Otherwise all rows are counted, whatever their key,
    and an answer is one row for every key with an event in its window.

    by: count within the rows that have equal values in these columns, and answer for every key among them.

    own: count all rows, whatever their key, and answer for the key of the row that was counted alone: some of the
    results of a sliding window, which come with every row.

    >>> import swag as sw
    >>> query = sw.Query(sw.sum("x"), sw.Rows(3), name="s", every=sw.Every(2))
    >>> sw.evaluate(query, {"ts": [1, 2, 3, 4], "x": [10, 20, 30, 40]}).to_pydict()
    {'tick': [1, 2], 'ts': [2, 4], 's': [30, 90]}
    """

    rows: int | Duration | None = None
    time: Duration | None = None
    anchor: Anchor = "tick"
    per_key: bool = False
    by: Any = None  # a tuple of names, or None
    own: bool = False

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.time is None):
            raise BadQuery(f"{self!r} says {'nothing' if self.rows is None else 'both rows and time'}.", EXAMPLES)
        if is_duration(self.rows):
            object.__setattr__(self, "time", self.rows)
            object.__setattr__(self, "rows", None)
        if not is_option(self.anchor, ("tick", "tuple")):
            raise BadQuery(f'anchor={self.anchor!r} is neither "tick" nor "tuple".', 'sw.Every("1m", anchor="tuple")')
        if not isinstance(self.per_key, bool):
            raise BadQuery(f"per_key={self.per_key!r} is neither True nor False.", "sw.Every(1000, per_key=True)")
        if self.by is not None:
            object.__setattr__(self, "by", key_columns(self.by, "by", 'sw.Every(10, by=("a", "b"))') or None)
            if self.by is not None and self.per_key:
                raise BadQuery(f"{self!r} counts per key and by columns.", "one of both: per_key=True, or by=…")
        if not isinstance(self.own, bool):
            raise BadQuery(f"own={self.own!r} is neither True nor False.", "sw.Every(1000, own=True)")
        if self.own and (self.per_key or self.by is not None):
            raise BadQuery(f"{self!r} counts all rows, and those of some.", "one of both: own=True, or per_key=True")
        if self.rows is not None:
            object.__setattr__(self, "rows", _whole(self.rows, "rows"))
            object.__setattr__(self, "anchor", "tuple")
        elif not is_duration(self.time):
            object.__setattr__(self, "time", _whole(self.time, "time"))
        elif nanoseconds(self.time) <= 0:
            raise BadQuery(f"Every({self.time!r}) never passes.", EXAMPLES)
        else:
            object.__setattr__(self, "time", canonical(self.time))  # type: ignore[arg-type]
        if self.own and self.anchor != "tuple":
            raise BadQuery(f"{self!r}: the end of a slot is of no key.", 'sw.Every("1m", anchor="tuple", own=True)')

    @cached_property
    def by_time(self) -> bool:
        return self.time is not None

    @lru_cache(maxsize=4096)  # noqa: B019  # a frozen value: with every batch it is asked for, and says the same
    def step(self, unit: str | None) -> int:
        """How many rows, or how much time in the unit of ts, from one tick to the next."""
        return int(self.rows) if self.time is None else in_units(self.time, unit)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        how_often = [shown(self.rows)] if self.rows is not None else []
        if self.time is not None:
            how_often.append(shown(self.time) if isinstance(self.time, str) else f"time={shown(self.time)}")
        anchor = [f"anchor={shown(self.anchor)}"] if self.rows is None and self.anchor != "tick" else []
        partition = [] if self.by is None else [f"by={shown(self.by)}"]
        partition += ["own=True"] * (self.own is True)
        return called(self, how_often + anchor + ["per_key=True"] * (self.per_key is True) + partition)

    def __str__(self) -> str:
        much = f"{self.time}" if self.by_time else f"{self.rows} TUPLES"
        word = "EVERY" if self.anchor == "tick" else "FREQUENCY"
        return f"{word} {much}{partitioned(self.per_key, self.by or ())}"


def partitioned(per_key: bool, columns: "tuple[str, ...]") -> str:
    """As SQL has it. columns: by which, as far as that is known."""
    if not per_key and not columns:
        return ""
    return " PARTITIONED" + (f" BY {', '.join(columns)}" if columns else "")


def _whole(value: Any, name: str) -> int:
    if not is_whole(value):
        raise BadQuery(f"Every: {name} is {value!r}, neither a whole number nor a duration.", EXAMPLES)
    if not 0 < value <= LARGEST:
        raise BadQuery(f"Every({name}={value}) never comes round: {name} > 0, and fits int64.", EXAMPLES)
    return int(value)
