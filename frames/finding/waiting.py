"""Events wait until a punctuation promises that nothing older comes; then they leave in order of ts.

came      5 3 9 | 4 8          arrival order, in parts as they were pushed
upto 6    3 4 5                leave, sorted; equal ts as they arrived
wait      9 8                  stay, in arrival order
"""

import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swag.arguments import is_whole
from swag.durable.state import State, table_from_array, table_to_array
from swag.errors import BadType, OutOfOrder
from swag.tables.columns import Clock, taken

START_OF_TIME, END_OF_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class TimedRows(NamedTuple):
    """Events: their times, the ids of their keys (none where there is but one key), the columns that are read."""

    instants: np.ndarray
    ids: np.ndarray
    table: pa.Table

    def some(self, rows: np.ndarray) -> "TimedRows":
        """A copy of the rows at these positions."""
        ids = self.ids[rows] if self.ids.size else self.ids
        return TimedRows(self.instants[rows], ids, taken(self.table, rows))

    def after(self, upto: int) -> "TimedRows":
        """Those that are later."""
        return self.some(np.flatnonzero(self.instants > upto))


def together(parts: list[TimedRows]) -> TimedRows:
    """The rows of several parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    instants, ids, tables = zip(*parts, strict=True)
    return TimedRows(np.concatenate(instants), np.concatenate(ids), pa.concat_tables(tables))


class WaitingEvents:
    """Owns the events that wait, in arrival order, in the parts that they came in.

    They are added, leave as a punctuation allows, and come back by `back_to` if what they left for has failed.
    """

    def __init__(self) -> None:
        self._parts: list[TimedRows] = []

    @property
    def size(self) -> int:
        """How many events wait."""
        return sum(part.instants.size for part in self._parts)

    @property
    def first(self) -> int | None:
        """The earliest ts that waits."""
        return min((int(part.instants.min()) for part in self._parts), default=None)

    @property
    def parts(self) -> tuple[TimedRows, ...]:
        """All that wait; also for `back_to`."""
        return tuple(self._parts)

    def add(self, rows: TimedRows) -> None:
        if rows.instants.size:
            self._parts.append(rows)

    def leave(self, upto: int | None) -> TimedRows | None:
        """The events with ts <= upto, in order of ts; None if there are none. upto=None: nothing is promised."""
        if upto is None or not self._parts:
            return None
        rows = together(self._parts)
        instants = rows.instants
        if bool((instants[1:] >= instants[:-1]).all()):
            now = int(np.searchsorted(instants, upto, side="right"))
            self._parts = []
            if now == instants.size:
                return rows
            self.add(rows.some(np.arange(now, instants.size)))  # a slice would keep all of them in memory
            return TimedRows(instants[:now], rows.ids[:now], rows.table.slice(0, now)) if now else None
        order = np.argsort(instants, kind="stable")
        now = int(np.searchsorted(instants[order], upto, side="right"))
        self._parts = []
        self.add(rows.some(np.sort(order[now:])))
        return rows.some(order[:now]) if now else None

    def back_to(self, parts: tuple[TimedRows, ...]) -> None:
        """These wait, and no others: as it was before events left."""
        self._parts = list(parts)

    def due(self, upto: int) -> np.ndarray | None:
        """The keys of the events that would leave, by id; None if none would."""
        masks = [part.instants <= upto for part in self._parts]
        if not any(mask.any() for mask in masks):
            return None
        return np.unique(
            np.concatenate([p.ids[mask] if p.ids.size else p.ids for p, mask in zip(self._parts, masks, strict=True)])
        )

    def renumber(self, ids: np.ndarray) -> None:
        """Keys have other ids now: ids[k] is what k has become."""
        self._parts = [TimedRows(part.instants, ids[part.ids], part.table) for part in self._parts]

    def state(self) -> State:
        if not self._parts:
            return {}, {}
        rows = together(self._parts)
        return {}, {"instants": rows.instants, "ids": rows.ids, "table": table_to_array(rows.table)}

    def restore(self, state: State) -> None:
        _, arrays = state
        self._parts = []
        if arrays:
            self.add(TimedRows(arrays["instants"], arrays["ids"], table_from_array(arrays["table"])))


class Punctuations:
    """The latest punctuation of a stream. Owns them as they were given, until it is known what the type of ts is."""

    def __init__(self) -> None:
        self._said: list[Any] = []

    def add(self, t: Any, clock: Clock | None) -> None:
        """Nothing up to t comes any more."""
        if clock is not None:
            self._said = [max(clock.instant(each, "t") for each in (*self._said, t))]
            return
        if not (is_whole(t) or isinstance(t, str | datetime.date | np.datetime64 | pa.Scalar)):
            raise BadType(f"t={t!r} is no point in time.", "a datetime, or an integer in the unit of ts")
        self._said.append(t)

    def instant(self, clock: Clock | None) -> int | None:
        """In the unit of ts; None: there was none, or the unit is not known."""
        return None if clock is None or not self._said else max(clock.instant(each, "t") for each in self._said)

    def state(self) -> State:
        header: list[Any] = []
        arrays: dict[str, np.ndarray] = {}
        for t in self._said:
            if is_whole(t) or isinstance(t, str):
                header.append(t if isinstance(t, str) else int(t))
            elif isinstance(t, np.datetime64):
                header.append({"numpy": [int(t.astype(np.int64)), *np.datetime_data(t.dtype)]})
            else:
                header.append({"arrow": f"said{len(arrays)}"})
                scalar = t if isinstance(t, pa.Scalar) else pa.scalar(t)
                arrays[f"said{len(arrays)}"] = table_to_array(pa.table({"t": pa.array([scalar], scalar.type)}))
        return {"said": header}, arrays

    def restore(self, state: State) -> None:
        header, arrays = state
        self._said = []
        for t in header["said"]:
            if not isinstance(t, dict):
                self._said.append(t)
            elif "numpy" in t:
                number, unit, count = t["numpy"]
                self._said.append(np.datetime64(number, (unit, count)))
            else:
                self._said.append(table_from_array(arrays[t["arrow"]]).column("t")[0])


def check_promise(clock: Clock, instants: np.ndarray, upto: int | None, what: str, hint: str) -> None:
    """Refuse what was promised not to come."""
    if upto is not None and instants.size and int(instants.min()) <= upto:
        row = int(np.argmax(instants <= upto))
        raise OutOfOrder(
            f"{what} {row} is at {clock.show(int(instants[row]))}, "
            f"but a punctuation promised none up to {clock.show(upto)}.",
            hint,
        )


def after(instants: np.ndarray, upto: int | None) -> np.ndarray:
    """Which are later? All, if nothing was promised."""
    return np.ones(instants.size, bool) if upto is None or upto < START_OF_TIME else instants > min(upto, END_OF_TIME)
