"""Aggregate(sw.sum("volume"), ">=", 25): runs of events that are cut by an aggregate of them, or by several."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa

from frames.specs.as_json import aggregate_from_json, aggregate_to_json, number
from frames.specs.conditions import (
    FURTHER,
    HINT,
    Close,
    bare,
    check_term,
    compared,
    is_condition,
    usual_close,
    without_filters,
)
from frames.specs.lengths import lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import BEFORE, WITH, Spec, check_number, check_op
from swag.arguments import is_option
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.as_call import called, shown
from swag.query.expression import Expression, leaves, mapped, plain
from swag.query.families import result_type
from swag.query.reading import aggregated_texts


@dataclass(frozen=True)
class Aggregate(Spec):
    """Cut by an aggregate: `<`, `<=` close before the event that would break it, `>`, `>=` with the one it needs.

    >>> import frames as fr, swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "volume": [10, 20, 5, 30]}
    >>> fr.detect(fr.Aggregate(sw.sum("volume"), ">=", 25), events)["rows"].to_pylist()
    [2, 2]

    What is compared may be computed of several aggregates, and a condition may be of several comparisons, by & and |.
    Then no `op` and `c` are given, and frames have no `value`. close="before" (SQL: WHILE) keeps a condition up: a
    frame closes before the event that makes it false. close="with" (UNTIL) waits for it: a frame closes with the event
    that makes it true. Where all comparisons go one way this need not be said.

    >>> spread = fr.Aggregate(sw.max("volume") - sw.min("volume"), ">", 12)
    >>> fr.detect(spread, events).select(["start", "end", "value"]).to_pylist()
    [{'start': 1, 'end': 3, 'value': 15}]
    >>> full = fr.Aggregate((sw.sum("volume") < 40) & (sw.count() <= 2))
    >>> fr.detect(full, events)["rows"].to_pylist()
    [2, 2]
    >>> fr.detect(fr.Aggregate(sw.min("volume"), ">", 8, close="before"), events)["rows"].to_pylist()
    [2, 1]
    """

    kind: ClassVar[str] = "aggregate"

    aggregate: Any  # an aggregate, an expression of several, or a condition
    op: Any = None  # one of < <= > >=, where a value is compared with a number c
    c: Any = None
    close: Close | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._set(aggregate=bare(self.aggregate))
        if is_condition(self.aggregate):
            if self.op is not None or self.c is not None:
                raise BadQuery(f"{self.aggregate} is a condition: it is compared already.", HINT)
            parts = compared(self.aggregate) or (self.aggregate,)
            self._set(**dict(zip(("aggregate", "op", "c"), parts, strict=False)))
        check_term(self.aggregate)
        if not is_condition(self.aggregate):
            check_op(self.op, (*BEFORE, *WITH), "Aggregate")
            check_number(self.c, "c", "Aggregate")
        if self.close is not None and not is_option(self.close, ("before", "with")):
            raise BadQuery(f'close={self.close!r} is neither "before" nor "with".', 'close="before"')
        usual = usual_close(self.condition)
        if self.close is None and usual is None:
            raise BadQuery(
                f"{self.condition} has comparisons of both directions, or of neither.",
                'close="with", the event that makes it true (UNTIL), or "before" the one that makes it false (WHILE)',
            )
        if self.close == usual:
            self._set(close=None)
        super().__post_init__()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = [shown(each) for each in (self.aggregate, self.op, self.c) if each is not None]
        given += [f"close={shown(self.close)}"] * (self.close is not None)
        return called(self, given + [f"{name}={shown(value)}" for name, value in lengths_to_json(self).items()])

    @property
    def condition(self) -> Expression:
        """The whole of it."""
        if is_condition(self.aggregate):
            return self.aggregate  # type: ignore[no-any-return]
        assert self.op is not None
        return Expression(self.op, (self.aggregate, number(self.c)))

    @property
    def is_simple(self) -> bool:
        """Is it one of the aggregates that have kernels' operators of their own, compared as usual?

        A quantile is, either way: which side of the constant its values are on is all that is kept of them.
        """
        if not isinstance(self.aggregate, Aggregated) or self.aggregate.kind in FURTHER:
            return False
        return self.close is None or self.aggregate.kind == "quantile"

    @property
    def term(self) -> Any:
        """The aggregate, expression or condition, whose filters have become part of what it reads."""
        return without_filters(self.aggregate)

    @property
    def aggregates(self) -> tuple[Aggregated, ...]:
        """Those that it is of."""
        return tuple(dict.fromkeys(leaf.aggregate for leaf in leaves(self.term)))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in self.aggregates for name in each.columns))

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        return aggregated_texts(self.aggregates)

    @property
    def closes_before(self) -> bool:
        return (self.close or usual_close(self.condition)) == "before"

    @property
    def reported(self) -> tuple[str, ...]:
        return () if is_condition(self.aggregate) else ("value",)

    def reported_types(self) -> dict[str, pa.DataType]:
        """The type of the value, if it is the same for columns of integers and of floats."""
        kinds = (dict.fromkeys(self.columns, kind) for kind in (pa.int64(), pa.float64()))
        a, b = (value_type(self.term, each) for each in kinds)
        return dict.fromkeys(self.reported, a if a == b else pa.null())

    def to_json(self) -> dict[str, Any]:
        own = {"aggregate": aggregate_to_json(self.aggregate), "close": self.close}
        if self.op is not None:
            own |= {"op": self.op, "c": number(self.c)}
        return {**own, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Aggregate | None":
        aggregate, close = aggregate_from_json(entry["aggregate"]), entry.get("close")
        if aggregate is None:
            return None
        return cls(aggregate, entry.get("op"), entry.get("c"), close=close, **lengths_from_json(entry))

    def clause(self) -> str:
        from swag.query.as_sql import term

        return f"{'WHILE' if self.closes_before else 'UNTIL'} {term(self.condition)}{lengths_clause(self)}"

    def with_aggregates(self, change: Callable[[Aggregated], Aggregated]) -> "Aggregate":
        changed = mapped(self.aggregate, lambda leaf: plain(replace(leaf, aggregate=change(leaf.aggregate))))
        return replace(self, aggregate=changed)


def value_type(term: Any, kinds: dict[str, pa.DataType]) -> pa.DataType:
    """Of an aggregate, or of what is computed of several: integers where all of them are, but for quotients."""
    if isinstance(term, Aggregated):
        return result_type(term, kinds)
    if not isinstance(term, Expression):
        return pa.int64() if isinstance(term, int) and -(2**63) <= term < 2**63 else pa.float64()
    types = [value_type(each, kinds) for each in term.operands]
    whole = term.op != "/" and all(pa.types.is_integer(kind) or pa.types.is_boolean(kind) for kind in types)
    return pa.int64() if whole or term.is_condition else pa.float64()
