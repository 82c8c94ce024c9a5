"""The structures of a space: kernels with their state. All of them answer any window, of any of their queries.

A structure is made over the raw columns of a space, brought up to date by runs (keys, and how many rows each has just
got), and asked for windows as positions. Its state lies in the space's arena, so it moves when rings do.
"""

import math
from typing import Any

import numpy as np

from kernels.operators import monoids
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from kernels.windows import dyadic, landmark, running
from swag.durable.state import State, nested, own_arrays, part, parts, with_arrays
from swag.live.arena import Arena, Column, NewRows
from swag.live.space import Space
from swag.live.turns import require_alone
from swag.query.families import operator
from swag.query.kind import Part

Partials = Any  # an array, or a tuple of arrays


class Structure:
    """What all of them share: the operator, the raw columns, and the partials as columns of the space's arena.

    It owns its partials. Asked of it: to follow the rows (`update`), and the partials of windows (`lookup`).
    """

    name = ""
    update_cost = ""
    lookup_cost = ""

    def __init__(self, space: Space, part: Part) -> None:
        self.space, self.part = space, part
        self.raw = [space.raw[name] for name in part.columns]
        self.dtype = self.raw[0].data.dtype
        self.dtypes = tuple(column.data.dtype for column in self.raw)
        self.held: list[Column] = []
        self.updates = 0
        self.lookups = 0

    @property
    def rings(self) -> np.ndarray:
        return self.space.arena.rings

    @property
    def columns(self) -> Partials:
        """The raw data as kernels take it."""
        return self.raw[0].data if len(self.raw) == 1 else tuple(column.data for column in self.raw)

    def rebuild(self) -> None:
        """From the raw rows kept."""
        kept = self.space.arena.kept(self.rings.shape[0])
        keys = np.flatnonzero(kept)
        self.update(keys, kept[keys])

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on. What lies in the space's arena follows by itself."""

    def follow(self, runs: NewRows) -> None:
        """What a batch has brought."""
        if runs.again is None:
            self.update(runs.keys, runs.counts)
        else:
            self.redo(runs.keys, runs.counts, runs.again)
        self.updates += runs.rows

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """The last counts[r] rows of keys[r] are new."""
        raise NotImplementedError

    def redo(self, keys: np.ndarray, counts: np.ndarray, again: np.ndarray) -> None:
        """The last counts[r] rows of each key are new, or were displaced by such: it knew again[r] rows from there on.

        What is made of rows from their own partials on upwards needs no more than `update`.
        """
        self.update(keys, counts)

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        """Partials, flat, one per (key, window); those of empty windows hold anything."""
        raise NotImplementedError

    def drop(self) -> None:
        self.space.arena.release(self.held)

    @property
    def bytes(self) -> int:
        return sum(column.data.nbytes for column in self.held) + self.bytes_apart

    @property
    def bytes_apart(self) -> int:
        """Of these, what does not lie in the space's arena."""
        return sum(array.nbytes for array in self.saved().values())

    def saved(self) -> dict[str, np.ndarray]:
        """Arrays of its own that do not lie in the arena."""
        return {}

    def restored(self, arrays: dict[str, np.ndarray]) -> None:
        """Take those back."""

    def state(self) -> State:
        header = {"updates": self.updates, "lookups": self.lookups, "held": len(self.held)}
        held = {f"held/{i}": column.data for i, column in enumerate(self.held)}
        return header, held | {f"saved/{name}": array for name, array in self.saved().items()}

    def restore(self, state: State) -> None:
        header, arrays = state
        if len(self.held) != header["held"]:
            raise ValueError(f"partials of {self.part} were saved as {header['held']} arrays, not {len(self.held)}")
        for i, column in enumerate(self.held):
            column.data = arrays[f"held/{i}"]
        self.restored(own_arrays(arrays, "saved"))
        self.updates, self.lookups = header["updates"], header["lookups"]


def allocated(arena: Arena, op: Any, dtypes: Any) -> list[Column]:
    """dtypes: of the columns."""
    found = monoids.state_dtypes(op, dtypes)
    return [arena.allocate(each) for each in (found if isinstance(found, tuple) else (found,))]


