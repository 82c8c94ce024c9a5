"""State("status"): maximal runs of events with one value in a column of any type."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from frames.specs.lengths import lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import Spec, check_name
from swag.errors import BadQuery
from swag.query.as_call import as_call

TAKEN = ("frame_id", "start", "end", "rows", "final")  # columns of every table of frames


@dataclass(frozen=True)
class State(Spec):
    """Maximal runs of events that have the same value, which is reported in a column of that name.

    Null is a value, one NaN is another, -0.0 is 0.0. Partitions the stream.

    >>> import frames as fr
    >>> door = {"ts": [1, 2, 3, 4], "status": ["open", "open", None, "shut"]}
    >>> fr.detect(fr.State("status"), door).select(["rows", "status"]).to_pylist()
    [{'rows': 2, 'status': 'open'}, {'rows': 1, 'status': None}, {'rows': 1, 'status': 'shut'}]
    """

    kind: ClassVar[str] = "state"
    union_closed: ClassVar[bool] = True

    column: str

    __repr__ = as_call

    def __post_init__(self) -> None:
        check_name(self.column, "State", 'fr.State("status")')
        if self.column in TAKEN:
            raise BadQuery(f'the column is named "{self.column}", as one of every table of frames is.', "rename it")
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def reported(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def cuts(self) -> bool:
        return super().cuts and self.column != "kind"  # which tells frames from gaps, where pieces are joined

    def reported_types(self) -> dict[str, pa.DataType]:
        return {self.column: pa.null()}

    def to_json(self) -> dict[str, Any]:
        return {"state": self.column, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "State":
        return cls(entry["state"], **lengths_from_json(entry))

    def clause(self) -> str:
        from swag.query.as_sql import name

        return f"STATE {name(self.column)}{lengths_clause(self)}"
