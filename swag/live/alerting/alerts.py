"""Alerts: which (rule, key) have begun or ceased to pass since somebody was last told, and when.

    events, time --> keys that were touched, pairs whose time has come --> looked at: who changed, when to look again
                                                                           |
    told <-- net difference between what was told and what is seen now <---+

No key is looked at that neither got an event nor became due. What was seen is brought up to date when somebody asks,
and now and then in between, as rows from which it is told when something began are kept until then. Before the first
call nothing is kept, and nothing done.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.key_filters import watching
from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings.timeline import HEAD, TAIL
from swag.durable.state import State, nested, part, with_arrays
from swag.errors import SwagError
from swag.live.alerting.beginnings import began
from swag.live.alerting.judging import Found, KeysNow, SimpleRules, joined
from swag.live.alerting.rule_book import Judge, RuleBook
from swag.live.alerting.watch import KEY_BITS, Watch, WatchedPairs, pairs_of
from swag.live.grouping import Grouping
from swag.query.lowering import simple_ones
from swag.query.query import Query
from swag.query.windows import Since, Unbounded
from swag.tables.answers import ManyAnswers
from swag.tables.columns import to_arrow

LOOKED_AT = 1 << 20  # answers at a time
MANY_EVENTS = 1 << 16  # once so many have come, and the longest window has passed, they are looked at unasked
NONE = np.zeros(0, np.int64)


def is_followed(query: Query) -> bool:
    """Windows of the calendar let go of all their events at once, and of unbounded ones nobody knows the past: who
    passes such a rule is compared as a whole."""
    return not any(isinstance(each.window, Unbounded | Since) for each in simple_ones([query]))


class Alerts:
    """The filters of a grouping, as they change. It owns what was seen of each and told of it; events it reads.

    Asked of it: to follow queries, events and keys; what has changed (`changes`), and to note that it was told.
    """

    def __init__(self, grouping: Grouping, answer: Callable[..., Any], answer_each: Callable[..., Any]) -> None:
        """answer, answer_each: those of the core."""
        self._grouping = grouping
        self.active = False
        self._book = RuleBook(grouping, answer, answer_each)
        self._kinds: dict[int, int] = {}  # what was known of rules when they were last looked at; not of new ones
        self._failed: dict[int, SwagError] = {}  # rules that had no answer then, and why
        self._since = EARLIEST  # when everything was last looked at
        self._touched: list[np.ndarray] = []  # keys since then
        self._events = 0
        self._watch = Watch()
        self._changed = NONE, NONE  # pairs that may differ from what was told, and since when each is as it is
        self._telling: tuple[list[str], WatchedPairs] = [], WatchedPairs(NONE, NONE)

    # -- following ----------------------------------------------------------------------------------------------------

    def add(self, queries: Iterable[Query], now: int) -> None:
        if self.active and not self._book.rules:
            self._since = now
        self._book.add([query for query in queries if query.having is not None and is_followed(query)], now)
        if self.active:
            self.keep_rows()

    def follows(self, name: str) -> bool:
        """Is it one of those that change by events that come and leave one by one?"""
        return name in self._book.numbers

    def remove(self, name: str) -> None:
        """A query alerts no more: what was seen of its rule, and is still to be told of it, is forgotten."""
        number = self._book.remove(name)
        if number is not None:
            self._kinds = {each: kind for each, kind in self._kinds.items() if each != number}
            self._watch.forget_rule(number)
            code, ts = self._changed
            kept = pairs_of(code).rule != number
            self._changed = code[kept], ts[kept]
            if self.active:
                self.keep_rows()

    def follow(self, keys: np.ndarray, events: int) -> None:
        """These keys got so many events."""
        if not self.active or not self._book.rules:
            return
        self._touched.append(keys)
        self._events += events
        store = self._grouping.store
        if self._events > MANY_EVENTS and store.now - self._since > store.retention.depth.time:
            self.look()

    def look_again(self) -> None:
        """Events were put into the past: until when anything is certain is not known any more, and all keys are looked
        at the next time."""
        self._watch.empty()
        self._kinds = {}

    def needed(self, count: int) -> np.ndarray:
        """Which of the first so many keys can not be forgotten."""
        return self._watch.needed(count)

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""
        self._watch.renumber(kept)
        most = np.concatenate([kept, *self._touched, pairs_of(self._changed[0]).key]).max(initial=0)
        number = np.full(most + 1, -1)
        number[kept] = np.arange(kept.size)
        self._touched = [new[new >= 0] for new in (number[keys] for keys in self._touched)]
        code, ts = self._changed
        pairs = pairs_of(code)
        new = number[pairs.key]
        self._changed = (code - pairs.key + new)[new >= 0], ts[new >= 0]

    # -- looking ------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Bring what was seen up to date: of new rules all keys, else those that were touched or are due. Rules that
        have no answer (a sum that does not fit) are new ones the next time; whoever asks for them is told why."""
        store = self._grouping.store
        if store.clock is not None and self._book.rules:
            self._look()
        self._since, self._touched, self._events = int(store.now), [], 0
        self.keep_rows()

    def _look(self) -> None:
        """New rules at all keys that have rows, the others at keys that were touched and pairs that are due."""
        store, book = self._grouping.store, self._book
        book.follow()
        if self._kinds is not book.kinds:
            self._kinds = {n: kind for n, kind in self._kinds.items() if book.kinds[n] == kind}
        self._watch.add_keys(store.key_count)
        self._watch.add_rules(max(book.rules) + 1)
        self._failed = {}
        try:
            ready = self._watch.release(store.now)
            if new := [number for number in book.rules if number not in self._kinds]:
                rings = store.main.arena.rings[: store.key_count]
                keys = np.flatnonzero((rings[:, TAIL] > rings[:, HEAD]) | self._watch.needed(store.key_count))
                self._look_at_keys(book.judges_of(new), keys, WatchedPairs(NONE, NONE))
            if len(new) < len(book.rules):
                touched = np.unique(np.concatenate([NONE, *self._touched]))
                self._look_at_keys(book.judges, touched, _without(ready, touched))
        except Exception:
            self._kinds = {}  # what left the queue is found again by a look at all
            raise
        self._kinds = book.kinds
        if self._failed:
            self._kinds = {n: kind for n, kind in book.kinds.items() if n not in self._failed}

    def _look_at_keys(self, judges: list[Judge], keys: np.ndarray, ready: WatchedPairs) -> None:
        """At all rules of some keys, and at pairs of others that are ready."""
        store = self._grouping.store
        step = max(1, LOOKED_AT // max(judge.breadth for judge in judges))
        for begin in range(0, max(1, keys.size), step):
            some = KeysNow(store, keys[begin : begin + step], store.now)
            place = self._book.judge_of[ready.rule]
            for i, judge in enumerate(judges):
                self._try(judge, some, ready.chosen(np.flatnonzero(place == i)))
            ready = WatchedPairs(NONE, NONE)

    def _try(self, judge: Judge, keys: KeysNow, ready: WatchedPairs) -> None:
        """A look by one judge. A rule that has no answer is found by halves: the others are looked at all the same."""
        try:
            self._look_at(judge, keys, ready)
        except SwagError as why:
            numbers = judge.numbers
            if numbers.size == 1:
                self._failed[int(numbers[0])] = why
                return
            for half in (numbers[: numbers.size // 2], numbers[numbers.size // 2 :]):
                (part_of_it,) = self._book.judges_of(half.tolist())
                self._try(part_of_it, keys, ready.chosen(np.flatnonzero(np.isin(ready.rule, half))))

    def _look_at(self, judge: Judge, keys: KeysNow, ready: WatchedPairs) -> None:
        """By one judge: keys and pairs that are ready are judged, changes noted, and who is to be watched is queued."""
        passes, side = judge.judge(ready, np.array([keys.now]))
        changed = passes != (self._watch.flags(ready) & watching.PASSING > 0)
        found = joined(judge.look(keys, self._watch), Found(ready, side, changed))
        self._flip(judge, found.pairs.chosen(np.flatnonzero(found.flipped)))
        pairs, side = judge.unwatched(found, self._watch)
        self._watch.add(pairs, side, judge.due(pairs, side, keys.now))

    def _flip(self, judge: Judge, pairs: WatchedPairs) -> None:
        """These are otherwise than when last seen."""
        if not pairs.key.size:
            return
        passed = self._watch.flags(pairs) & watching.PASSING
        since = np.maximum(self._book.born_at[pairs.rule], self._since)
        try:
            ts = began(self._grouping, judge, pairs, passed == 0, since)
        except SwagError:
            if judge.numbers.size > 1:
                raise
            ts = np.full(since.size, self._grouping.store.now)  # it had no answer at some time before
        self._watch.mark(pairs, (passed == 0) * watching.PASSING, passed)
        code, before = self._changed
        self._changed = np.concatenate([code, pairs.code]), np.concatenate([before, ts])
        if self._changed[0].size > MANY_EVENTS:
            self._drop_what_is_as_told()

    def keep_rows(self) -> None:
        """Rows are kept from which it is told what happens from now on."""
        self.active = True
        self._grouping.store.retention = replace(
            self._grouping.store.retention, since=self._since if self._book.rules else int(LATEST)
        )

    # -- telling ------------------------------------------------------------------------------------------------------

    def changes(self, names: list[str]) -> ManyAnswers:
        """What is otherwise than was told, of these rules; nothing counts as told by that."""
        self.look()
        for why in (self._failed[number] for number in map(self._book.numbers.get, names) if number in self._failed):
            raise why
        clock = self._grouping.store.clock
        if clock is None or not names:
            return ManyAnswers(names, {}, NONE, self._keys(NONE), [], NONE, [pa.nulls(0)], [pa.nulls(0, pa.bool_())])
        pairs, ts = self._net(names)
        self._telling = names, pairs
        pieces = list(self._pieces(pairs))
        rows = np.concatenate([NONE, *(some for some, _ in pieces)])
        order = np.empty(rows.size, np.int64)
        order[rows] = np.arange(rows.size)
        asked = self._book.asked(names)
        passes = pa.array(self._watch.flags(pairs) & watching.PASSING > 0)
        values = [values for _, values in pieces]
        key = self._keys(pairs.key)
        when, which = to_arrow(ts, None, clock.type), asked.place[pairs.rule]
        return ManyAnswers(names, asked.kinds, which, key, values, order, [when], [passes])

    def _keys(self, ids: np.ndarray) -> pa.Array | None:
        store = self._grouping.store
        if not store.keyed:
            return None
        return pa.nulls(0) if store.keys is None else store.keys.column(ids)

    def tell(self, names: list[str]) -> None:
        """What `changes` gave was told."""
        pairs = self._telling[1] if self._telling[0] == names else WatchedPairs(NONE, NONE)
        passes = self._watch.flags(pairs) & watching.PASSING > 0
        self._watch.mark(pairs, passes * watching.TOLD, ~passes * watching.TOLD)
        self._telling = [], WatchedPairs(NONE, NONE)

    def _drop_what_is_as_told(self) -> None:
        """Of pairs that changed back and forth nothing is left."""
        code, ts = self._changed
        code, last = np.unique(code[::-1], return_index=True)
        pairs, ts = pairs_of(code), ts[::-1][last]
        flags = self._watch.flags(pairs)
        net = np.flatnonzero((flags & watching.PASSING > 0) != (flags & watching.TOLD > 0))
        self._changed = code[net], ts[net]

    def _net(self, names: list[str]) -> tuple[WatchedPairs, np.ndarray]:
        """Pairs of these rules that are otherwise than was told, in order of rules and keys, and since when."""
        self._drop_what_is_as_told()
        pairs, ts = pairs_of(self._changed[0]), self._changed[1]
        place = self._book.asked(names).place[pairs.rule]
        order = np.argsort(np.where(place < 0, LATEST, place << KEY_BITS | pairs.key))[: np.count_nonzero(place >= 0)]
        return pairs.chosen(order), ts[order]

    def _pieces(self, pairs: WatchedPairs) -> Iterator[tuple[np.ndarray, pa.Array]]:
        """The answers of pairs, null where a window is empty; and which of them they are of."""
        now = self._grouping.store.now
        for place, judge in enumerate(self._book.judges):
            some = np.flatnonzero(self._book.judge_of[pairs.rule] == place)
            alike = [some] if isinstance(judge, SimpleRules) else [some[pairs.rule[some] == n] for n in judge.numbers]
            for rows in alike:
                if rows.size:
                    values, present = judge.answers(pairs.chosen(rows), now)
                    if not present.all():
                        values = pc.if_else(pa.array(present), values, pa.scalar(None, values.type))
                    yield rows, values

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        return self._watch.bytes + sum(each.nbytes for each in (*self._touched, *self._changed))

    def state(self) -> State:
        header: dict[str, Any] = {
            "by_edge": True,
            "active": self.active,
            "rules": self._book.state(self._kinds),
            "since": int(self._since),
        }
        arrays = {"touched": np.concatenate([NONE, *self._touched]), "code": self._changed[0], "ts": self._changed[1]}
        return with_arrays(nested(header | {"events": self._events}, {"watch": self._watch.state()}), arrays)

    def restore(self, state: State) -> None:
        """Its rules have been added."""
        header, arrays = state
        self._kinds = self._book.restore(header["rules"])
        self._since, self._events = header["since"], header["events"]
        self._touched, self._changed = [arrays["touched"]], (arrays["code"], arrays["ts"])
        self._watch.restore(part(state, "watch"))
        if "by_edge" not in header:  # of before: a pair of several edges was in the queue for one of them
            self.look_again()
        if header["active"]:
            self.keep_rows()


def _without(pairs: WatchedPairs, keys: np.ndarray) -> WatchedPairs:
    """Those of other keys than these, which are in order."""
    at = np.minimum(np.searchsorted(keys, pairs.key), keys.size - 1)
    return pairs.chosen(np.flatnonzero(keys[at] != pairs.key)) if keys.size else pairs