def partials_of(op: Any, held: list[Column]) -> Partials:
    if not isinstance(monoids.STATE[type(op)], tuple):
        return held[0].data
    return tuple(column.data for column in held)


class Running(Structure):
    """R-INT over an operator whose partials can be taken off again exactly (integers)."""

    name, update_cost, lookup_cost = "R-INT", "O(1)", "O(1)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.op = operator(part)
        self.held = allocated(space.arena, self.op, self.dtypes)
        identity = 0 if part.user is None else part.user.identity
        self.identity = identity if isinstance(identity, tuple) else (identity,)
        self.total = monoids.empty_state(self.op, self.dtypes, 0)

    def _add_keys(self, count: int) -> None:
        tuples = isinstance(self.total, tuple)
        arrays = self.total if tuples else (self.total,)
        grown = tuple(extended(array, count, fill) for array, fill in zip(arrays, self.identity, strict=True))
        self.total = grown if tuples else grown[0]

    def renumber(self, kept: np.ndarray) -> None:
        self._add_keys(int(kept.max(initial=-1)) + 1)
        self.total = tuple(each[kept] for each in self.total) if isinstance(self.total, tuple) else self.total[kept]

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        self._add_keys(self.rings.shape[0])
        running.update(self.op, self.columns, partials_of(self.op, self.held), self.total, self.rings, keys, counts)

    def redo(self, keys: np.ndarray, counts: np.ndarray, again: np.ndarray) -> None:
        """Running on from the first displaced row, before which nothing has changed."""
        back = np.flatnonzero(again)
        ring = self.rings[keys[back]]
        slots = ring[:, OFFSET] + ((ring[:, TAIL] - counts[back]) & (ring[:, CAPACITY] - 1))
        arrays = self.total if isinstance(self.total, tuple) else (self.total,)
        for total, column in zip(arrays, self.held, strict=True):
            total[keys[back]] = column.data[slots]
        self.update(keys, counts)

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = monoids.empty_state(self.op, self.dtypes, lo.size)
        running.lookup(self.op, partials_of(self.op, self.held), self.total, self.rings, keys, (lo, hi), out)
        self.lookups += lo.size
        return out

    def saved(self) -> dict[str, np.ndarray]:
        arrays = self.total if isinstance(self.total, tuple) else (self.total,)
        return {f"total{i}": array for i, array in enumerate(arrays)}

    def restored(self, arrays: dict[str, np.ndarray]) -> None:
        ordered = tuple(arrays[f"total{i}"] for i in range(len(arrays)))
        self.total = ordered if isinstance(self.total, tuple) else ordered[0]


class RunningFloats(Structure):
    """R-INT over floats: double-double running sums, every answer certified (kernels/windows/running.py)."""

    name, update_cost, lookup_cost = "R-INT", "O(1)", "O(1)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.held = [space.arena.allocate(np.complex128, running.STRIDE)]
        self.total = np.zeros(0, np.complex128)
        self.uncertain = 0

    def renumber(self, kept: np.ndarray) -> None:
        self.total = extended(self.total, int(kept.max(initial=-1)) + 1, 0)[kept]

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        rings = self.rings
        if self.total.size < rings.shape[0]:
            self.total = extended(self.total, rings.shape[0], 0)
        running.update_floats(self.columns, self.held[0].data, self.total, rings, keys, counts)

    def redo(self, keys: np.ndarray, counts: np.ndarray, again: np.ndarray) -> None:
        """Running on from the group of the first displaced row. Of one that begins before the head there is no sum any
        more; no window takes it off, so any will do."""
        back = np.flatnonzero(again)
        ring = self.rings[keys[back]]
        first = (ring[:, TAIL] - counts[back]) >> running.STRIDE << running.STRIDE
        slots = ring[:, OFFSET] + (first & (ring[:, CAPACITY] - 1))
        sums = self.held[0].data[slots >> running.STRIDE]
        self.total[keys[back]] = np.where(first >= ring[:, HEAD], sums, 0)
        self.update(keys, counts)

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = np.empty(lo.size)
        run = self.held[0].data
        self.uncertain += running.lookup_floats(self.columns, run, self.total, self.rings, keys, (lo, hi), out)
        self.lookups += lo.size
        return out

    def saved(self) -> dict[str, np.ndarray]:
        return {"total": self.total}

    def restored(self, arrays: dict[str, np.ndarray]) -> None:
        self.total = arrays["total"]

    def state(self) -> State:
        header, arrays = super().state()
        return header | {"uncertain": self.uncertain}, arrays

    def restore(self, state: State) -> None:
        super().restore(state)
        self.uncertain = state[0]["uncertain"]


