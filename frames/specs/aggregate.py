"""Aggregate(sw.sum("volume"), ">=", 25): runs of events that are cut by an aggregate of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from frames.specs.as_json import aggregate_from_json, aggregate_to_json, number
from frames.specs.lengths import lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import BEFORE, WITH, Number, Op, Spec, check_number, check_op
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.as_call import as_call
from swag.query.families import result_type
from swag.query.reading import aggregated_texts

GROWING = (  # frames grow by these: frames/scans/aggregate.py knows how
    "count", "sum", "mean", "min", "max", "first", "last", "var", "std", "wmean", "cov", "corr", "quantile",
    "aggregate",
)  # fmt: skip


@dataclass(frozen=True)
class Aggregate(Spec):
    """Cut by an aggregate: `<`, `<=` close before the event that would break it, `>`, `>=` with the one it needs.

    >>> import frames as fr, swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "volume": [10, 20, 5, 30]}
    >>> fr.detect(fr.Aggregate(sw.sum("volume"), ">=", 25), events)["rows"].to_pylist()
    [2, 2]
    """

    kind: ClassVar[str] = "aggregate"

    aggregate: Aggregated
    op: Op
    c: Number

    __repr__ = as_call

    def __post_init__(self) -> None:
        if not isinstance(self.aggregate, Aggregated):
            raise BadQuery(
                f"Aggregate takes an aggregate of swag, not {self.aggregate!r}.",
                'fr.Aggregate(sw.sum("volume"), ">=", 25)',
            )
        if self.aggregate.kind not in GROWING:
            raise BadQuery(f"frames do not grow by {self.aggregate.kind}.", f"one of {', '.join(GROWING)}")
        check_op(self.op, (*BEFORE, *WITH), "Aggregate")
        check_number(self.c, "c", "Aggregate")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.aggregate.columns

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        return aggregated_texts([self.aggregate])

    @property
    def closes_before(self) -> bool:
        return self.op in BEFORE

    @property
    def reported(self) -> tuple[str, ...]:
        return ("value",)

    def reported_types(self) -> dict[str, pa.DataType]:
        """The type of the aggregate, if it is the same for columns of integers and of floats."""
        columns, types = self.aggregate.columns, (pa.int64(), pa.float64())
        a, b = (result_type(self.aggregate, dict.fromkeys(columns, kind)) for kind in types)
        return {"value": a if a == b else pa.null()}

    def to_json(self) -> dict[str, Any]:
        own = {"aggregate": aggregate_to_json(self.aggregate), "op": self.op, "c": number(self.c)}
        return {**own, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Aggregate | None":
        aggregate = aggregate_from_json(entry["aggregate"])
        return None if aggregate is None else cls(aggregate, entry["op"], entry["c"], **lengths_from_json(entry))

    def clause(self) -> str:
        from swag.query.as_sql import call
        from swag.tables.constants import to_sql

        compared = f"{call(self.aggregate)} {self.op} {to_sql(self.c)}"
        return f"{'WHILE' if self.closes_before else 'UNTIL'} {compared}{lengths_clause(self)}"

    def with_aggregates(self, change: Callable[[Aggregated], Aggregated]) -> "Aggregate":
        return replace(self, aggregate=change(self.aggregate))
