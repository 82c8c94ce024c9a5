"""A space: the rows that count for some queries, key by key, in rings (kernels/rings/timeline.py), with what is kept.

The main space holds every event. Queries over a column with nulls have a space of their own that holds only the rows
that count for them; the main space then keeps, per event, its *rank* there (how many rows of that key counted before
it), so window edges in the main space become edges in that one, and no structure ever sees a null. The rows of all who
have a `where` lie together in one space: swag/live/filtered/substreams.py.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kernels.rings import timeline
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from swag.durable.state import State, nested, part, with_arrays
from swag.live.arena import Arena, Column
from swag.query.kind import HASHED, SCALED, TIME, factors
from swag.tables import decay, decimals
from swag.tables.columns import Clock, Field, hashed
from swag.tables.decimals import limb_of

EACH = ""  # in place of a predicate: the mask of a space that holds the rows of many


class Mask(NamedTuple):
    """Which rows count: where a predicate holds, and these columns are not null, from some event on."""

    where: str | None = None
    required: frozenset[str] = frozenset()
    since: int = 0  # for queries that came later: the number of events before them
    alone: bool = False  # its rows lie in a space of their own: users' functions may raise of those of other filters
    compared: str = ""  # its rows are those of a space without filters whose value of this raw column is above a bound

    @property
    def home(self) -> "Mask":
        """The mask of the space that its rows lie in, maybe among those of others."""
        if self.compared:
            return Mask(None, self.required, self.since)
        return self if self.where is None or self.alone else Mask(EACH, self.required, self.since)

    def requiring(self, column: str) -> "Mask":
        return self._replace(required=self.required | {column})

    def filtered(self, where: str) -> "Mask":
        return self._replace(where=where)

    def beginning(self, since: int) -> "Mask":
        """The same from another event on."""
        return self._replace(since=since)

    @property
    def apart(self) -> "Mask":
        """The same rows, not among those of all."""
        return self._replace(compared="")

    def by_itself(self) -> "Mask":
        return Mask(self.where, self.required, self.since, True)

    def to_json(self) -> dict[str, Any]:
        plain = {"where": self.where, "required": sorted(self.required), "since": self.since}
        return plain | ({"alone": True} if self.alone else {})

    @staticmethod
    def from_json(entry: dict[str, Any]) -> "Mask":
        return Mask(entry["where"], frozenset(entry["required"]), entry["since"], entry.get("alone", False))


class Space:
    """The rows of one mask. It owns an arena, the raw columns that structures are made from, and its ranks in `parent`.

    Asked of it are positions for windows (`to_positions`), raw columns, and to let go of what its parent has let go of.
    """

    def __init__(self, mask: Mask, parent: "Space | None" = None) -> None:
        self.mask = mask
        self.parent = parent
        self.arena = Arena()
        self.raw: dict[str, Column] = {}
        self.rank: Column | None = None
        if parent is not None:  # rows from before this space was made do not count in it
            self.rank = parent.arena.allocate(np.int64)
            self.rank.data[:] = 0

    def label(self) -> str:
        conditions = self._predicates() + [f"{name} is not null" for name in sorted(self.mask.required)]
        since = f" after the first {self.mask.since:,}" if self.mask.since else ""
        return (" and ".join(conditions) or "every event") + since

    def _predicates(self) -> list[str]:
        return [self.mask.where] if self.mask.where else []

    def located(self, mask: Mask, keys: np.ndarray) -> np.ndarray:
        """The numbers of the rings in which the rows of these keys lie that count for a mask."""
        return keys

    def located_each(self, masks: Sequence[Mask], keys: np.ndarray) -> np.ndarray:
        """The same for each of several masks, one after the other."""
        return np.tile(keys, len(masks))

    def add_raw(self, name: str, dtype: type) -> Column:
        if name not in self.raw:
            self.raw[name] = self.arena.allocate(dtype)
        return self.raw[name]

    def copy_raw(self, other: "Space") -> None:
        """The raw columns of a space with the same rings."""
        for name, column in other.raw.items():
            self.raw[name] = self.arena.adopt(column.data.copy())

    def expire_with_parent(self, keys: np.ndarray, coming: np.ndarray) -> None:
        assert self.parent is not None and self.rank is not None
        timeline.follow(self.arena.rings, self.parent.arena.rings, self.rank.data, keys)

    def to_positions(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Edges in the main space -> edges here."""
        if self.parent is None:
            return lo, hi
        assert self.rank is not None
        lo, hi = lo.copy(), hi.copy()
        for edge in (lo, hi):
            timeline.to_ranks(edge, keys, self.parent.arena.rings, self.rank.data, self.arena.rings)
        return lo, hi

    def kept_rows(self, mask: Mask, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows kept for a mask, of some keys: their keys, positions in the main space and slots here, oldest first."""
        main = self if self.parent is None else self.parent
        rings = main.arena.rings
        counts = rings[keys, TAIL] - rings[keys, HEAD]
        ids = np.repeat(keys, counts)
        at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + rings[ids, HEAD]
        slots = rings[ids, OFFSET] + (at & (rings[ids, CAPACITY] - 1))
        if self.rank is None:
            return ids, at, slots
        rank, own = self.rank.data[slots], self.arena.rings
        after = np.append(rank[1:], 0)
        last = np.cumsum(counts)[counts > 0] - 1
        after[last] = own[ids[last], TAIL]
        counted = after > rank
        ids, rank = ids[counted], rank[counted]
        return ids, at[counted], own[ids, OFFSET] + (rank & (own[ids, CAPACITY] - 1))

    def narrowed(self, column: str) -> "Space":
        """A copy of this space for the day a column has its first null: until now its rows were all valid."""
        main = self if self.parent is None else self.parent
        other = Space(self.mask.requiring(column), main)
        other.arena.lay_out_as(self.arena)
        assert other.rank is not None
        if self.rank is None:
            rings = main.arena.rings
            keys = np.flatnonzero(rings[:, TAIL] > rings[:, HEAD])
            timeline.rank_by_position(rings, keys, other.rank.data)
        else:
            other.rank.data[:] = self.rank.data
        return other

    @property
    def bytes(self) -> int:
        return self.arena.bytes

    def state(self) -> State:
        arrays = {f"raw/{name}": column.data for name, column in self.raw.items()}
        arrays |= {} if self.rank is None else {"rank": self.rank.data}
        return with_arrays(nested(self.mask.to_json() | {"raw": list(self.raw)}, {"arena": self.arena.state()}), arrays)

    def restore(self, state: State) -> None:
        header, arrays = state
        self.arena.restore(part(state, "arena"))
        if self.rank is not None:
            self.rank.data = arrays["rank"]
        for name in header["raw"]:
            self.raw[name] = self.arena.adopt(arrays[f"raw/{name}"])


def values_of(name: str, fields: dict[str, Field]) -> np.ndarray:
    """A column, the product of two ("price * volume"; "volume * 1" is it as floats), one that decays, hashes, or of
    decimals themselves as floats or a limb."""
    if name in fields:
        return fields[name].values
    if name.endswith(HASHED):
        return hashed(fields[name.removesuffix(HASHED)])
    if name.endswith(SCALED):
        return fields[name.removesuffix(SCALED)].scaled
    decaying = decay.read(name)
    if decaying is not None:
        weighed = None if decaying.column is None else fields[decaying.column].floats
        return decay.computed(decaying, fields[TIME].values, Clock(fields[TIME].type).unit, weighed)
    limb = limb_of(name)
    if limb is not None:
        column, i = fields[limb[0]], limb[1]
        return np.zeros(column.values.size, np.int64) if column.exact is None else decimals.limb(column.exact, i)
    x, y = factors(name) or (name, "1")
    if y == "1":
        return fields[x].floats.copy()
    with np.errstate(all="ignore"):  # inf * 0 is NaN, and that is the answer
        return fields[x].floats * fields[y].floats
