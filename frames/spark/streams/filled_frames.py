"""A query over frames on the shards of two streams: its frames are filled from the other one, by time.

    reports  --> wait for the watermark --> FilledFrames (frames/continuous/filled.py) --> frames that have ended wait
    messages --> the log ----------------------^     kept while a frame may reach back to them, or folded into open ones

The watermark is that of the stream that is behind: Spark takes the earliest of all streams of a query. So up to it both
have come, and a frame whose end it has passed is complete. Messages are in the log as they came, each once; in the
header is what is not a function of them: since when those of each key are kept, and the partials of open frames. A
worker that begins anew takes from the log what is still kept. A query that fills frames from their own stream logs the
events that the watermark has passed.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from frames.continuous.filled import FilledFrames
from frames.spark.streams.said_frames import ShardSaidFrames
from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, part
from swag.live import intake
from swag.spark.streams.cache import Step
from swag.spark.streams.log import Log
from swag.spark.streams.sweeping import Sweep
from swag.spark.streams.watermark import instants_of
from swag.tables.waiting import TimedRows

if TYPE_CHECKING:
    from frames.spark.streams.stream import FramePlan

MESSAGES = "messages"


class ShardFilledFrames(ShardSaidFrames):
    """As its base. It also owns the sweep of the log, and knows how many messages came last."""

    running: FilledFrames
    at_work = FilledFrames

    def __init__(self, plan: "FramePlan", shard: int) -> None:
        self._sweep, self._batch = Sweep(), 0
        super().__init__(plan, shard)

    def _begin(self) -> None:
        super()._begin()
        if self.plan.messages is not None:
            self._fill(self._messages(self.plan.messages.empty_table()), None)

    def _messages(self, table: pa.Table) -> pa.Table:
        return intake.read(table, self.running.reading, keep=True)

    def _fill(self, table: pa.Table | None, upto: int | None) -> None:
        """Messages, and that all up to the watermark have come."""
        if table is not None:
            came = self.running.check_other(table, self._clock, self.keys, ordered=False)
            self.running.take_other(came, self._clock)
        self.running.close_other(EARLIEST if upto is None else upto)

    def _take_other(self, step: Step, fresh: dict[str, pa.Table], upto: int | None) -> None:
        came = self._in_time(step, fresh.get(MESSAGES), upto)
        messages = None if came is None else self._messages(came)
        self._batch = 0
        if self.plan.messages is not None:
            self._note(step, messages)
            self._fill(messages, upto)

    def _applied(self, step: Step, due: TimedRows) -> None:
        if self.plan.messages is None:
            self._note(step, due.table.select(list(self.running.reading.columns)))

    def _note(self, step: Step, messages: pa.Table | None) -> None:
        """What is to be logged."""
        if messages is not None:
            self._batch = messages.num_rows
            step.log.append((MESSAGES, messages, instants_of(messages.column(self.plan.ts))))

    def replay(self, tables: dict[str, list[pa.Table]], state: State, upto: int | None) -> None:
        """Messages that are here, and those that were logged since, are all that may still be kept."""
        here = self.running.messages.rows
        super().replay(tables, state, upto)
        self.restore(state)
        for table in [*([] if here is None else [here.table]), *tables.get(MESSAGES, [])]:
            self.running.take_again(table)

    def restore(self, state: State) -> None:
        self._sweep.restore(part(state, "sweep"))

    def tend(self, log: Log) -> None:
        needed = self.running.messages.count
        self._sweep.tend(log, MESSAGES, needed, self._batch, self._kept_of)

    def _kept_of(self, logged: pa.Table) -> pa.Table:
        return logged.filter(pa.array(self.running.are_kept(logged)))

    def _forget_keys(self) -> None:
        super()._forget_keys()
        self.running.forget_keys(self.plan.many_keys)

    def _running_state(self) -> State:
        return self.running.state(messages=False)

    def state(self) -> State:
        header, arrays = super().state()
        own, _ = nested({}, {"sweep": self._sweep.state()})
        return header | own, arrays

    def wakes(self) -> int | None:
        ended = self.running.first_to_fill
        return min((each for each in (super().wakes(), ended) if each is not None), default=None)
