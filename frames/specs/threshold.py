"""Threshold("drop_pct", ">", 0.3, min_duration="2m"): maximal runs of events for which a predicate holds."""

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from frames.specs.as_json import number
from frames.specs.lengths import lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import (
    BEFORE,
    WITH,
    Number,
    Op,
    Spec,
    check_name,
    check_number,
    check_op,
    check_predicate,
    compared_levels,
    near_levels,
)
from swag.errors import BadQuery
from swag.query.as_call import BY_POSITION, as_call

BINDS_LESS = re.compile(r"[<>=]| (OR|AND|IN|IS|LIKE|BETWEEN) |^NOT ")  # than a comparison behind it


@dataclass(frozen=True)
class Threshold(Spec):
    """Maximal runs of events whose `column` satisfies `op c`; or, without these, for which a predicate in SQL holds.

    partition=True also reports what lies between them, as frames of kind "gap": of any length, as minimums and maximums
    are those of frames. Null and NaN satisfy nothing.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4, 5], "load": [0.1, 0.5, 0.6, 0.2, 0.9], "level": ["ok", "hot", "hot", "ok", "ok"]}
    >>> fr.detect(fr.Threshold("load", ">", 0.3, min_rows=2), events).to_pylist()
    [{'frame_id': 0, 'start': 2, 'end': 3, 'rows': 2}]
    >>> fr.detect(fr.Threshold("load > 0.3 AND level IN ('warm', 'hot')"), events)["rows"].to_pylist()
    [2]
    """

    kind: ClassVar[str] = "threshold"
    union_closed: ClassVar[bool] = True

    column: str
    op: Op | None = field(default=None, metadata=BY_POSITION)
    c: Number | None = field(default=None, metadata=BY_POSITION)
    partition: bool = False

    __repr__ = as_call

    def __post_init__(self) -> None:
        hint = 'fr.Threshold("drop_pct", ">", 0.3), or fr.Threshold("drop_pct > 0.3 AND load > 2")'
        if self.is_predicate:
            check_predicate(self.column, "Threshold", hint)
        else:
            check_name(self.column, "Threshold", hint)
            check_op(self.op, (*BEFORE, *WITH, "=="), "Threshold")
            check_number(self.c, "c", "Threshold")
        if not isinstance(self.partition, bool):
            raise BadQuery(f"partition={self.partition!r} is neither True nor False.", "partition=True")
        super().__post_init__()

    @property
    def is_predicate(self) -> bool:
        """Is `column` itself true or false?"""
        return self.op is None and self.c is None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def reported(self) -> tuple[str, ...]:
        return ("kind",) if self.partition else ()

    def reported_types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.reported, pa.string())

    def to_json(self) -> dict[str, Any]:
        c = None if self.c is None else number(self.c)
        own = {"threshold": self.column, "op": self.op, "c": c, "partition": self.partition}
        return {**own, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Threshold":
        return cls(entry["threshold"], entry["op"], entry["c"], entry["partition"], **lengths_from_json(entry))

    def clause(self) -> str:
        """The FRAME clause of threshold frames: WHERE a predicate, FOR how long, PARTITION."""
        from swag.query.as_sql import predicate
        from swag.tables.constants import to_sql

        same = "=" if self.op == "==" else self.op
        text = predicate(self.column)
        if not self.is_predicate:
            text = f"({text})" if BINDS_LESS.search(text) and not text.startswith("CASE ") else text
            text = f"{text} {same} {to_sql(self.c)}"
        return f"WHERE {text}{lengths_clause(self)}" + (" PARTITION" if self.partition else "")

    def levels(self, column: str, low: float, high: float) -> tuple[str, list[float]]:
        if self.c is None:
            return compared_levels([self.column], column, low, high)
        if column != self.column:
            return "", []
        return f"{column} {self.op} {self.c}", near_levels([self.c], low, high)

    def segments(self) -> "Threshold":
        whole = self.with_lengths(min_rows=1, min_duration=0)
        object.__setattr__(whole, "partition", True)
        return whole
