"""A query over frames on the shards of a stream: found, and summarised as they grow, as an engine does it.

All that a shard knows is in the header that it writes with every trigger: events that wait for the watermark, what is
remembered of every key, and the partials of open frames. It is small, as it follows open frames and not their length;
so there is no log beside it, and nothing to tend.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from frames.continuous.running import RunningFrames
from frames.state import keys_from_arrays, keys_to_arrays
from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, own_arrays, part, with_arrays
from swag.errors import SwagError
from swag.live import intake
from swag.query.reading import Reading
from swag.spark.streams.cache import Step
from swag.spark.streams.log import Log
from swag.spark.streams.watermark import instants_of
from swag.tables.columns import Clock
from swag.tables.keys import KeyTable
from swag.tables.waiting import TimedRows, Waiting

if TYPE_CHECKING:
    from frames.spark.streams.stream import FramePlan

EVENTS = "events"


class ShardSaidFrames:
    """The frames of one shard and what a query says of them, as swag.spark.streams.cache asks for them.

    Owns the query at work, the table of its keys, and the events that wait.
    """

    latest: int | None = None
    ahead: int | None = None  # never: what is found is to be sent at once
    at_work: type[RunningFrames] = RunningFrames

    def __init__(self, plan: "FramePlan", shard: int) -> None:
        assert plan.query is not None
        self.plan, self.place = plan, plan.numbers.index(shard)
        self._by = () if plan.key is None else (plan.key,)
        self._reading, self._clock = Reading(plan.query.readers, plan.ts, *self._by), Clock(plan.time.type)
        self._begin()

    def _begin(self) -> None:
        """Nothing has come; but of which types columns are is known."""
        plan = self.plan
        assert plan.query is not None
        self.running, self.waiting = self.at_work(plan.query, plan.ts, self._by), Waiting()
        self.keys = None if plan.key is None else KeyTable(plan.events.field(plan.key).type)
        self.running.take(self._read(plan.events.empty_table()), self.keys, self._clock)

    def _read(self, events: pa.Table) -> TimedRows:
        table = intake.read(events, self._reading, keep=True)
        ids = np.zeros(table.num_rows, np.int64)
        if self.keys is not None and self.plan.key is not None:
            ids = self.keys.encode(table.column(self.plan.key), self.plan.key)
        return TimedRows(table, instants_of(table.column(self.plan.ts)), ids)

    def _say(self, step: Step, decided: tuple[pa.Table | None, SwagError | None]) -> None:
        """The rows of frames, with numbers of this shard's own; what goes wrong fails the trigger."""
        found, why = decided
        if why is not None:
            raise why
        if found is not None:
            numbers = np.asarray(found.column("frame_id")) * len(self.plan.numbers) + self.place
            step.answers.append(found.set_column(0, "frame_id", pa.array(numbers, pa.int64())))
            step.counts["lookups"] = step.counts.get("lookups", 0) + found.num_rows

    @property
    def output(self) -> pa.Schema:
        """Of the rows that come out."""
        return self.running.nothing().schema

    def restore(self, state: State) -> None:
        """There is no log to tend."""

    def replay(self, tables: dict[str, list[pa.Table]], state: State, upto: int | None) -> None:
        self._begin()
        self.running.restore(part(state, "running"))
        self.waiting.restore(part(state, "waiting"))
        if self.keys is not None:
            self.keys = keys_from_arrays(self.keys.type, own_arrays(state[1], "own"))

    def step(self, fresh: dict[str, pa.Table], upto: int | None) -> Step:
        """One trigger: events that are not late wait for the watermark; what it has passed is taken."""
        step = Step(counts={EVENTS: 0, "late": 0})
        events = self._in_time(step, fresh.get(EVENTS), upto)
        if events is not None:
            rows = self._read(events)
            self.running.check(rows.table, self._clock)
            self.waiting.add(*rows)
        self._take_other(step, fresh, upto)
        due = self.waiting.leave(upto)
        if due is not None:
            self._say(step, self.running.take(due, self.keys, self._clock))
            self._applied(step, due)
        if upto is not None:
            self._say(step, self.running.decide(upto))
        self._forget_keys()
        step.counts |= {"held": self.waiting.count, "kept": self.running.core.numbers.size + self.running.kept}
        return step

    def _in_time(self, step: Step, rows: pa.Table | None, upto: int | None) -> pa.Table | None:
        """Rows that are not late; both are counted."""
        if rows is None:
            return None
        late = instants_of(rows.column(self.plan.ts)) <= (EARLIEST if upto is None else upto)
        step.counts["late"] += int(late.sum())
        step.counts[EVENTS] += rows.num_rows - int(late.sum())
        return rows.filter(pa.array(~late))

    def _take_other(self, step: Step, fresh: dict[str, pa.Table], upto: int | None) -> None:
        """Rows of another stream, if there is one."""

    def _applied(self, step: Step, due: TimedRows) -> None:
        """Events that the watermark has passed were taken."""

    def _forget_keys(self) -> None:
        """Those of which nothing is open, where they are half of all."""
        if self.keys is None or self.keys.count < 2 * self.plan.many_keys:
            return
        needed = self.running.needs(self.keys.count)
        needed[self.waiting.rows.ids] = True
        kept = np.flatnonzero(needed)
        if 2 * kept.size <= self.keys.count:
            self.keys.keep(kept)
            self.running.renumber(kept)
            self.waiting.renumber(kept)

    def go_ahead(self, upto: int) -> None: ...

    def tend(self, log: Log) -> None: ...

    def state(self) -> State:
        whole = nested({}, {"running": self._running_state(), "waiting": self.waiting.state()})
        return with_arrays(whole, {f"own/{name}": each for name, each in keys_to_arrays(self.keys).items()})

    def _running_state(self) -> State:
        return self.running.state()

    def wakes(self) -> int | None:
        return min((each for each in (self.waiting.first, self.running.core.due) if each is not None), default=None)

    @property
    def bytes(self) -> int:
        return self.running.bytes + self.waiting.bytes
