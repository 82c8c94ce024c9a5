"""What is said of the frames that a detector finds, as they grow: from partials wherever there are some, else from
events.

    events of a key     . . x x x x x . .          a run, of which a frame becomes certain
    its partial           [-------------]          follows the run from its first event on, before it is certain

A key has at most two: of its run, and of the gap in front of it (Threshold with partition=True). So memory follows the
keys of open frames, not how long these are. What has no partial is computed of events, kept for as long as their frame
is open (frames/continuous/kept_events.py): `is_merged` says which aggregates need none of that.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frames.continuous.batches import KeyedBatch, KeyPieces
from frames.continuous.kept_events import EventSpan, KeptEvents
from frames.continuous.partials import Asked, Partials
from frames.scans.scan import Scan
from kernels.frames.framing import COUNT, GAP, KEY, OPEN, ROWS, SENT
from swag.durable.state import State, nested, part, types_from_array, types_to_array, with_arrays
from swag.live.arena import Batch
from swag.live.intake import is_wide
from swag.live.unbounded.accumulators import can_run
from swag.query.aggregates import Aggregate
from swag.query.kind import KINDS
from swag.tables.columns import Clock, decoded_type, is_discrete
from swag.tables.waiting import NO_IDS, TimedRows


def is_merged(aggregate: Aggregate, types: dict[str, pa.DataType]) -> bool:
    """Is it known from partials, without the events? Of columns of numbers or times, what is neither holistic, nor at
    some place, nor about now."""
    if aggregate.kind == "count":
        return True
    kinds = [decoded_type(types[name]) for name in aggregate.columns]
    plain = all((pa.types.is_floating(kind) or is_discrete(kind)) and not is_wide(kind) for kind in kinds)
    at_a_place = KINDS[aggregate.kind].timed or KINDS[aggregate.kind].answers == "lists"
    return plain and can_run(aggregate) and not at_a_place and aggregate.kind != "approx_count_distinct"


class FrameSummary:
    """Aggregates of the frames of a detector, which tells it of every batch before (`begin`) and after (`cut`) it was
    scanned, and of the frames that come out (`report`); then it is asked for their `answers`.

    Owns the partials of runs and of gaps by key, those of frames that come out, and the events that some aggregates
    need. types: of the columns that are read, once there are events.
    """

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.asked = list(asked)
        self.may_fail = any(aggregate.user is not None for aggregate, _ in asked)
        self.types: dict[str, pa.DataType] | None = None
        self.columns = list(dict.fromkeys(name for aggregate, _ in asked for name in aggregate.columns))
        self._seen, self._places = NO_IDS, NO_IDS  # by key: zeros, and scratch
        self.events: KeptEvents | None = None
        self.by_key: Batch | None = None  # the next rows in order of key, if somebody has put them so

    def start(self, types: dict[str, pa.DataType]) -> None:
        """The first events tell of which types columns are, and so what can be merged."""
        self.types = types
        self._merged = [is_merged(aggregate, types) for aggregate, _ in self.asked]
        some = [each for each, merged in zip(self.asked, self._merged, strict=True) if merged]
        rest = [each for each, merged in zip(self.asked, self._merged, strict=True) if not merged]
        self.runs, self.gaps = Partials(some), Partials(some)
        self.events = KeptEvents(rest, list(types)) if rest else None

    @property
    def kept(self) -> list[Asked]:
        """What events of open frames are kept for."""
        return [] if self.events is None else self.events.asked

    # -- batches ------------------------------------------------------------------------------------------------------

    def begin(self, rows: TimedRows, scan: Scan) -> None:
        """Rows that are about to be scanned."""
        by_key, self.by_key, keys = self.by_key, None, scan.keyed.shape[0]
        if keys > self._seen.size:
            self._seen, self._places = np.zeros(keys, np.int64), np.zeros(keys, np.int64)
        self.batch = KeyedBatch(rows, scan, self._seen, by_key)

    def join(self, keys: np.ndarray, scan: Scan) -> None:
        """Frames of these keys end with this batch, too."""
        self.batch.join(keys, scan)

    def cut(self, scan: Scan, carried: int, scanned: TimedRows) -> None:
        """They were scanned: frames have ended, runs and gaps are left. carried: frames that there were before."""
        batch, places, frames, keys = self.batch, self._places, scan.frames, scan.keyed.shape[0]
        places[batch.keys] = np.arange(batch.keys.size)
        self._ended = np.flatnonzero(frames[:, OPEN] == 0)
        pieces = batch.of_frames(frames, self._ended, carried, places)
        gaps, runs = batch.left(scan)
        self.runs.grow(keys)
        self._closed = self._summed(pieces)
        if gaps.places.size or batch.gap.any():
            self.gaps.grow(keys)
            self._follow_gaps(gaps)
        self._follow_runs(runs)
        if self.events is not None:
            self.events.let_go()
            self.events.grow(keys)
            self._keep_events(self.events, pieces, (gaps, runs))

    def _keep_events(self, events: KeptEvents, pieces: KeyPieces, left: tuple[KeyPieces, KeyPieces]) -> None:
        """Those of the batch; where frames that have ended do so, by the numbers of events in their key. left: gaps and
        runs, whose events are needed."""
        batch, needed = self.batch, np.zeros(self.batch.keys.size, np.int64)
        self._lasts = events.count[batch.keys[pieces.places]] + pieces.last
        events.add(batch)
        for some in left:
            needed[some.places] += some.last - some.first
        events.need(batch.keys, needed)

    def _summed(self, pieces: KeyPieces) -> Partials:
        """Of frames that have ended."""
        batch, slots = self.batch, np.arange(pieces.places.size)
        gap, run = batch.begins_with(pieces)
        found, keys = self.runs.like(slots.size), batch.keys[pieces.places]
        found.put(slots[gap], self.gaps, keys[gap])
        found.put(slots[run & ~gap], self.runs, keys[run & ~gap])
        found.join(slots[run & gap], self.runs, keys[run & gap])
        found.fold(batch, pieces, slots)
        return found

    def _follow_gaps(self, pieces: KeyPieces) -> None:
        """Gaps that are left are what they were, the run behind them if that failed, and rows of the batch."""
        batch, keys = self.batch, self.batch.keys[pieces.places]
        gap, run = batch.begins_with(pieces)
        self.gaps.clear(keys[~gap])
        self.gaps.join(keys[run], self.runs, keys[run])
        self.gaps.fold(batch, pieces, keys)

    def _follow_runs(self, pieces: KeyPieces) -> None:
        batch, keys = self.batch, self.batch.keys[pieces.places]
        _, run = batch.begins_with(pieces)
        self.runs.clear(keys[~run])
        self.runs.fold(batch, pieces, keys)

    # -- frames that come out -----------------------------------------------------------------------------------------

    def report(self, frames: np.ndarray, chosen: np.ndarray, keyed: np.ndarray) -> None:
        """Frames in these slots come out, or what is new of them where they are still open."""
        own, slots = frames[chosen], np.arange(chosen.size)
        keys, closed, gap = own[:, KEY], own[:, OPEN] != 1, own[:, GAP] == 1
        ended = np.searchsorted(self._ended, chosen[closed])
        self.out = self.runs.like(slots.size)
        self.out.put(slots[closed], self._closed, ended)
        for some, partials in ((~closed & ~gap, self.runs), (~closed & gap, self.gaps)):
            self.out.put(slots[some], partials, keys[some])
            partials.clear(keys[some])
        if self.events is not None:
            behind = np.where(gap, keyed[keys, ROWS], 0)  # the run behind a gap that is still open
            last = self.events.count[keys] - behind
            last[closed] = self._lasts[ended]
            self._span = EventSpan(keys, last - own[:, COUNT] + own[:, SENT], last)
            self.events.need(keys[~closed], behind[~closed])

    def forget_report(self) -> None:
        """No frame came out last."""
        self.out, self._span = self.runs.like(0), EventSpan(NO_IDS, NO_IDS, NO_IDS)

    def answers(self, which: np.ndarray, clock: Clock) -> list[Any]:
        """A column per aggregate, of some of the frames that came out last. Raises if a sum does not fit."""
        assert self.types is not None
        merged = iter(self.out.answers(which, self.types))
        if self.events is None:
            return list(merged)
        others = iter(self.events.answers(self._span.some(which), clock))
        return [next(merged if each else others) for each in self._merged]

    def forget(self, keys: np.ndarray) -> None:
        """Nothing of these keys is open."""
        if self.types is None:
            return
        for partials in (self.runs, self.gaps):
            partials.grow(int(keys.max(initial=-1)) + 1)
            partials.clear(keys)
        if self.events is not None:
            self.events.grow(int(keys.max(initial=-1)) + 1)
            self.events.need(keys, np.zeros(keys.size, np.int64))

    # -- about itself -------------------------------------------------------------------------------------------------

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others."""
        if self.types is None:
            return
        for partials in (self.runs, self.gaps):
            partials.grow(int(kept.max(initial=-1)) + 1)
            partials.renumber(kept)
        self._seen, self._places = NO_IDS, NO_IDS
        if self.events is not None:
            self.events.renumber(kept)

    @property
    def rows(self) -> int:
        """Events that are kept."""
        return 0 if self.events is None else self.events.kept

    @property
    def bytes(self) -> int:
        if self.types is None:
            return 0
        return self.runs.bytes + self.gaps.bytes + (0 if self.events is None else self.events.bytes)

    def state(self) -> State:
        if self.types is None:
            return {}, {}
        inside = {"runs": self.runs.state(), "gaps": self.gaps.state()}
        inside |= {} if self.events is None else {"events": self.events.state()}
        return with_arrays(nested({}, inside), {"types": types_to_array(self.types)})

    def restore(self, state: State) -> None:
        if "types" not in state[1]:
            return
        self.start(types_from_array(state[1]["types"]))
        self.runs.restore(part(state, "runs"))
        self.gaps.restore(part(state, "gaps"))
        if self.events is not None:
            self.events.restore(part(state, "events"))
