"""A query over frames at work in an engine: events come in order within each key, and frames leave as rows.

    batch --> DetectorCore (frames/finding/core.py): scan --> frames that have ended --> a row each, with its values
                   \\-> FrameSummary (frames/continuous/summaries.py): partials of runs, by key

Kept are a few numbers for every key, and a partial for each that a run is open of; of frames that are open nothing
that grows with them, but for aggregates that take their events (`explain` says which).
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from frames.continuous.batches import ONE_KEY
from frames.continuous.event_summary import EventSummary
from frames.continuous.refused_rows import InHalves
from frames.continuous.summaries import FrameSummary
from frames.finding.core import DetectorCore
from frames.finding.follower import Closed
from frames.finding.intake import NO_KEY, NO_TIME
from frames.finding.key_memory import forget, keep_keys
from frames.state import nested
from frames.tables import before_events, frames_table
from kernels.frames.framing import BEGIN, COUNT, KEY
from swag.durable.state import State
from swag.durable.state import part as part_of
from swag.errors import SwagError
from swag.live.arena import Batch
from swag.query.aggregates import Aggregate
from swag.query.families import check_columns
from swag.query.over_frames import ContinuousFrames
from swag.query.user_calls import check_lift
from swag.tables.columns import Clock, decoded_type, field
from swag.tables.expressions.derived import column_name
from swag.tables.key_columns import key_name
from swag.tables.keys import KeyTable
from swag.tables.predicate import holds
from swag.tables.waiting import NO_IDS, TimedRows, Waiting

if TYPE_CHECKING:
    from frames.query import FrameQuery

OURS = ("frame_id", "start", "end", "rows")


class RunningFrames(ContinuousFrames):
    """Owns a detector's core and what is said of its frames; the frames that were told to be open (`told`: number, key
    and start of each), and when those of them that are not any more have ended (`ended`).

    Events whose columns have no type yet, as all are null, wait until one has: `core.waiting`.
    """

    query: "FrameQuery"
    told: np.ndarray
    ended: np.ndarray

    def __init__(self, query: Any, ts: str, by: tuple[str, ...]) -> None:
        self.query, self.ts, self.by, self.key = query, ts, by, key_name(by)
        self._asked, self._aggregated = query.asked, query.aggregated
        self._sql = {name: own for name in query.spec.columns if (own := column_name(name)) != name}
        self._begin()

    # -- events -------------------------------------------------------------------------------------------------------

    @property
    def other(self) -> str | None:
        return self.query.other

    def check(self, table: pa.Table, clock: Clock) -> None:
        self._check_spec(table, clock)
        types = self._types(table)
        for aggregate, where in self._asked:
            check_columns(aggregate, types)
            if where is not None:
                holds(where, table)
            if aggregate.user is not None:
                _check_functions(aggregate, table)

    def _with_sql(self, table: pa.Table) -> pa.Table:
        """Events as the spec names their columns: what is SQL over these, the engine has under another name."""
        for name, own in self._sql.items():
            table = table if name in table.column_names else table.append_column(name, table.column(own))
        return table

    def _check_spec(self, table: pa.Table, clock: Clock) -> None:
        wanted = self._with_sql(table).select(self.core.columns)
        if not (self.core.scan is None and _is_untyped(wanted)):
            self.core.check(wanted, clock)

    def take(
        self, rows: TimedRows, keys: KeyTable | None, clock: Clock, by_key: Batch | None = None
    ) -> tuple[pa.Table | None, SwagError | None]:
        started = self._started(rows, clock)
        if started is None:
            return None, None
        self.core.keys = keys
        self.summary.by_key = by_key if started.ts is rows.ts else None
        try:
            return self._taken(started, clock)
        except SwagError:
            return self._taken_in_halves(started, clock)

    def _taken(self, rows: TimedRows, clock: Clock) -> tuple[pa.Table | None, SwagError | None]:
        """Or it raises, and nothing has changed."""
        frames = self.core.advance(None, rows=rows)
        self._note_ended()
        lost, self.core.lost = self.core.lost, None
        if self.core.ends is None or self.core.follower is None:
            said, wrong = self._said(frames, clock) if frames.num_rows else (None, None)
            return said, lost or wrong
        said, wrong = self._said(frames, clock)
        found = self.core.settled(self.nothing() if said is None else said, rows)
        return (found if found.num_rows else None), lost or wrong

    def _taken_in_halves(self, rows: TimedRows, clock: Clock) -> tuple[pa.Table | None, SwagError | None]:
        """All that can be taken; what can not is told."""
        wrong: list[SwagError] = []

        def refuse(some: TimedRows, why: SwagError) -> None:
            wrong.append(type(why)(f"{why.message} {self._forgotten(some, clock)}", why.hint))

        self.summary.by_key = None
        found = InHalves(lambda some: self._taken(some, clock), refuse).taken(rows)
        tables = [table for table, _ in found if table is not None]
        wrong += [why for _, why in found if why is not None]
        if len(wrong) > 1:
            wrong[0] = type(wrong[0])(f"{wrong[0].message} With it {len(wrong) - 1:,} more were lost.", wrong[0].hint)
        return pa.concat_tables(tables) if tables else None, wrong[0] if wrong else None

    def _forgotten(self, rows: TimedRows, clock: Clock) -> str:
        """Rows are skipped, and what is open of their keys is lost. Returns what there is to say of that."""
        core, keys = self.core, np.unique(rows.ids) if rows.ids.size else ONE_KEY
        open_ = np.isin(self.told[1], keys) & np.isin(self.told[0], core.numbers)
        latest = np.full(int(open_.sum()), rows.ts.max())
        self.ended = np.concatenate([self.ended, np.stack([self.told[0][open_], latest])], axis=1)
        forget(core, keys)
        self.summary.forget(keys)
        at = clock.value(int(rows.ts.min()))
        if keys.size > 1:
            return f"From {at} on the frames of {keys.size:,} keys are lost, with the events that came then."
        of_key = "" if core.keys is None or self.key is None else f" of {core.keys.column(keys)[0].as_py()!r}"
        return f"It is the frame{of_key} at {at}, which is lost; the next one begins behind that event."

    def _started(self, rows: TimedRows, clock: Clock) -> TimedRows | None:
        """Events as the scan takes them, once it is known of which types they are; None: they wait for that."""
        core, ids = self.core, NO_KEY if self.key is None else rows.ids
        rows = TimedRows(self._with_sql(rows.table) if self._sql else rows.table, rows.ts, ids)
        wanted = rows.table.select(core.columns)
        if core.scan is None:
            if _is_untyped(wanted):
                core.waiting.add(*rows)
                return None
            if core.waiting.count:
                core.waiting.add(*rows)
                rows, core.waiting = core.waiting.rows, Waiting()
                wanted = rows.table.select(core.columns)
            wanted, core.scan, fields = core.check(wanted, clock)
            if core.scan.looks_ahead:
                core.scan.begin(fields)
            core.clock, core.schema = clock, wanted.schema
            if core.follower is not None:
                self.summary.start(self._types(rows.table))
            return rows
        typed = wanted if wanted.schema == core.schema else core.check(wanted, clock)[0]
        if core.scan.looks_ahead:
            core.scan.begin(core.scan.fields(typed))
        if typed is wanted:
            return rows
        table = rows.table
        for name in core.columns:
            table = table.set_column(table.column_names.index(name), name, typed.column(name))
        return TimedRows(table, rows.ts, ids)

    def _types(self, table: pa.Table) -> dict[str, pa.DataType]:
        return {name: table.schema.field(name).type for name in self._aggregated}

    def _begin(self) -> None:
        """Nothing is known of any frame."""
        self.core = DetectorCore(self.query.spec, self.ts, self.key, self.query.fragments)
        self.summary: Any = (FrameSummary if self.query.spec.in_runs else EventSummary)(self._asked)
        self.core.follower, self.core.forgiving = self.summary if self._asked else None, True
        self.told, self.ended = np.zeros((3, 0), np.int64), np.zeros((2, 0), np.int64)

    def decide(self, closed: int) -> tuple[pa.Table | None, SwagError | None]:
        """What events decide, they have decided when they came; time ends what none can belong to any more."""
        core, clock = self.core, self.core.clock
        due = core.due
        if due is None or due > closed or clock is None:
            return None, None
        frames = core.advance(None, rows=self._no_rows(), closed=Closed(closed, closed))
        self._note_ended()
        return self._said(frames, clock) if frames.num_rows else (None, None)

    def _no_rows(self) -> TimedRows:
        """Events as `take` is given them, but none."""
        assert self.core.schema is not None
        types = dict(zip(self.core.schema.names, self.core.schema.types, strict=True)) | (self.summary.types or {})
        return TimedRows(pa.schema(types).empty_table(), NO_TIME, NO_KEY)

    def check_other(self, table: pa.Table, clock: Clock, keys: KeyTable | None, ordered: bool) -> Any: ...

    def take_other(self, came: Any, clock: Clock) -> None: ...

    def close_other(self, closed: int) -> None: ...

    def let_go(self) -> None: ...

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _said(self, frames: pa.Table, clock: Clock) -> tuple[pa.Table | None, SwagError | None]:
        """Rows of the frames that came out. If some can not be answered for, those of the others; and why."""
        try:
            return self._rows(frames, np.arange(frames.num_rows), clock), None
        except SwagError as why:
            fine = []
            for row in range(frames.num_rows):
                try:
                    fine.append(self._rows(frames, np.array([row]), clock))
                except SwagError:
                    continue
            return (pa.concat_tables(fine) if fine else None), why

    def _rows(self, frames: pa.Table, which: np.ndarray, clock: Clock) -> pa.Table:
        query = self.query
        names = [name for name in frames.column_names if name in (*OURS, self.key, "final")]
        found = frames.select(names)
        found = found if which.size == found.num_rows else found.take(pa.array(which))
        return query.with_answers(found, *query.computed(self.summary.answers(which, clock)))

    def nothing(self) -> pa.Table:
        core, query = self.core, self.query
        if core.scan is None or core.clock is None:
            by = () if self.key is None else (self.key,)
            names = {name: pa.null() for name, _ in query.values}
            empty = before_events(query.spec, by, query.fragments)
            front = empty.select([name for name in empty.column_names if name in (*OURS, *by, "final")])
            return pa.schema([*front.schema, *names.items()]).empty_table()
        named = None if core.keys is None or self.key is None else (self.key, core.keys)
        extra = {"final": pa.array([], pa.bool_())} if query.fragments else {}
        frames = frames_table(NO_TIME, np.zeros((COUNT + 1, 0), np.int64), named, core.clock, extra)
        self.summary.forget_report()
        return self._rows(frames, NO_IDS, core.clock)

    # -- changes ------------------------------------------------------------------------------------------------------

    def _note_ended(self) -> None:
        """Of the frames that ended just now, when those did that were told to be open."""
        numbers, ends = self.core.ended
        if self.told.size and numbers.size:
            known = np.isin(numbers, self.told[0])
            self.ended = np.concatenate([self.ended, np.stack([numbers[known], ends[known]])], axis=1)

    def _open(self) -> np.ndarray:
        """The frames that are open, in order: number, key, start."""
        if self.core.scan is None:
            return np.zeros((3, 0), np.int64)
        frames, order = self.core.scan.frames, np.argsort(self.core.numbers, kind="stable")
        return np.stack([self.core.numbers, frames[:, KEY], frames[:, BEGIN]])[:, order]

    def changes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        now = self._open()
        opened = now[:, ~np.isin(now[0], self.told[0])]
        order = np.argsort(self.ended[0], kind="stable")
        numbers, ends = self.ended[:, order]
        of = np.searchsorted(self.told[0], numbers)
        keys = np.concatenate([self.told[1][of], opened[1]])
        passing = np.arange(keys.size) >= numbers.size
        return np.concatenate([numbers, opened[0]]), keys, np.concatenate([ends, opened[2]]), passing

    def tell(self) -> None:
        self.told, self.ended = self._open(), np.zeros((2, 0), np.int64)

    # -- keys that come and go ----------------------------------------------------------------------------------------

    def needs(self, count: int) -> np.ndarray:
        found = np.zeros(count, bool)
        if self.core.scan is not None:
            rests = self.core.scan.at_rest(self.core.scan.memory())[:count]
            found[: rests.size] = ~rests
        found[self.core.waiting.rows.ids] = True
        found[self.told[1]] = True
        if self.core.ends is not None:
            found[self.core.ends.keys(self.core.keys)] = True
        return found

    def renumber(self, kept: np.ndarray) -> None:
        if self.core.scan is not None and self.core.keys is not None:
            keep_keys(self.core, kept, owned=False)
        else:
            self.core.waiting.renumber(kept)
        place = np.zeros(int(kept.max(initial=-1)) + 1, np.int64)
        place[kept] = np.arange(kept.size)
        self.told[1] = place[self.told[1]]

    # -- about itself -------------------------------------------------------------------------------------------------

    def explain(self) -> list[str]:
        """What is kept of frames, and why, in lines."""
        if not self.query.spec.in_runs:
            return [f"{self.kept:,} events are kept, as frames or matches that are not certain yet may have them"]
        open_ = self.core.numbers.size
        lines = [f"{open_:,} open; what is said of a frame is kept as partials, whatever its length"]
        kept = [str(aggregate) for aggregate, _ in self.summary.kept]
        if kept:
            lines.append(f"{', '.join(dict.fromkeys(kept))}: of the events, {self.kept:,} of which are kept")
        return lines

    @property
    def kept(self) -> int:
        return int(self.summary.rows) + self.core.waiting.count + self.core.kept

    @property
    def bytes(self) -> int:
        return self.core.bytes + int(self.summary.bytes) + self.core.waiting.bytes

    def state(self) -> State:
        header, arrays = nested({"core": self.core, "summary": self.summary})
        return header, arrays | {"told": self.told, "ended": self.ended}

    def restore(self, state: State) -> None:
        follower = self.core.follower
        self.core.restore(part_of(state, "core"))
        self.core.follower = follower
        self.summary.restore(part_of(state, "summary"))
        self.told, self.ended = state[1]["told"].copy(), state[1]["ended"].copy()


def _check_functions(aggregate: Aggregate, table: pa.Table) -> None:
    """Raise if the function of a user's refuses a value."""
    column = field(table, aggregate.columns[0], f"{aggregate} reads")
    rows = None if column.valid is None else np.flatnonzero(column.valid)
    check_lift(aggregate, f"{aggregate}", column.values if rows is None else column.values[rows], rows)


def _is_untyped(table: pa.Table) -> bool:
    """Has any of its columns no type, as all are null?"""
    return any(pa.types.is_null(decoded_type(kind)) for kind in table.schema.types)
