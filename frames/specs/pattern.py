"""Pattern("A B+ C", define={…}): runs of events that match a pattern of conditions, as SQL's MATCH_RECOGNIZE has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from frames.patterns.compiled import Compiled, compiled_pattern, normal
from frames.patterns.conditions import parsed
from frames.patterns.reading import EXAMPLE
from frames.specs.lengths import NAMES, Lengths, lengths_from_json, lengths_to_json
from frames.specs.spec import Spec
from swag.errors import BadQuery
from swag.query.as_call import called, shown
from swag.tables.conjuncts import written

OURS = ("frame_id", "start", "end", "rows", "final")  # columns of every table of frames


@dataclass(frozen=True, eq=True)
class Pattern(Spec):
    """Runs of events that match a pattern: the first match, then the next behind it, as long as each can be.

    pattern: symbols, one for each row, one after the other; `|`, parentheses, `?`, `*`, `+`, `{n,m}`. define: what
    holds for the row of a symbol, as SQL over its columns, those of rows before it (PREV(price), PREV(price, 2)) and
    aggregates of the match so far (AVG(A.price), COUNT(*), FIRST(A.ts)); a symbol that is not defined holds for every
    row. measures: what to say of a match: FIRST, LAST and aggregates of its rows, or of those of one symbol.

    >>> import frames as fr
    >>> ticks = {"ts": [1, 2, 3, 4, 5], "price": [10, 8, 7, 9, 9]}
    >>> dip = fr.Pattern("A B+ C", {"B": "price < PREV(price)", "C": "price > PREV(price)"}, {"low": "LAST(B.price)"})
    >>> fr.detect(dip, ticks).to_pylist()
    [{'frame_id': 0, 'start': 1, 'end': 4, 'rows': 4, 'low': 7}]

    An empty match (of `A*`, say) is no frame. A match shorter than min_rows or min_duration, or longer than max_rows or
    max_duration, is none either; the search goes on behind it.
    """

    kind: ClassVar[str] = "pattern"
    scans_ends: ClassVar[bool] = False

    pattern: str
    define: Mapping[str, str]
    measures: Mapping[str, str]

    def __init__(
        self, pattern: str, define: Mapping[str, str] | None = None, measures: Mapping[str, str] | None = None,
        **lengths: Unpack[Lengths],
    ) -> None:  # fmt: skip
        if not isinstance(pattern, str):
            raise BadQuery(f"{pattern!r} is not the text of a pattern.", EXAMPLE)
        for what, given in (("define", define), ("measures", measures)):
            if given is not None and not isinstance(given, Mapping):
                raise BadQuery(f"{what}={given!r} is no mapping of names to SQL.", EXAMPLE)
        text, conditions = normal(pattern, define or {})
        object.__setattr__(self, "pattern", text)
        object.__setattr__(self, "define", {name: _normal(sql, f"DEFINE {name}") for name, sql in conditions.items()})
        object.__setattr__(self, "measures", _checked_measures(measures or {}))
        super().__init__(**lengths)
        self.compiled()

    def __hash__(self) -> int:
        return hash((self.pattern, tuple(self.define.items()), tuple(self.measures.items()), super().__hash__()))

    def __repr__(self) -> str:
        given = [shown(self.pattern)]
        given += [f"{name}={shown(dict(of))}" for name in ("define", "measures") if (of := getattr(self, name))]
        lengths = lengths_to_json(self)
        return called(self, given + [f"{name}={shown(getattr(self, name))}" for name in NAMES if name in lengths])

    def compiled(self) -> Compiled:
        """The pattern at work; made once."""
        return compiled_pattern(self.pattern, tuple(self.define.items()), tuple(self.measures.items()))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.compiled().columns

    @property
    def in_runs(self) -> bool:
        return False

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        return {}

    @property
    def reported(self) -> tuple[str, ...]:
        return tuple(self.measures)

    def to_json(self) -> dict[str, Any]:
        said = {"define": list(self.define.items()), "measures": list(self.measures.items())}
        return {"pattern": self.pattern, **said, **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Pattern":
        return cls(entry["pattern"], dict(entry["define"]), dict(entry["measures"]), **lengths_from_json(entry))

    def recognized(self) -> str:
        """What stands in the parentheses of MATCH_RECOGNIZE, from MEASURES on; it has no FRAME clause."""
        from swag.query.as_sql import name

        said = ", ".join(f"{text} AS {name(called)}" for called, text in self.measures.items())
        held = ", ".join(f"{symbol} AS {text}" for symbol, text in self.define.items())
        return f"{f'MEASURES {said} ' * bool(said)}PATTERN ({self.pattern}){f' DEFINE {held}' * bool(held)}"


def _normal(text: Any, what: str) -> str:
    return written(parsed(text, f"{what} AS {text}"))


def _checked_measures(measures: Mapping[str, str]) -> dict[str, str]:
    for name in measures:
        if not isinstance(name, str) or not name:
            raise BadQuery(f"a measure is called {name!r}, which is no name.", 'measures={"low": "LAST(B.price)"}')
        if name in OURS:
            raise BadQuery(f'a measure is called "{name}", as a column of every table of frames is.', f'"{name}_ts"')
    return {name: _normal(text, f"MEASURES {name}") for name, text in measures.items()}
