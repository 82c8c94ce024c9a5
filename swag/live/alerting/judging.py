"""Rules as alerts look at them: does a key pass, until when is that certain, and when did it begin.

SimpleRules     one aggregate of the same rows, numbers against numbers: all rules of a key in one kernel call
ComposedRules   everything else: expressions, text against text …; each a query of its own, looked at more often
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.key_filters import watching
from kernels.key_filters.watching import DELAYED, ENTERING, GAINING, GENERAL, LOSING, NEVER, Judged, SeenPairs
from kernels.operators.numbers import LATEST
from kernels.rings import moves
from kernels.rings.pairs import PairWindows, taken
from kernels.rings.timeline import HEAD, TAIL
from swag.live import window_edges
from swag.live.alerting.watch import SIDE_BITS, Watch, WatchedPairs
from swag.live.grouping import Grouping
from swag.live.indexing.bounds import Bounds, bounds_of, carrier
from swag.live.indexing.rules import windows_of
from swag.live.store import EVERY_EVENT, Store
from swag.live.window_edges import Edges
from swag.query.kind import KINDS
from swag.query.lowering import components, lower
from swag.query.query import Query
from swag.query.windows import reach

CLOSE = 1e-9  # float sums this near to a threshold may be on either side of it, by how they were added up
STEPS = 4  # of a bisection
SIDES = 1 << SIDE_BITS


class Found(NamedTuple):
    """What a look at some keys has found: pairs that changed, or are to be watched (side), or both."""

    pairs: WatchedPairs
    side: np.ndarray
    flipped: np.ndarray


def joined(one: Found, other: Found) -> Found:
    rule, key = (np.concatenate(both) for both in zip(one.pairs, other.pairs, strict=True))
    return Found(WatchedPairs(rule, key), *(np.concatenate([one[i], other[i]]) for i in (1, 2)))


def is_watched(watch: Watch, pairs: WatchedPairs, side: np.ndarray) -> np.ndarray:
    """Which of these pairs are in the queue already, each from its side."""
    watched: np.ndarray = watch.flags(pairs) & (watching.WATCHED << side) > 0
    return watched


class KeysNow:
    """Some keys at one time. It owns where windows begin and end among their rows: each set of windows is searched for
    once, whatever the number of families that ask over it."""

    def __init__(self, store: Store, ids: np.ndarray, now: int) -> None:
        self.ids, self.now, self._store = ids, now, store
        self._edges: dict[bytes, Edges] = {}

    def edges(self, windows: PairWindows) -> Edges:
        """A row per key, a column per window."""
        lengths = np.stack(windows, axis=1, dtype=np.int64, casting="unsafe")
        of = lengths.tobytes()
        if of not in self._edges:
            lo, hi, _ = window_edges.edges(self._store, self.ids, lengths, self.now)
            self._edges[of] = lo, hi
        return self._edges[of]


class SimpleRules:
    """A family of rules. It owns their windows and bounds, and knows them by their numbers among all.

    Asked of it: to `look` at keys, to `judge` pairs, when these are `due`, how they stood at other times, answers.
    """

    def __init__(self, numbers: list[int], queries: list[Query], grouping: Grouping, grows: list[bool]) -> None:
        """grows: of each, no value that is summed is negative."""
        clock, route = grouping.store.clock, grouping.plan.routes[queries[0].label]
        assert clock is not None
        self._grouping, self._query = grouping, queries[0]
        self._counts = self._query.aggregate.kind == "count" and route.mask == route.presence == EVERY_EVENT
        windows = {reach(query.window, clock.unit): query for query in queries}
        in_order = sorted(windows, key=lambda each: (each.by_time, each.far, each.near))  # as in other families
        asked = {each: n for n, each in enumerate(in_order)}
        self._windows = windows_of([windows[each] for each in in_order], clock.unit)
        question = np.array([asked[reach(query.window, clock.unit)] for query in queries])
        order = np.argsort(question, kind="stable")
        self.numbers, self._question = np.array(numbers)[order], question[order]
        self._place = np.zeros(max(numbers) + 1, np.int64)
        self._place[self.numbers] = np.arange(order.size)
        bounds = bounds_of([queries[i].condition for i in order], carrier(route.type))  # type: ignore[misc]
        floats = self._query.aggregate.kind == "sum" and bounds.low.dtype == np.float64
        kinds = np.array([kind_of(queries[i], clock.unit, grows[i]) for i in order])
        outer = moved(bounds, CLOSE if floats else 0.0)
        begins = np.searchsorted(self._question, np.arange(len(asked) + 1))
        self._rules = Judged(
            begins, widest(outer, kinds, begins), kinds, self.numbers, *bounds,
            moved(bounds, -CLOSE if floats else 0.0), outer,
        )  # fmt: skip
        self._delayed = bool((kinds == DELAYED).any())

    def drifting(self, pairs: WatchedPairs) -> np.ndarray:
        """Which of these change with time, also while no event enters or leaves a window: none."""
        return np.zeros(0, np.int64)

    def windows(self, pairs: WatchedPairs) -> list[PairWindows]:
        """Those that events of the keys move through."""
        return [taken(self._windows, self._question[self._place[pairs.rule]])]

    @property
    def breadth(self) -> int:
        """How many answers a look at one key takes."""
        return int(self._windows.far.size)

    def look(self, keys: KeysNow, watch: Watch) -> Found:
        """All rules of the family for some keys, in one kernel call; again, if it found more than there is room for."""
        ids, room = keys.ids, max(1024, 4 * keys.ids.size)
        seen = self._seen(ids, keys.edges(self._windows))
        while True:
            out = np.empty((3, room), np.int64)
            n = watching.look(ids, watch.rows, watch.bits, seen, self._rules, tuple(out))
            if n <= room:
                key, rule, what = out[:, :n]
                flipped = what >= watching.FLIPPED
                return Found(WatchedPairs(self.numbers[rule], ids[key]), what & (watching.FLIPPED - 1), flipped)
            room = n

    def judge(self, pairs: WatchedPairs, instants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which pass, at one time or each at its own, and the side from which each is to be watched."""
        rule = self._place[pairs.rule]
        lo, hi = self._edges(pairs, instants)
        seen = self._seen(pairs.key, (lo[:, None], hi[:, None]))
        passes, side = np.empty(rule.size, bool), np.empty(rule.size, np.int64)
        watching.judge_each(rule, seen, self._rules, passes, side)
        return passes, side

    def _edges(self, pairs: WatchedPairs, instants: np.ndarray) -> Edges:
        return window_edges.edges_of_pairs(self._grouping.store, pairs.key, self.windows(pairs)[0], instants)

    def _seen(self, ids: np.ndarray, edges: Edges) -> SeenPairs:
        values, there = self._numbers(ids, edges)
        reached = edges[0] < self._grouping.store.main.arena.rings[ids, TAIL][:, None]
        return SeenPairs(values.reshape(-1), there.reshape(-1), reached.reshape(-1))

    def _numbers(self, ids: np.ndarray, edges: Edges) -> tuple[np.ndarray, np.ndarray]:
        values, there = self._grouping.lookups.numbers(self._query, ids, edges)
        return values.astype(self._rules.low.dtype, copy=False), there

    def unwatched(self, found: Found, watch: Watch) -> tuple[WatchedPairs, np.ndarray]:
        """From which sides pairs are to be watched, and are not yet. Into windows that end in the past events enter
        some time after they came, which may be sooner than the next one leaves: these are watched at both edges."""
        pairs, side, _ = found
        if self._delayed:
            delayed = self._rules.kind[self._place[pairs.rule]] == DELAYED
            entering = np.flatnonzero(delayed & (side != watching.NOT_WATCHED))
            pairs, side, _ = joined(
                found, Found(pairs.chosen(entering), np.full(entering.size, ENTERING), entering < 0)
            )
        new = np.flatnonzero((side != watching.NOT_WATCHED) & ~is_watched(watch, pairs, side))
        return pairs.chosen(new), side[new]

    def due(self, pairs: WatchedPairs, side: np.ndarray, now: int) -> np.ndarray:
        """Until then they certainly stay as they are if no event comes; those watched at an edge, as far as events pass
        that one, whatever comes."""
        windows, due = self.windows(pairs)[0], np.empty(side.size, np.int64)
        some, others = np.flatnonzero(side < watching.UNCHANGED), np.flatnonzero(side >= watching.UNCHANGED)
        due[some] = self._certain(pairs.chosen(some), taken(windows, some), side[some], now)
        length = np.where(side == ENTERING, windows.near, windows.far)
        due[others] = moving(self._grouping, pairs.key[others], length[others], now)
        return due

    def _certain(self, pairs: WatchedPairs, windows: PairWindows, side: np.ndarray, now: int) -> np.ndarray:
        """When the event leaves with which a pair may change: of the windows that events leave, a bisection."""
        store, rule = self._grouping.store, self._place[pairs.rule]
        first, end = window_edges.edges_of_pairs(store, pairs.key, windows, np.array([now]))
        if self._counts:
            first = self._last_sure_count(rule, side, first, end)
        else:
            first = self._bisected(rule, side, pairs.key, (first, end))
        ts = window_edges.times(store, pairs.key, first)
        return np.where(ts > LATEST - windows.far, LATEST, ts + windows.far)  # where it would wrap it is not taken

    def _last_sure_count(self, rule: np.ndarray, side: np.ndarray, first: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The last position from which on there are as many rows as it takes."""
        losing = self._rules.kind[rule] == LOSING
        most = np.where(side == watching.PASSES, 0, self._rules.high[rule])
        least = np.where(losing, self._rules.low[rule], most + 1)
        return np.maximum(first, end - np.clip(least, 1, end - first))

    def _bisected(self, rule: np.ndarray, side: np.ndarray, keys: np.ndarray, edges: Any) -> np.ndarray:
        """A position from which on it is certainly unchanged, nearly the last one: what is due too early is looked at
        again, and STEPS are cheaper than to find the very last."""
        first, end = edges
        last = end.copy()
        for _ in range(STEPS):
            middle = np.maximum(np.minimum((first + last + 1) >> 1, last - 1), first)
            if (middle <= first).all():
                break
            values, there = (each.reshape(-1) for each in self._numbers(keys, (middle[:, None], end[:, None])))
            watching.narrow(rule, side, SeenPairs(values, there, there), self._rules, (first, last, middle))
        return first

    def answers(self, pairs: WatchedPairs, now: int) -> tuple[pa.Array, np.ndarray]:
        """And which of them have an event in the window."""
        windows = self.windows(pairs)[0]
        return self._grouping.lookups.of_pairs(self._query, pairs.key, windows, np.array([now]))


class ComposedRules:
    """Rules that are queries of their own. It owns their windows; asked of it is what is asked of SimpleRules.

    A rule may have several windows, and each edge is a side of its own: an event that comes may pass a near one sooner
    than those before it pass one that is further back. Of more edges than there are sides, the last ones share one;
    from that, a pair may be in the queue a few times for each of its events.
    """

    def __init__(
        self, numbers: list[int], queries: list[Query], grouping: Grouping, answer: Callable[..., Any], each: Any
    ) -> None:
        """answer, each: those of the core, at one time and at the time of each."""
        self._grouping, self._answer, self._each = grouping, answer, each
        self.numbers, self._queries = np.array(numbers), dict(zip(numbers, queries, strict=True))
        clock = grouping.store.clock
        assert clock is not None
        own = [windows_of(list(components(query)), clock.unit) for query in queries]
        self._count = max(each.far.size for each in own)
        # All rules have as many windows: where one has fewer, its last one stands for the others.
        own = [taken(each, np.minimum(np.arange(self._count), each.far.size - 1)) for each in own]
        self._windows = PairWindows(*(np.stack([each[i] for each in own]) for i in range(3)))
        self._place = np.zeros(max(numbers) + 1, np.int64)
        self._place[self.numbers] = np.arange(self.numbers.size)
        self._drifts = np.array([any(KINDS[each.aggregate.kind].timed for each in components(q)) for q in queries])
        edges = [
            np.ones(1, np.int64) if drifts else edges_of(each) for each, drifts in zip(own, self._drifts, strict=True)
        ]
        most = max(each.size for each in edges)
        self._edges = np.array([np.append(each, np.full(most - each.size, LATEST)) for each in edges], np.int64)

    def drifting(self, pairs: WatchedPairs) -> np.ndarray:
        """Which of these change with time, also while no event enters or leaves a window."""
        return np.flatnonzero(self._drifts[self._place[pairs.rule]])

    def windows(self, pairs: WatchedPairs) -> list[PairWindows]:
        place = self._place[pairs.rule]
        return [
            PairWindows(*(np.ascontiguousarray(each[place, i]) for each in self._windows)) for i in range(self._count)
        ]

    @property
    def breadth(self) -> int:
        return int(self.numbers.size)

    def look(self, keys: KeysNow, watch: Watch) -> Found:
        """All rules for some keys, answered by the core; found is what flipped, or is to be watched."""
        _, passes = self._answer(list(self._queries.values()), keys.ids, keys.now)
        pairs = WatchedPairs(np.tile(self.numbers, keys.ids.size), np.repeat(keys.ids, self.numbers.size))
        flipped = passes.reshape(-1) != (watch.flags(pairs) & watching.PASSING > 0)
        side = self._side(pairs)
        of_interest = np.flatnonzero(flipped | (side != watching.NOT_WATCHED))
        return Found(pairs.chosen(of_interest), side[of_interest], flipped[of_interest])

    def _side(self, pairs: WatchedPairs) -> np.ndarray:
        rings = self._grouping.store.main.arena.rings
        kept = rings[pairs.key, TAIL] > rings[pairs.key, HEAD]
        return np.where(kept, watching.UNCHANGED, watching.NOT_WATCHED)

    def judge(self, pairs: WatchedPairs, instants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        passes = np.zeros(pairs.key.size, bool)
        instants = np.broadcast_to(instants, pairs.key.shape)
        for rule in np.unique(pairs.rule).tolist():
            some = np.flatnonzero(pairs.rule == rule)
            _, present = self._each([self._queries[rule]], pairs.key[some], np.ascontiguousarray(instants[some]))
            passes[some] = present[:, 0]
        return passes, self._side(pairs)

    def unwatched(self, found: Found, watch: Watch) -> tuple[WatchedPairs, np.ndarray]:
        edges = self._edges[self._place[found.pairs.rule]] < LATEST
        which, side = np.nonzero(edges[:, :SIDES] & (found.side != watching.NOT_WATCHED)[:, None])
        pairs = found.pairs.chosen(which)
        watched = is_watched(watch, pairs, side)
        if edges.shape[1] > SIDES:  # it may be watched for another one of the edges that share a side
            watched &= ~edges[which, SIDES] | (side < SIDES - 1)
        return pairs.chosen(np.flatnonzero(~watched)), side[~watched]

    def due(self, pairs: WatchedPairs, side: np.ndarray, now: int) -> np.ndarray:
        place = self._place[pairs.rule]
        due = moving(self._grouping, pairs.key, self._edges[place, side], now)
        for further in self._edges[:, SIDES:].T:
            own = np.flatnonzero((side == SIDES - 1) & (further[place] < LATEST))
            due[own] = np.minimum(due[own], moving(self._grouping, pairs.key[own], further[place[own]], now))
        due[self.drifting(pairs)] = min(now + 1, LATEST)
        return due

    def answers(self, pairs: WatchedPairs, now: int) -> tuple[pa.Array, np.ndarray]:
        """One rule at a time: each may have a type of its own."""
        (rule,) = np.unique(pairs.rule).tolist()
        query = self._queries[rule]
        columns, _ = self._answer([query], pairs.key, now)
        there = [query] if query.is_simple else list(lower(query).presence)
        clock = self._grouping.store.clock
        assert clock is not None
        present = np.zeros(pairs.key.size, bool)
        for each in there:
            windows = taken(windows_of([each], clock.unit), np.zeros(pairs.key.size, np.int64))
            present |= self._grouping.lookups.of_pairs(each, pairs.key, windows, np.array([now]))[1]
        return columns[0], present


def kind_of(query: Query, unit: str | None, grows: bool) -> int:
    """What events that leave its window can do to a rule."""
    window, op = reach(query.window, unit), query.having[0]
    if not window.by_time:
        return NEVER
    if window.near > 0:
        return DELAYED
    if op == "between":
        return GENERAL
    kind = query.aggregate.kind
    if kind in ("count", "max") or (kind == "sum" and grows):
        return LOSING if op in (">", ">=") else GAINING
    if kind == "min":
        return LOSING if op in ("<", "<=") else GAINING
    return GENERAL


def moved(bounds: Bounds, margin: float) -> np.ndarray:
    """Bounds further out by a part of themselves, or further in."""
    if margin == 0:
        return np.array(bounds)
    finite = np.isfinite(bounds)
    by = np.where(finite, np.abs(np.where(finite, bounds, 0)) * margin, 0)
    with np.errstate(over="ignore"):
        return np.array([bounds.low - by[0], bounds.high + by[1]])


def widest(outer: np.ndarray, kinds: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """By question, the answers that interest any of its rules where nothing was seen of a key yet."""
    floats = outer.dtype.kind == "f"
    least, most = (-np.inf, np.inf) if floats else (np.iinfo(outer.dtype).min, np.iinfo(outer.dtype).max)
    low = np.where(kinds == LOSING, outer[0], least)
    high = np.where(kinds == LOSING, outer[1], most)
    return np.array([np.minimum.reduceat(low, begins[:-1]), np.maximum.reduceat(high, begins[:-1])])


def edges_of(windows: PairWindows) -> np.ndarray:
    """How long ago the edges of windows are that events pass some time after they came, each once, in order."""
    lengths = np.unique(np.concatenate([windows.far[windows.by_time], windows.near[windows.by_time]]))
    return lengths[lengths > 0]


def moving(grouping: Grouping, keys: np.ndarray, lengths: np.ndarray, now: int) -> np.ndarray:
    """When the next event of each passes an edge that is so long ago."""
    due = np.empty(keys.size, np.int64)
    moves.next_move(grouping.store.main.arena.rings, grouping.store.ts.data, keys, now, lengths, due)
    return due
