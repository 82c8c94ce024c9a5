"""Stored events are answered in chunks of requests, one thread each, window by window, block by block."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.operators.numbers import LATEST
from kernels.stored import edges
from kernels.stored.edges import Timeline
from swag.query.windows import Reach
from swag.stored.ordered_rows import Requests, Selection
from swag.tables.columns import room

CHUNK = 1 << 17  # requests that a thread takes at a time. The same on any machine: so are the answers, to the last bit
MOST_ROWS = 1 << 19  # rows that a chunk should see, where there are many for each request
BLOCK = 1 << 16  # requests whose edges are found together: they stay in the second-level cache


@dataclass(eq=False)
class RequestBlock:
    """Windows [lo[i], hi[i]) of requests first, first + 1 …

    None holds fewer than `floor` rows. `in_step`: from one to the next, both edges go on by one row.
    """

    first: int
    lo: np.ndarray
    hi: np.ndarray
    floor: int = 0
    in_step: bool = False
    _within: dict[Selection, "RequestBlock"] = field(default_factory=dict)
    _since: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def any_below(self, least: int) -> bool:
        """Does any window hold fewer than `least` rows?"""
        if self.floor < least:
            self.floor = int(edges.narrowest(self.lo, self.hi))
        return self.floor < least

    @property
    def n(self) -> np.ndarray:
        return self.hi - self.lo

    def since(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """The edges, counted from a row on."""
        if row not in self._since:
            self._since[row] = (self.lo - row, self.hi - row) if row else (self.lo, self.hi)
        return self._since[row]

    def within(self, selection: Selection) -> "RequestBlock":
        """The same windows, counting only the rows of a selection."""
        if selection.rank is None:
            return self
        if selection not in self._within:
            lo, hi = np.empty_like(self.lo), np.empty_like(self.lo)
            edges.renumber(selection.rank, self.lo, lo)
            edges.renumber(selection.rank, self.hi, hi)
            self._within[selection] = RequestBlock(self.first, lo, hi)
        return self._within[selection]


class Output:
    """One column of answers, filled in block by block in the order of requests, and then put in that of the input.

    Windows of fewer than `least` rows give null. To put each block into its places at once was three times as slow,
    where keys lie mixed: twenty columns that are written all over take more pages than the processor keeps track of.

    A column at a time, the lines that all keys are at fit the second-level cache: 1.3 ns per answer of 2,000 keys, 2.6
    to 3.2 of 20,000 or more. Other ways were no faster (2M rows, per answer): four columns at once 5 to 6.6 ns; rows of
    4 or 8 answers, gathered as a whole and then parted into columns 2.5 to 3.9, and those rows have to be made first;
    rows put in place and parted then 4; by tiles of the input, in order of keys within each, 2.8 to 4.7.
    """

    def __init__(self, requests: Requests, dtype: Any, least: int = 1) -> None:
        self.values = room(requests.count, dtype)
        self.least = least
        self.bitmap: np.ndarray | None = None  # a bit for each answer, 0 where it is null; None: none is
        self._order = requests.order
        self._lock = threading.Lock()

    def slot(self, block: RequestBlock) -> np.ndarray:
        """Where a block's answers go."""
        return self.values[block.first : block.first + block.lo.size]

    def settle(self, block: RequestBlock, slot: np.ndarray, valid: np.ndarray | None = None) -> None:
        """The slot is filled in. valid: which answers are not null, where not only windows of few rows give such."""
        if valid is not None and not valid.all():
            self._blank(block.first, slot, np.flatnonzero(~valid))
        elif valid is None and block.any_below(self.least):
            self._blank(block.first, slot, np.flatnonzero(block.n < self.least))

    def arrange(self, request_of: np.ndarray) -> None:
        """All are filled in: into the order of the input. request_of: of each input row."""
        found, values = room(self.values.size, self.values.dtype), self.values
        if values.dtype.itemsize == 8:  # as words: one kernel for all types
            edges.renumber(values.view(np.int64), request_of, found.view(np.int64))
        else:
            edges.renumber(values, request_of, found)
        self.values = found

    def row(self, request: int) -> int:
        """The input row of a request."""
        return request if self._order is None else int(self._order[request])

    def _blank(self, first: int, slot: np.ndarray, places: np.ndarray) -> None:
        """Bits rather than flags: those of a column fit the first-level cache, and Arrow takes them as they are."""
        slot[places] = 0
        requests = first + places
        with self._lock:
            if self.bitmap is None:
                self.bitmap = np.full((self.values.size + 7) // 8, 0xFF, np.uint8)
            edges.clear_bits(self.bitmap, requests if self._order is None else self._order[requests])


@dataclass(eq=False)
class Chunk:
    """Requests first:last. It owns what was built to answer them, which aggregators keep here (`once`, `rows`).

    Asked of it: the edges of a `block` of windows, and which rows windows see from here.
    """

    requests: Requests
    timeline: Timeline
    first: int
    last: int
    made: dict[Any, Any] = field(default_factory=dict)
    rows: dict[Any, tuple[int, int]] = field(default_factory=dict)
    _seen: dict[Reach, tuple[int, int]] = field(default_factory=dict)
    _steps: dict[Reach, tuple[int, int]] = field(default_factory=dict)  # of the whole chunk: see `_in_step`

    def once(self, what: Any, make: Callable[[], Any]) -> Any:
        if what not in self.made:
            self.made[what] = make()
        return self.made[what]

    def block(self, reach: Reach, first: int, last: int) -> RequestBlock:
        """The edges of a block of windows; they are gone when the next block is asked for."""
        end, each, known = self.requests.end, self.requests.each_event, self.requests.windows.get(reach)
        if known is not None:
            return RequestBlock(first, known[0][first:last], known[1][first:last])
        if each and self.requests.runs.shape[0] == 2:  # one segment: a request per row, and end is 1, 2, 3 …
            left, right = self._both_in_step(reach, first, last)
            if left >= 0 and right >= 0:
                lo, hi = (end[at : at + last - first] for at in (left, right))
                return RequestBlock(first, lo, hi, right - left, in_step=True)
        open_end = reach.near == 0 and not reach.peers  # it ends with the newest row that the request sees
        far = reach.far if reach.since is None else None
        lo = self._edge(reach, far, first, last, "lo")
        hi = end[first:last] if open_end else self._edge(reach, reach.near, first, last, "hi")
        return RequestBlock(first, lo, hi, int(open_end and each))

    def _both_in_step(self, reach: Reach, first: int, last: int) -> tuple[int, int]:
        """`_in_step` of both edges. What goes on by a row throughout the chunk does so in each of its blocks: to look
        at each took a third of the time of sums of events that come evenly."""
        if reach not in self._steps:
            far, near = (self._in_step(reach, back, self.first, self.last) for back in (reach.far, reach.near))
            self._steps[reach] = far, near
        left, right = self._steps[reach]
        if left >= 0 and right >= 0:
            return left + first - self.first, right + first - self.first
        return self._in_step(reach, reach.far, first, last), self._in_step(reach, reach.near, first, last)

    def _in_step(self, reach: Reach, back: int, first: int, last: int) -> int:
        """Which request's `end` is the first of these edges, if they go on by a row with each request; else negative.

        By time they do where events come evenly, both where the requests are and where the edges are: as many rows
        are passed as there are requests, so one with every step.
        """
        if (back == 0 and not (reach.peers and reach.by_time)) or not reach.by_time:
            return first - back if first - back + last - first <= self.requests.count else -1
        uneven = self.requests.uneven if reach.since is None else None
        if uneven is None or uneven[first] != uneven[last - 1] or back > LATEST:
            return -1
        a, b = (int(self._edge(reach, back, at, at + 1, "lo")[0]) for at in (first, last - 1))
        in_step = b - a == last - 1 - first and b < uneven.size and uneven[a] == uneven[b]
        return a - 1 if in_step else -1

    def _edge(self, reach: Reach, back: int | None, first: int, last: int, name: str) -> np.ndarray:
        """back: None is where the period of a calendar begins."""
        if name not in self.made:
            self.made[name] = np.empty(BLOCK, np.int64)
        out, requests = self.made[name][: last - first], self.requests
        if back == 0 and requests.each_event and reach.by_time and name == "hi":
            edges.peers(self.timeline.ts, requests.runs, first, out)
        elif back is None:
            assert reach.since is not None
            edges.by_time(self.timeline, requests.runs, requests.before[reach.since], 0, first, out)
        elif reach.by_time and -LATEST <= back <= LATEST:
            edges.by_time(self.timeline, requests.runs, requests.now, back, first, out)
        else:  # by rows; or further away than any two timestamps lie apart
            most = LATEST >> 1  # rows that nobody has
            back = min(max(back, -most), most)
            edges.by_rows(self.timeline.segments, requests.runs, requests.end, back, first, out)
        return out

    def seen(self, reach: Reach) -> tuple[int, int]:
        """The rows, from … to, that a window sees from this chunk."""
        if reach not in self._seen:
            oldest = int(self.block(reach, self.first, self.first + 1).lo[0])
            self._seen[reach] = oldest, int(self.block(reach, self.last - 1, self.last).hi[0])
        return self._seen[reach]

    def seen_by(self, reaches: Iterable[Reach]) -> tuple[int, int]:
        """The rows, from … to, that any of these windows sees."""
        oldest, newest = zip(*map(self.seen, reaches), strict=True)
        return min(oldest), max(newest)
