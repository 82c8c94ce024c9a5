"""Threshold("drop_pct", ">", 0.3, min_duration="2m"): maximal runs of events for which a comparison holds."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from frames.specs.as_json import number
from frames.specs.lengths import lengths_from_json, lengths_to_json
from frames.specs.spec import BEFORE, WITH, Number, Op, Spec, check_name, check_number, check_op
from swag.errors import BadQuery
from swag.query.as_call import as_call
from swag.tables.times.durations import canonical


@dataclass(frozen=True)
class Threshold(Spec):
    """Maximal runs of events whose `column` satisfies `op c`, of at least min_rows events and min_duration.

    partition=True also reports what lies between them, as frames of kind "gap". Null and NaN satisfy nothing.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4, 5], "load": [0.1, 0.5, 0.6, 0.2, 0.9]}
    >>> fr.detect(fr.Threshold("load", ">", 0.3, min_rows=2), events).to_pylist()
    [{'frame_id': 0, 'start': 2, 'end': 3, 'rows': 2}]
    """

    kind: ClassVar[str] = "threshold"
    union_closed: ClassVar[bool] = True

    column: str
    op: Op
    c: Number
    partition: bool = False

    __repr__ = as_call

    def __post_init__(self) -> None:
        check_name(self.column, "Threshold", 'fr.Threshold("drop_pct", ">", 0.3)')
        check_op(self.op, (*BEFORE, *WITH, "=="), "Threshold")
        check_number(self.c, "c", "Threshold")
        if not isinstance(self.partition, bool):
            raise BadQuery(f"partition={self.partition!r} is neither True nor False.", "partition=True")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def reported(self) -> tuple[str, ...]:
        return ("kind",) if self.partition else ()

    def reported_types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.reported, pa.string())

    def to_json(self) -> dict[str, Any]:
        own = {"threshold": self.column, "op": self.op, "c": number(self.c), "partition": self.partition}
        return {**own, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Threshold":
        return cls(entry["threshold"], entry["op"], entry["c"], entry["partition"], **lengths_from_json(entry))

    def clause(self) -> str:
        """The FRAME clause of threshold frames: WHERE a comparison, FOR a least length, PARTITION."""
        from swag.query.as_sql import column, duration
        from swag.tables.constants import to_sql

        least = [f"{self.min_rows} TUPLES"] if self.min_rows != 1 else []
        least += [duration(canonical(self.min_duration))] if canonical(self.min_duration) else []
        same = "=" if self.op == "==" else self.op
        text = f"WHERE {column(self.column)} {same} {to_sql(self.c)}" + (f" FOR {' AND '.join(least)}" if least else "")
        return text + (" PARTITION" if self.partition else "")

    def levels(self, column: str, low: float, high: float) -> tuple[str, list[float]]:
        reach = (high - low) or abs(self.c - low)  # further off it would squeeze the signal to a line
        near = column == self.column and low - reach <= self.c <= high + reach
        return f"{column} {self.op} {self.c}", [float(self.c)] * near

    def segments(self) -> "Threshold":
        return replace(self, min_rows=1, min_duration=0, partition=True)
