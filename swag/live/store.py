"""The rows kept of a grouping: keys, the spaces and their raw columns, and for how long. Knows nothing of queries."""

from collections.abc import Iterable
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings import substreams, timeline
from kernels.rings.timeline import TAIL
from swag.durable.state import State, nested, part, parts, types_from_array, types_to_array, with_arrays
from swag.errors import OutOfOrder
from swag.live.arena import Batch, NewRows, group
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.filtered.substreams import Substreams
from swag.live.space import Mask, Space, values_of
from swag.live.time import Retention, Time
from swag.live.vocabulary.dictionary import Dictionary
from swag.query.windows import Depth
from swag.tables.columns import Clock, Field
from swag.tables.keys import KeyTable

EVERY_EVENT = Mask()
MANY_KEYS = 1024  # fewer are remembered for ever: they take little memory, and a late event of theirs is told apart
LARGE_STORE = 1 << 14  # keys
LEFT_UNTIDIED = 8  # that are taken before keys are looked after


class WordHolder(Protocol):
    """Who keeps columns by the numbers of their words."""

    def words(self) -> Iterable[Any]:
        """Columns by name, as the `raw` of spaces."""


class Store:
    """The rows of a grouping. It owns its keys, what is kept of each of their rows, and when rows go.

    Asked of it: to take a batch (`grouped`, then `append`), the positions of windows (`edges`, `edges_each`), and to
    let go of what nothing reaches (`tidy`). time, dictionary: those of the stream. keeps_own_time: `now` is another for
    each key, that of its latest row.
    """

    def __init__(self, keyed: bool, time: Time, dictionary: Dictionary, keeps_own_time: bool = False) -> None:
        self.keyed, self.time, self.dictionary, self.keeps_own_time = keyed, time, dictionary, keeps_own_time
        self.keys: KeyTable | None = None
        self.owns_keys = True  # else they are those of the stream around, which hands them over itself
        self.main = Space(EVERY_EVENT)
        self.spaces: dict[Mask, Space] = {EVERY_EVENT: self.main}
        self.families: list[Substreams] = []  # those of filters
        self.ranked: list[Space] = []  # those of columns with nulls, and of queries that came later
        self.ts = self.main.arena.allocate(np.int64)
        self.latest = np.zeros(0, np.int64)  # per key: the newest timestamp taken
        self.lost = np.zeros(0, np.int64)  # per key: the newest timestamp no longer kept
        self.seen = np.zeros(0, np.int64)  # scratch of `group`
        self.events = 0
        self.retention = Retention()
        self.rearranged: set[Mask] = set()  # spaces whose rows do not lie as in the state that was restored
        self.forgotten = EARLIEST  # the newest timestamp of a key that is no longer known
        self.word_holders: WeakSet[WordHolder] = WeakSet()  # who else keeps numbers of words; they refer to this
        self._next_to_tidy = 0
        self._untidied, self._batches = 0, 0  # rows that came since keys were last looked after, in how many batches
        self._known = 0  # keys, when some were last looked after
        self.emptied = 0  # keys that had rows once, and none when last looked at: about as many can be forgotten
        self._looked = EARLIEST  # the time when keys were last looked for that can be forgotten

    @property
    def clock(self) -> Clock | None:
        return self.time.clock

    @property
    def now(self) -> int:
        return self.time.now

    @property
    def types(self) -> dict[str, pa.DataType]:
        return self.dictionary.types

    @property
    def key_count(self) -> int:
        if not self.keyed:
            return 1 if self.clock is not None else 0
        return self.keys.count if self.keys is not None else 0

    def space(self, mask: Mask) -> Space:
        """The space that the rows of a mask lie in, from now on if there was none."""
        home = mask.home
        if home not in self.spaces:
            self.put(home, self._made(home))
            if not isinstance(self.spaces[home], Substreams):
                self.spaces[home].arena.add_keys(self.main.arena.rings.shape[0])
        space = self.spaces[home]
        if isinstance(space, Substreams):
            assert mask.where is not None
            space.add(mask.where)
        return space

    def _made(self, home: Mask) -> Space:
        return Space(home, self.main) if home.where is None else Substreams(home, self.main)

    def find(self, mask: Mask) -> Space | None:
        """The space that holds the rows of a mask, if one does."""
        space = self.spaces.get(mask.home)
        return None if isinstance(space, Substreams) and mask.where not in space.filters else space

    def put(self, home: Mask, space: Space) -> None:
        """The rows of this mask lie in a space from now on."""
        self.spaces[home] = space
        self._sort_spaces()

    def drop(self, home: Mask) -> None:
        """Nobody needs a space any more."""
        space = self.spaces.pop(home)
        if space.rank is not None:
            self.main.arena.release([space.rank])
        self._sort_spaces()

    def _sort_spaces(self) -> None:
        """Which of them are what: a batch need not look."""
        others = [space for space in self.spaces.values() if space is not self.main]
        self.families = [space for space in others if isinstance(space, Substreams)]
        self.ranked = [space for space in others if not isinstance(space, Substreams)]

    @property
    def horizons(self) -> np.ndarray:
        """Rows at or before this time are in no time window that ends now (one for all keys, or for each its own)."""
        if not self.retention.depth.time:
            return np.array([LATEST])
        now = self.latest if self.keeps_own_time else np.array([min(self.now, self.since)])
        far = min(self.retention.depth.time, int(LATEST))
        return np.where(now < EARLIEST + far, EARLIEST, now - far)

    @property
    def since(self) -> int:
        """Windows that end at this time, or later, are still to be asked for, and rows put in between theirs."""
        asked, lateness = self.retention.since, self.time.lateness
        return asked if lateness is None else min(asked, max(EARLIEST, self.now - lateness))

    def grow_keys(self) -> None:
        """Room for what is kept per key, for all keys there are."""
        count, arena = self.key_count, self.main.arena
        if count > self.latest.size or count > arena.rings.shape[0]:
            self._grow(count)
            arena.add_keys(count)
            for space in self.ranked:
                space.arena.add_keys(arena.rings.shape[0])

    def _grow(self, count: int) -> None:
        known = self.latest.size
        if count > known:
            more = max(count, 2 * known if self.keyed else 1) - known
            self.latest = np.concatenate([self.latest, np.full(more, EARLIEST)])
            self.lost = np.concatenate([self.lost, np.full(more, self.forgotten)])
            self.seen = np.concatenate([self.seen, np.zeros(more, np.int64)])

    def grouped(self, rows: CheckedRows) -> Batch:
        """The batch by key, in order; raises, and forgets its new keys, if an event is older than its key's latest.
        Where late rows are put into their place, each run is brought in order."""
        batch = group(rows.ids, self.seen)
        if rows.ts.size == 1:  # what kernels do with many rows takes a tenth of the time of calling them for one
            bad = -int(rows.ts[0] >= self.latest[rows.ids[0]])
        else:
            bad = timeline.first_disorder(rows.ts, tuple(batch), self.latest)
        if bad >= 0 and self.time.lateness is not None:
            return self._by_key_and_time(rows)
        if self.time.closed > EARLIEST:
            early = np.flatnonzero(rows.ts <= self.time.closed)[:1]
            bad = min((row for row in (bad, *early) if row >= 0), default=-1)
        if bad >= 0:
            raise self._disorder(rows, int(bad))
        return batch

    def _by_key_and_time(self, rows: CheckedRows) -> Batch:
        """Tried: a kernel that sorts only the rows that are behind. It won a tenth of an append, and took seconds to
        compile."""
        by_time = np.argsort(rows.ts, kind="stable")
        batch = group(rows.ids[by_time], self.seen)
        return Batch(by_time[batch.order], batch.keys, batch.starts)

    def _disorder(self, rows: CheckedRows, row: int) -> OutOfOrder:
        """The error for a row that is older than what was applied of its key, or promised; the hint takes the batch."""
        assert self.clock is not None
        same_key = rows.ids[:row] == rows.ids[row]
        applied = max(int(self.latest[rows.ids[row]]), int(rows.ts[:row][same_key].max(initial=EARLIEST)))
        before = max(applied, self.time.promised)
        gap = self._lateness(rows.ts)
        late = f'"{gap}{self.clock.unit}"' if self.clock.unit not in (None, "d") else str(gap)
        return OutOfOrder(
            f"event {row} has ts {self.clock.show(int(rows.ts[row]))}, after ts {self.clock.show(before)} was applied.",
            f"sort the batch, or Engine(lateness={late})",
        )

    def _lateness(self, ts: np.ndarray) -> int:
        """How late rows are at most: behind the latest of all keys, as the watermark is."""
        known = np.int64(min(max(self.time.now, self.time.promised), LATEST))
        latest = np.maximum(np.maximum.accumulate(ts), known)
        return int((latest.view(np.uint64) - ts.view(np.uint64)).max())

    def append(self, rows: CheckedRows, batch: Batch) -> dict[Mask, NewRows]:
        """Take a batch that was checked. Returns the runs to bring the structures of spaces up to date with."""
        self.events += rows.ts.size
        counts, main = batch.counts, self.main.arena
        runs = {EVERY_EVENT: NewRows(batch.keys, counts, rows.ts.size)}
        if self.keeps_none:
            timeline.pass_times(rows.ts, tuple(batch), main.rings, self.latest, self.lost)
            if self.latest.size >= MANY_KEYS:
                self.emptied += batch.keys.size
            return runs
        main.make_room(batch.keys, counts, self.expire)
        slots = np.empty(rows.ts.size, np.int64)
        if slots.size == 1:
            key, slots[0] = batch.keys[0], main.take_slot(batch.keys[0])
            self.ts.data[slots[0]] = self.latest[key] = rows.ts[0]
        else:
            timeline.take_times(rows.ts, tuple(batch), main.rings, self.ts.data, self.latest, slots)
        self._write(self.main, rows.fields, batch.order, slots)
        for space in self.ranked:
            runs[space.mask] = self._append_masked(space, rows, batch, slots)
        return runs | self._append_filtered(rows, batch) if self.families else runs

    @property
    def keeps_none(self) -> bool:
        """Does nobody ask for rows, and are there none? So it is where all queries are over frames, or unbounded."""
        kept, depth = self.retention, self.retention.depth
        asked = depth.time or depth.rows or kept.everything or kept.since < LATEST or self.time.lateness is not None
        return not asked and not self.main.raw and len(self.spaces) == 1 and self.ts.data.size == 0

    def _append_filtered(self, rows: CheckedRows, batch: Batch) -> dict[Mask, NewRows]:
        """The same of the rows that filters let pass: runs of substreams, of spaces that got any."""
        runs, positions = {}, np.empty(rows.ts.size, np.int64)
        substreams.positions_of(tuple(batch), self.main.arena.rings, positions)
        for space in self.families:
            own = self.filtered(space, rows, batch, positions)
            self._write(space, rows.fields, own.order, space.write(own, positions))
            runs[space.mask] = NewRows(own.keys, own.counts, own.order.size)
        return runs

    def filtered(self, space: Substreams, rows: CheckedRows, batch: Batch, positions: np.ndarray) -> Batch:
        """The rows of a batch that filters let pass, by substream, in order of their positions; there is room for
        them. Where rows may be late those of a batch need not come in that order."""
        if space.only is not None:
            counted = rows.chosen[space.only]
            assert counted is not None
            return space.take_of_one(batch, counted)
        chosen, which = rows.chosen.of_filters(space)
        if self.time.lateness is not None:
            order = np.argsort(positions[chosen], kind="stable")
            chosen, which = chosen[order], which[order]
        return space.take(chosen, which, rows.ids)

    def _append_masked(self, space: Space, rows: CheckedRows, batch: Batch, slots: np.ndarray) -> NewRows:
        """Of a batch, the rows that count in a space of some; every row of the main space gets its rank there."""
        chosen = rows.chosen[space.mask]
        counted = np.ones(rows.ts.size, np.bool_) if chosen is None else chosen
        assert space.rank is not None
        timeline.take_ranks(counted, tuple(batch), space.arena.rings, slots, space.rank.data)
        own = batch.only(counted)
        space.arena.make_room(own.keys, own.counts, space.expire_with_parent)
        self._write(space, rows.fields, own.order, space.arena.take_slots(own))
        return NewRows(own.keys, own.counts, own.order.size)

    def _write(self, space: Space, fields: dict[str, Field], order: np.ndarray, slots: np.ndarray) -> None:
        for name, column in space.raw.items():
            values = fields[name].values if name in fields else values_of(name, fields)
            if slots.size == 1:
                column.data[slots[0]] = values[order[0]]
            else:
                timeline.scatter(values, order, slots, column.data)

    def expire(self, keys: np.ndarray, coming: np.ndarray) -> None:
        """Rows of the main space that no window reaches go. coming: so many more of each key are about to be taken."""
        if self.retention.everything:
            return
        rings = self.main.arena.rings
        if self.since < LATEST:  # rows after it push none out of a window by rows
            seen = np.empty(keys.size, np.int64)
            timeline.seen_at(rings, self.ts.data, keys, np.full(keys.size, self.since), seen)
            coming = np.minimum(coming, seen - rings[keys, TAIL])
        timeline.expire(rings, self.ts.data, self.lost, keys, coming, self.horizons, self.retention.depth.rows)

    def tidy(self, rows: int) -> set[str]:
        """After a batch of so many rows: look after some more keys, in turn, so that none holds memory for ever.
        Returns the columns whose values the dictionary has numbered anew.

        Every key is looked at within 64 batches, or a few more where these are small. Of keys that come and go, two
        are looked at for each that comes, so that those that are gone can not outnumber the others whatever the churn.
        """
        self._untidied, self._batches = self._untidied + rows, self._batches + 1
        if 0 < self._untidied < LEFT_UNTIDIED:
            return set()  # to look after some keys takes a tenth of appending one row
        rows, batches, self._untidied, self._batches = self._untidied, self._batches, 0, 0
        renumbered: set[str] = set()
        if self.dictionary.tables:
            renumbered = self.dictionary.tidy(self._spaces_and_others)
        count = self.key_count
        if count == 0 or self.retention.everything or self.keeps_none:
            return renumbered
        new, self._known = max(0, count - self._known), count
        some = min(count, max(16 * batches + rows // 8 + 2 * new, count * batches >> 6))
        keys = (self._next_to_tidy + np.arange(some)) % count
        self._next_to_tidy = (self._next_to_tidy + some) % count
        self.tidy_keys(keys)
        for space in self.families:
            space.tidy(rows)
        return renumbered

    @property
    def _spaces_and_others(self) -> list[Any]:
        """Whoever keeps numbers of words."""
        return [*self.spaces.values(), *(words for each in self.word_holders for words in each.words())]

    def numbers_of(self, name: str) -> list[np.ndarray]:
        """Wherever numbers of the words of a column are kept."""
        return [each.raw[name].data for each in self._spaces_and_others if name in each.raw]

    def tidy_keys(self, keys: np.ndarray) -> None:
        """Let go of what these no longer need, where that is most of what they have."""
        found = np.empty(keys.size, np.int64)
        rings = self.main.arena.rings
        keys = found[: timeline.wasteful(rings, self.ts.data, keys, self.horizons, self.retention.depth.rows, found)]
        if keys.size:
            self._expire_all(keys)

    def tidy_all(self) -> None:
        """Let go of all that no window can reach, at once."""
        if self.key_count and not self.retention.everything:
            self._expire_all(np.flatnonzero(self.main.arena.kept(self.key_count)))
            for space in self.families:
                space.tidy_all()

    def _expire_all(self, keys: np.ndarray) -> None:
        self.main.arena.tidy(keys, self.expire)
        for space in self.ranked:
            space.arena.tidy(keys, space.expire_with_parent)
        self.emptied += int(np.count_nonzero(self.main.arena.kept(self.key_count)[keys] == 0))

    # -- keys that come and go ----------------------------------------------------------------------------------------

    def forgettable(self) -> np.ndarray | None:
        """The keys without rows, as a mask, if they are so many that it pays to number the others anew; else None.

        They are counted as they lose their rows, and only looked for once they may be half of all. Where no rows are
        kept at all, keys without events since the last look are: one that was seen is taken for one that will be seen
        again, and to forget it would be to number it anew for ever.
        """
        count, none = self.key_count, self.keeps_none
        least = 0.5 if not none else 0.25 if count < LARGE_STORE else 0.4  # of many, most are seen again before that
        if not self.keyed or self.retention.everything or count < MANY_KEYS or self.emptied < least * count:
            return None
        empty = self.latest[:count] <= self._looked if none else self.main.arena.kept(count) == 0
        many = int(np.count_nonzero(empty))
        self.emptied, self._looked = 0 if none else many, self.now
        return empty if 2 * many >= count else None

    def renumber(self, kept: np.ndarray) -> dict[Mask, np.ndarray]:
        """Key kept[i] is key i from now on, the others are forgotten. Whoever owns the table of keys renumbers that.

        Returns the same for the rings of every space.
        """
        self._grow(int(kept.max(initial=-1)) + 1)
        gone = np.ones(self.lost.size, bool)
        gone[kept] = False
        self.forgotten = max(self.forgotten, int(self.lost[gone].max(initial=EARLIEST)))
        self.latest, self.lost, self.seen = self.latest[kept], self.lost[kept], np.zeros(kept.size, np.int64)
        for space in (self.main, *self.ranked):
            space.arena.renumber(kept)
        self._next_to_tidy, self.emptied, self._known = 0, 0, kept.size
        own = {space.mask: space.renumber(kept) for space in self.families}
        return {mask: own.get(mask, kept) for mask in self.spaces}

    @property
    def bytes(self) -> int:
        keys = self.dictionary.bytes + (0 if self.keys is None else self.keys.bytes)
        return sum(space.bytes for space in self.spaces.values()) + 3 * self.latest.nbytes + keys

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """The rows kept: times, spaces, how far back, what is lost of each key; and the keys, if they are its own."""
        header = {
            "events": self.events, "forgotten": self.forgotten, "tidy": self._next_to_tidy,
            "rows": self.retention.depth.rows, "time": self.retention.depth.time or None,
        }  # fmt: skip
        spaces = [space.state() for space in self.spaces.values()]
        keys = self.keys if self.owns_keys else None
        whole = nested(header, {"spaces": spaces, "keys": None if keys is None else keys.state()})
        arrays = {"ts": self.ts.data, "latest": self.latest, "lost": self.lost}
        key_type = {} if keys is None else {"key type": types_to_array({"key": keys.type})}
        return with_arrays(whole, arrays | key_type)

    def restore(self, state: State) -> None:
        """Rows, keys and spaces that were handed over; of older versions, a space of one filter joins the others."""
        header, arrays = state
        self.events, self.forgotten, self._next_to_tidy = header["events"], header["forgotten"], header["tidy"]
        self.retention = Retention(Depth(header["time"] or 0, header["rows"]))
        self.latest, self.lost = arrays["latest"], arrays["lost"]
        self.seen = np.zeros(self.latest.size, np.int64)
        if header["keys"] is not None:
            self.keys = KeyTable(types_from_array(arrays["key type"])["key"])
            self.keys.restore(part(state, "keys"))
        self.ts.data = arrays["ts"]
        for saved in parts(state, "spaces"):
            mask = Mask.from_json(saved[0])
            if mask.where is not None and "filters" not in saved[0]:  # of a version that had a space for each of them
                self._restore_filter(mask, saved)
                continue
            if mask not in self.spaces:
                self.put(mask, self._made(mask))
            self.spaces[mask].restore(saved)

    def _restore_filter(self, mask: Mask, saved: State) -> None:
        """Into the space of its rows among others, and into one of its own, in case a user's functions are to read it.
        What nobody wants goes when queries are settled."""
        old = Space(mask, self.main)
        old.restore(saved)
        for each in (Mask(mask.where, mask.required, mask.since), mask.by_itself()):
            space = self.space(each)
            assert isinstance(space, Substreams)
            space.adopt(mask, old, self.key_count)
            self.rearranged.add(each.home)
        assert old.rank is not None
        self.main.arena.release([old.rank])
