"""Delta("fl", 0.05): runs of events over which a value moves less than so much."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Unpack

from frames.specs.as_json import pairs
from frames.specs.lengths import Lengths, lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import BEFORE, WITH, Number, Op, Spec, check_name, check_number, check_op
from swag.arguments import is_option
from swag.errors import BadQuery
from swag.query.as_call import as_call


@dataclass(frozen=True)
class Delta(Spec):
    """A new frame starts at the event that would make the spread reach x (`<`), or exceed it (`<=`).

    measure="first": the spread is |v - v of the frame's first event|; "range": max - min within the frame. With `>` and
    `>=` a frame closes with the event that makes the spread pass x. Several columns: whichever is reached first.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "level": [0.0, 0.3, 0.9, 1.0]}
    >>> fr.detect(fr.Delta("level", 0.5), events)["rows"].to_pylist()
    [2, 2]
    """

    kind: ClassVar[str] = "delta"

    limits: Mapping[str, Number]
    measure: Literal["first", "range"] = "first"
    op: Op = "<"
    columns: tuple[str, ...] = field(default=(), compare=False, repr=False)

    __repr__ = as_call

    def __init__(
        self, column: str | Mapping[str, Number], x: Number | None = None, *, measure: Any = "first", op: Any = "<",
        **lengths: Unpack[Lengths],
    ) -> None:  # fmt: skip
        hint = 'fr.Delta("fl", 0.05) or fr.Delta({"rho": 0.1, "dye": 0.2})'
        if isinstance(column, Mapping) != (x is None) or (isinstance(column, Mapping) and not column):
            raise BadQuery("Delta takes a column and x, or a mapping of columns to their x.", hint)
        if not isinstance(column, Mapping):
            check_name(column, "Delta", hint)
        limits: dict[str, Any] = dict(column) if isinstance(column, Mapping) else {column: x}
        if not is_option(measure, ("first", "range")):
            raise BadQuery(
                f'measure={measure!r} is neither "first" nor "range".', 'fr.Delta("fl", 0.05, measure="range")'
            )
        check_op(op, (*BEFORE, *WITH), "Delta")
        for name, limit in limits.items():
            check_name(name, "Delta", hint)
            check_number(limit, "x", "Delta")
            if limit < 0 or (limit == 0 and op in ("<", ">=")):
                raise BadQuery(
                    f'Delta("{name}", {limit!r}, op="{op}"): no spread is below 0, and each one reaches it.', hint
                )
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "measure", measure)
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "columns", tuple(limits))
        super().__init__(**lengths)

    def __hash__(self) -> int:
        return hash((tuple(self.limits.items()), self.measure, self.op, super().__hash__()))

    @property
    def closes_before(self) -> bool:
        return self.op in BEFORE

    def to_json(self) -> dict[str, Any]:
        return {"delta": pairs(self.limits), "measure": self.measure, "op": self.op, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Delta":
        return cls(dict(entry["delta"]), measure=entry["measure"], op=entry["op"], **lengths_from_json(entry))

    def clause(self) -> str:
        from swag.query.as_sql import name
        from swag.tables.constants import to_sql

        op = "" if self.op == "<" else f"{self.op} "
        limits = ", ".join(f"{name(column)} {op}{to_sql(x)}" for column, x in self.limits.items())
        return f"DELTA {limits}" + ("" if self.measure == "first" else " MEASURE RANGE") + lengths_clause(self)
