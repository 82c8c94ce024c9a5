"""Session("30m"): runs of events that follow each other without a longer silence."""

from dataclasses import dataclass
from typing import Any, ClassVar

from frames.specs.lengths import check_duration, lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import Spec
from swag.query.as_call import as_call
from swag.query.as_json import duration_from_json, duration_to_json
from swag.tables.times.durations import Duration, canonical


@dataclass(frozen=True)
class Session(Spec):
    """A new frame begins after a silence of more than `gap`. Partitions the stream.

    >>> import frames as fr
    >>> clicks = {"ts": [1, 2, 4, 9, 10]}
    >>> fr.detect(fr.Session(3), clicks)["rows"].to_pylist()
    [3, 2]
    """

    kind: ClassVar[str] = "session"
    union_closed: ClassVar[bool] = True

    gap: Duration

    __repr__ = as_call

    def __post_init__(self) -> None:
        check_duration(self.gap, "gap")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def cuts(self) -> bool:
        return False  # whether a silence lies at a cut is known by neither of its sides

    def to_json(self) -> dict[str, Any]:
        return {"session": duration_to_json(self.gap), **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Session":
        return cls(duration_from_json(entry["session"]), **lengths_from_json(entry))

    def clause(self) -> str:
        from swag.query.as_sql import duration

        return f"SESSION {duration(canonical(self.gap))}{lengths_clause(self)}"