class Dyadic(Structure):
    """B-INT."""

    name, update_cost, lookup_cost = "B-INT", "O(1)", "O(log W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.op = operator(part)
        self.held = allocated(space.arena, self.op, self.dtypes)

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        dyadic.update(self.op, self.columns, partials_of(self.op, self.held), self.rings, keys, counts)

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = monoids.empty_state(self.op, self.dtypes, lo.size)
        dyadic.lookup(self.op, self.columns, partials_of(self.op, self.held), self.rings, keys, (lo, hi), out)
        self.lookups += lo.size
        return out


class Landmark(Structure):
    """L-INT: one group for each cluster of window widths, made when the first such window is asked for."""

    name, update_cost, lookup_cost = "L-INT", "O(γ)", "O(1)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.op = operator(part)
        self.groups: dict[int, LandmarkGroup] = {}  # by the narrowest width that they serve

    def renumber(self, kept: np.ndarray) -> None:
        for group in self.groups.values():
            group.arena.renumber(kept)

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        for group in self.groups.values():
            group.update(self, keys, counts)

    def redo(self, keys: np.ndarray, counts: np.ndarray, again: np.ndarray) -> None:
        for group in self.groups.values():
            group.redo(self, keys, counts, again)

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        """Each window from the group of its width; groups for widths that were never asked for are made."""
        out = monoids.empty_state(self.op, self.dtypes, lo.size)
        self.lookups += lo.size
        widths = np.maximum(hi - lo, 0)
        left, known = widths > 0, list(self.groups)
        while left.any():
            wmin = known.pop() if known else narrowest(int(widths[left].min()))
            mine = (widths >= wmin) & (widths < 2 * wmin)  # all of these are answered, also if by another group before
            if (mine & left).any():
                depth = int((self.rings[keys, TAIL][:, None] - lo)[mine].max())
                landmark.lookup(self.op, self._group(wmin, depth).record(self), keys, (lo, hi), out)
                left &= ~mine
        return out

    def _group(self, wmin: int, depth: int) -> "LandmarkGroup":
        """The group of a cluster, reaching at least `depth` rows back; made, or made deeper, from the raw rows."""
        group = self.groups.get(wmin)
        if group is None or group.depth < depth:
            require_alone()
            group = LandmarkGroup(wmin, depth + depth // 8, self)  # a window of time soon holds a few rows more
            group.fill(self)
            self.groups[wmin] = group
        return group

    def state(self) -> State:
        """Its groups in their order, too: who answers a window, and from which row on, decides the last digits."""
        header, arrays = super().state()
        groups = nested(header, {"groups": [group.state() for group in self.groups.values()]})
        return with_arrays(groups, arrays)

    def restore(self, state: State) -> None:
        super().restore(state)
        self.groups = {}
        for each in parts(state, "groups") if "groups" in state[0] else ():  # those of before were not saved
            group = LandmarkGroup(each[0]["wmin"], each[0]["depth"], self)
            group.restore(each)
            self.groups[group.wmin] = group

    @property
    def bytes_apart(self) -> int:
        return sum(group.arena.bytes for group in self.groups.values())


class LandmarkGroup:
    """The landmark intervals of widths in [wmin, 2 wmin), over the last `depth` rows of each key.

    It owns an arena of its own, as it keeps fewer rows than the space.
    """

    def __init__(self, wmin: int, depth: int, owner: Landmark) -> None:
        self.wmin, self.depth = wmin, depth
        self.arena = Arena()
        self.lanes = [allocated(self.arena, owner.op, owner.dtypes) for _ in range(3)]

    def fill(self, owner: Landmark) -> None:
        """A new group takes the rows that are kept."""
        rings = owner.rings
        self.arena.add_keys(rings.shape[0])
        kept = np.minimum(rings[:, TAIL] - rings[:, HEAD], self.depth)
        self.arena.rings[:, TAIL] = rings[:, TAIL] - kept
        self.arena.rings[:, HEAD] = self.arena.rings[:, TAIL]
        keys = np.flatnonzero(kept)
        self.update(owner, keys, kept[keys])

    def record(self, owner: Landmark) -> landmark.Landmarks:
        """As kernels take it."""
        prefix, longer, suffix = (partials_of(owner.op, lane) for lane in self.lanes)
        return landmark.Landmarks(self.wmin, prefix, longer, suffix, self.arena.rings)

    def update(self, owner: Landmark, keys: np.ndarray, counts: np.ndarray) -> None:
        """New rows of some keys into its landmark intervals; of a batch longer than it is deep, only the last ones."""
        self.arena.add_keys(owner.rings.shape[0])
        coming = np.minimum(counts, self.depth)
        skipped = counts - coming  # a batch longer than the group is deep
        rings = self.arena.rings
        rings[keys[skipped > 0], HEAD] = rings[keys[skipped > 0], TAIL] = (
            owner.rings[keys[skipped > 0], TAIL] - coming[skipped > 0]
        )

        def expire(which: np.ndarray, more: np.ndarray) -> None:
            own = self.arena.rings
            oldest = np.maximum(own[which, TAIL] + more - self.depth, owner.rings[which, HEAD])
            own[which, HEAD] = np.clip(oldest, own[which, HEAD], own[which, TAIL])

        self.arena.make_room(keys, coming, expire)
        self.arena.rings[keys, TAIL] += coming
        landmark.update(owner.op, owner.columns, owner.rings, self.record(owner), keys, coming)

    def redo(self, owner: Landmark, keys: np.ndarray, counts: np.ndarray, again: np.ndarray) -> None:
        """From the stretch on in which the first displaced row is: aggregates from its start may have been replaced by
        those to the end of their block. A block that ends again is looked back through as a whole."""
        self.arena.add_keys(owner.rings.shape[0])
        rings = self.arena.rings
        displaced = owner.rings[keys, TAIL] - counts
        stretch = displaced >> landmark.STRETCH_BITS << landmark.STRETCH_BITS
        first = np.maximum(np.maximum(displaced - displaced % self.wmin, stretch), rings[keys, HEAD])
        rings[keys, TAIL] = np.where(again > 0, np.minimum(rings[keys, TAIL], first), rings[keys, TAIL])
        self.update(owner, keys, owner.rings[keys, TAIL] - rings[keys, TAIL])

    def state(self) -> State:
        columns = [column.data for lane in self.lanes for column in lane]
        arrays = {f"lanes/{i}": data for i, data in enumerate(columns)}
        return with_arrays(nested({"wmin": self.wmin, "depth": self.depth}, {"arena": self.arena.state()}), arrays)

    def restore(self, state: State) -> None:
        """It was made and not filled."""
        self.arena.restore(part(state, "arena"))
        for i, column in enumerate(column for lane in self.lanes for column in lane):
            column.data = state[1][f"lanes/{i}"]


def extended(array: np.ndarray, count: int, fill: float) -> np.ndarray:
    if count <= array.size:
        return array
    grown = np.full(max(count, 2 * array.size), fill, array.dtype)
    grown[: array.size] = array
    return grown


def narrowest(width: int) -> int:
    """The narrowest width of a new group: a little less than the one that it is made for, as windows of time hold now a
    few rows more, now a few less. Of rows that come by chance a window has its mean and some roots of it."""
    return max(1, width - min(width // 8, 5 * math.isqrt(width)))
