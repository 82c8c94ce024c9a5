"""SELECT … FROM stream MATCH_RECOGNIZE ( … ): the matches of a pattern, one row each. A frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa

from frames.detection import detect
from frames.query import NO_STREAMS, FrameQuery, readers_of
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

    `time`: what ORDER BY says, which must be the ts of the events. `by`, `stream`, `name`: as FrameQuery has them.

    A measure that is called `start`, `end`, `rows` or `frame_id` keeps its name, and ours becomes `start_`.
    """

    spec: Pattern
    select: tuple[str, ...] = ()
    time: str | None = None
    by: Any = field(default=None, kw_only=True)
    stream: str | None = field(default=None, compare=False, kw_only=True)
    name: str | None = field(default=None, compare=False, kw_only=True)

    fragments = False  # a match is reported as a whole
    where = having = None
    asked: ClassVar[tuple[Any, ...]] = ()  # what is said of it are its measures
    aggregated: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.by is not None:
            self._check_selected(tuple(self.by))

    def _check_selected(self, by: tuple[str, ...]) -> None:
        known = self.names(by)
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
        return str(self) if self.name is None else self.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.spec.columns

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        return self.spec.texts

    @property
    def readers(self) -> list[Query]:
        return readers_of(self.spec, self.label)

    def named(self) -> "MatchQuery":
        return self if self.name is not None else replace(self, name=self.label)

    def check_by(self, by: tuple[str, ...]) -> None:
        self._check_selected(key_of(by, self.spec))

    def running(self, ts: str, by: tuple[str, ...]) -> ContinuousFrames:
        from frames.continuous.matches import RunningMatches

        self.check_time(ts)
        return RunningMatches(self, ts, by)

    def to_json(self) -> dict[str, Any]:
        return {"frames": self.spec.to_json(), "label": self.label, "select": list(self.select), "time": self.time,
                "group_by": self.by, "stream": self.stream, "name": self.name}  # fmt: skip

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "MatchQuery":
        by, spec = entry["group_by"], Pattern.from_json(entry["frames"])
        return cls(spec, tuple(entry["select"]), entry["time"], by=None if by is None else tuple(by),
                   stream=entry["stream"], name=entry["name"])  # fmt: skip

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
        self.check_streams(streams)
        return self.say(detect(self.spec, events, ts=ts, key=key), None, ts, key)

    def check_streams(self, streams: Mapping[str, Any]) -> None:
        """It reads one stream alone."""
        for name in streams:
            raise BadQuery(f'the statement does not read "{name}".', "only the events that are searched")

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


def query_from_json(entry: dict[str, Any]) -> OverFrames | None:
    """A query over frames, or over matches, that was written down. None: its functions are not."""
    return (MatchQuery if "select" in entry else FrameQuery).from_json(entry)
