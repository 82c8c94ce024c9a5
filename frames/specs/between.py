"""Between(start="x > 5", end="x < 2"): from an event for which one predicate holds to one for which another does."""

from dataclasses import dataclass
from typing import Any, ClassVar

from frames.specs.lengths import lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import Spec, check_predicate, compared_levels
from swag.errors import BadQuery
from swag.query.as_call import as_call


@dataclass(frozen=True)
class Between(Spec):
    """Opens with an event for which `start` holds, closes with the first later one for which `end` does: both inside.

    same=True: it may close with the event that has opened it. Events outside are in no frame; one that is open when the
    input ends is reported. Null is not true.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4, 5], "x": [1, 6, 3, 1, 0]}
    >>> fr.detect(fr.Between(start="x > 5", end="x < 2"), events).to_pylist()
    [{'frame_id': 0, 'start': 2, 'end': 4, 'rows': 3}]
    """

    kind: ClassVar[str] = "between"

    start: str
    end: str
    same: bool = False

    __repr__ = as_call

    def __post_init__(self) -> None:
        hint = 'fr.Between(start="x > 5", end="x < 2")'
        check_predicate(self.start, "Between", hint)
        check_predicate(self.end, "Between", hint)
        if not isinstance(self.same, bool):
            raise BadQuery(f"same={self.same!r} is neither True nor False.", "same=True")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.start, self.end)

    def levels(self, column: str, low: float, high: float) -> tuple[str, list[float]]:
        return compared_levels([self.start, self.end], column, low, high)

    def to_json(self) -> dict[str, Any]:
        return {"between": [self.start, self.end], "same": self.same, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Between":
        start, end = entry["between"]
        return cls(start, end, entry["same"], **lengths_from_json(entry))

    def clause(self) -> str:
        from swag.query.as_sql import predicate

        same = " SAME" if self.same else ""
        return f"FROM {predicate(self.start)} TO {predicate(self.end)}{same}{lengths_clause(self)}"
