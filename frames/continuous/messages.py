"""What is kept of the stream that frames are filled from: events as they came, and partials of frames that are open.

    messages of a key   . . [o o o o o o . . . .        [: the start of an open frame, moved by `before`
    folded                   [----------)               up to where they certainly lie in it, and in no later frame

Where aggregates merge, messages of a frame that is open, or of a run that may become one, are folded as soon as none
before them can come, so memory does not follow the length of frames. Whose they are is known by the start: something is
folded only where a frame has got past its start, and then the next one starts later. Messages that a frame to come may
reach back to are kept as they are, and so are all where an aggregate needs them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.continuous.batches import CountedRows
from frames.continuous.partials import Asked, Partials
from frames.continuous.summaries import is_merged
from frames.finding.layout import LaidOut, laid_out
from frames.scans.scan import extended
from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, part, table_from_array, table_to_array, with_arrays
from swag.tables.columns import decoded_type
from swag.tables.waiting import TimedRows


class MessageSpans(NamedTuple):
    """Frames by when they start, and their keys: from when to when messages lie in them, both inside."""

    starts: np.ndarray
    keys: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def some(self, which: np.ndarray) -> "MessageSpans":
        return MessageSpans(*(each[which] for each in self))


class LaidMessages(CountedRows):
    """Messages in order of key and time: pieces are positions there."""

    def __init__(self, rows: TimedRows, keys: int) -> None:
        self.laid: LaidOut = laid_out(rows.ts, rows.ids, keys)
        order = self.laid.order
        super().__init__(rows.table, np.arange(rows.ts.size) if order is None else order)

    def positions(self, pieces: MessageSpans) -> tuple[np.ndarray, np.ndarray]:
        first, last = self.laid.spans(pieces.keys, pieces.first, pieces.last)
        return first, np.maximum(first, last)


class Messages:
    """Owns the messages that are kept (`rows`), the partials of open frames by key (`partials`, None where messages are
    needed themselves, or no types are known), and when the frame starts that each of these is of (`folded`). Of each
    key it knows since when messages are kept (`since`): what is before that is folded, or of no use to any frame.

    Asked of it: to `add` messages; to `let_go` of some, which are folded into an open frame if they lie in one; and the
    `answers` of frames all of whose messages have come.
    """

    def __init__(self, asked: Sequence[Asked], may_fold: bool) -> None:
        self.asked, self.may_fold = list(asked), may_fold
        self.rows: TimedRows | None = None
        self.types: dict[str, pa.DataType] = {}
        self.partials: Partials | None = None
        self.folded = self.since = np.zeros(0, np.int64)

    def add(self, new: TimedRows) -> None:
        if self.rows is not None:
            tables = pa.concat_tables([self.rows.table, new.table], promote_options="permissive")
            both = (np.concatenate(each) for each in zip(self.rows[1:], new[1:], strict=True))
            new = TimedRows(tables, *both)
        self.rows = new
        if self.may_fold and self.partials is None:
            self._begin(new.table)

    def _begin(self, table: pa.Table) -> None:
        """Types tell what can be merged, once there are any."""
        names = dict.fromkeys(name for aggregate, _ in self.asked for name in aggregate.columns)
        self.types = {name: decoded_type(table.schema.field(name).type) for name in names}
        if any(map(pa.types.is_null, self.types.values())):
            return
        self.may_fold = all(aggregate.user is None and is_merged(aggregate, self.types) for aggregate, _ in self.asked)
        self.partials = Partials(self.asked) if self.may_fold else None

    def answers(self, spans: MessageSpans) -> list[Any] | None:
        """A column per aggregate; None if it takes the messages themselves. Raises if a sum does not fit."""
        if self.partials is None or self.rows is None:
            return None
        slots, keys = np.arange(spans.keys.size), self._grown(spans.keys, self.rows.ids)
        found = self.partials.like(slots.size)
        begun = np.flatnonzero(self.folded[spans.keys] == spans.starts)
        found.put(begun, self.partials, spans.keys[begun])
        laid = LaidMessages(self.rows, keys)
        found.fold(laid, spans, slots)
        return found.answers(slots, self.types)

    def let_go(self, upto: np.ndarray, spans: MessageSpans) -> None:
        """Of each key those before some time go. spans: open frames, at most one of a key, that they may lie in; what
        does lies in no other frame, and none is to come before it."""
        if self.rows is None:
            return
        rows = self.rows
        self.since = np.maximum(extended(self.since, upto.size, EARLIEST), upto)
        keep = rows.ts >= upto[rows.ids]
        if keep.all():
            return
        if self.partials is not None and spans.keys.size:
            self._fold(self.partials, rows.some(np.flatnonzero(~keep)), spans)
        self.rows = TimedRows(rows.table.filter(pa.array(keep)).combine_chunks(), rows.ts[keep], rows.ids[keep])

    def _fold(self, partials: Partials, rows: TimedRows, spans: MessageSpans) -> None:
        laid = LaidMessages(rows, self._grown(spans.keys, rows.ids))
        first, last = laid.positions(spans)
        spans = spans.some(last > first)
        partials.clear(spans.keys[self.folded[spans.keys] != spans.starts])
        self.folded[spans.keys] = spans.starts
        partials.fold(laid, spans, spans.keys)

    def _grown(self, *keys: np.ndarray) -> int:
        """How many keys there are, for all of which there is room from now on."""
        assert self.partials is not None
        count = max(self.folded.size, *(int(each.max(initial=0)) + 1 for each in keys))
        self.folded = extended(self.folded, count, EARLIEST)
        self.partials.grow(count)
        return count

    def are_kept(self, ts: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Of messages that came once: which of them are kept? ids: -1 is a key of which none is."""
        since = extended(self.since, int(ids.max(initial=-1)) + 1, EARLIEST)
        found: np.ndarray = ids >= 0
        found[found] = ts[found] >= since[ids[found]]
        return found

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and messages are of no others."""
        count = int(kept.max(initial=-1)) + 1
        place = np.zeros(count, np.int64)
        place[kept] = np.arange(kept.size)
        if self.rows is not None:
            self.rows = self.rows.known_by(place[self.rows.ids])
        self.since = extended(self.since, count, EARLIEST)[kept]
        if self.partials is not None:
            self._grown(kept)
            self.folded = self.folded[kept]
            self.partials.renumber(kept)

    @property
    def count(self) -> int:
        return 0 if self.rows is None else self.rows.ts.size

    @property
    def bytes(self) -> int:
        own = self.folded.nbytes + self.since.nbytes + (0 if self.partials is None else self.partials.bytes)
        return own + sum(each.nbytes for each in self.rows or ())

    def state(self, rows: bool = True) -> State:
        """rows=False: without the messages themselves, of whoever has them elsewhere."""
        if self.rows is None:
            return {}, {}
        table, ts, ids = self.rows
        state = nested({}, {"partials": None if self.partials is None else self.partials.state()})
        own = {"rows": table_to_array(table), "ts": ts, "ids": ids} if rows else {"since": self.since}
        return with_arrays(state, own | {"folded": self.folded})

    def restore(self, state: State) -> None:
        """If messages were left out, of others that have begun with some of the same types."""
        header, arrays = state
        if "rows" in arrays:
            self.add(TimedRows(table_from_array(arrays["rows"]), arrays["ts"], arrays["ids"]))
        if "folded" not in arrays:
            return
        self.folded, self.since = arrays["folded"].copy(), arrays.get("since", self.since).copy()
        if self.partials is not None and header["partials"] is not None:
            self.partials.restore(part(state, "partials"))
