"""SELECT … FROM stream MATCH_RECOGNIZE ( … ): the matches of a pattern, one row each. A frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from frames.detection import detect
from frames.query import NO_STREAMS
from frames.specs import Pattern
from frames.specs.lengths import lengths_to_json
from frames.tables import Key, key_of
from swag.errors import BadQuery
from swag.query.as_call import shown
from swag.query.over_frames import ContinuousFrames, OverFrames
from swag.query.query import Query

FRONT = ("frame_id", "start", "end", "rows")  # of every table of frames
MINE = " "  # a measure that is called as one of those is kept with this before its name


@dataclass(frozen=True)
class MatchQuery(OverFrames):
    """`spec`: the pattern, with its measures. `select`: the columns that are asked for, by name; () for all of them.

    `time`: what ORDER BY says, which must be the ts of the events. `by`, `stream`: as FrameQuery has them.

    A measure that is called `start`, `end`, `rows` or `frame_id` keeps its name, and ours becomes `start_`.
    """

    spec: Pattern
    select: tuple[str, ...] = ()
    time: str | None = None
    by: Any = field(default=None, kw_only=True)
    stream: str | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        known = self.names(tuple(self.by or ()))
        for name in self.select:
            if name not in known.values():
                raise BadQuery(
                    f'MATCH_RECOGNIZE gives no column "{name}", but: {", ".join(known.values())}.',
                    f"MEASURES LAST({self.spec.compiled().symbols[-1]}.{name}) AS {name}",
                )

    def __repr__(self) -> str:
        return f"sw.sql({shown(str(self))})[0]"

    @property
    def label(self) -> str:
        return str(self)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.spec.columns

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        return self.spec.texts

    @property
    def readers(self) -> list[Query]:
        raise self._not_followed()

    def named(self) -> "MatchQuery":
        raise self._not_followed()

    def check_by(self, by: tuple[str, ...]) -> None:
        raise self._not_followed()

    def running(self, ts: str, by: tuple[str, ...]) -> ContinuousFrames:
        raise self._not_followed()

    def to_json(self) -> dict[str, Any]:
        raise self._not_followed()

    def _not_followed(self) -> BadQuery:
        """What engines are told: they do not search for matches as events come."""
        return BadQuery(
            "matches of a pattern are not found in an engine.",
            "fr.Detector(fr.Pattern(…)) as events come; sw.evaluate over stored events",
        )

    def names(self, by: tuple[str, ...]) -> dict[str, str]:
        """The columns of a table of matches, and what they are called here."""
        measures = {name: name.removeprefix(MINE) for name in self.spec.reported}
        taken = set(measures.values())
        front = {name: f"{name}_" if name in taken else name for name in FRONT}
        return {"frame_id": front["frame_id"], **{name: name for name in by}, **front, **measures}

    def evaluate(
        self, events: Any, ts: str = "ts", key: Key = None, streams: Mapping[str, Any] = NO_STREAMS
    ) -> pa.Table:
        """One row per match: frame_id, [key], start, end, rows, one column per measure; or those that are selected."""
        self.check_time(ts)
        for name in streams:
            raise BadQuery(f'the statement does not read "{name}".', "only the events that are searched")
        return self.say(detect(self.spec, events, ts=ts, key=key), None, ts, key)

    def check_time(self, ts: str) -> None:
        if self.time is not None and self.time != ts:
            raise BadQuery(
                f'MATCH_RECOGNIZE is in order of "{self.time}", but the time of the events is "{ts}".',
                f'ts="{self.time}"',
            )

    def say(self, found: pa.Table, table: Any, ts: str, key: Key, owner: Any = None) -> pa.Table:
        """Matches that were found, as the statement selects them."""
        self.check_time(ts)
        names = self.names(key_of(key))
        called = {new: old for old, new in names.items()}
        wanted = self.select or tuple(called)
        found = found.select([called[name] for name in wanted]).rename_columns(list(wanted))
        return found if not self.select else found.replace_schema_metadata(None)

    def __str__(self) -> str:
        """SQL that reads back as this query."""
        from swag.query.as_sql import name

        if lengths_to_json(self.spec):
            raise BadQuery("MATCH_RECOGNIZE has no least or greatest length.", "fr.detect, fr.Detector")
        by = f"PARTITION BY {', '.join(map(name, self.by))} " if self.by else ""
        order = "" if self.time is None else f"ORDER BY {name(self.time)} "
        called = {f"AS {name(old)}": f"AS {name(new)}" for old, new in self.names(()).items() if old.startswith(MINE)}
        clause = self.spec.recognized()
        for old, new in called.items():
            clause = clause.replace(old, new, 1)
        what = ", ".join(map(name, self.select)) or "*"
        return f"SELECT {what} FROM {name(self.stream or 'events')} MATCH_RECOGNIZE ({by}{order}{clause})"
