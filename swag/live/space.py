"""A space: the rows that count for some queries, key by key, in rings (kernels/rings/timeline.py), with what is kept.

The main space holds every event. Queries with a `where`, or over a column with nulls, have a space of their own that
holds only the rows that count for them; the main space then keeps, per event, its *rank* there (how many rows of that
key counted before it), so window edges in the main space become edges in that one, and no structure ever sees a null.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.rings import timeline
from kernels.rings.timeline import HEAD, TAIL
from swag.durable.state import State, nested, part, with_arrays
from swag.live.arena import Arena, Column


class Mask(NamedTuple):
    """Which rows count: where a predicate holds, and these columns are not null, from some event on."""

    where: str | None = None
    required: frozenset[str] = frozenset()
    since: int = 0  # for queries that came later: the number of events before them

    def to_json(self) -> dict[str, Any]:
        return {"where": self.where, "required": sorted(self.required), "since": self.since}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> "Mask":
        return Mask(entry["where"], frozenset(entry["required"]), entry["since"])


def _words(array: np.ndarray) -> np.ndarray:
    """A row of words for each entry: whatever its type, it is moved by the same kernel."""
    size = array.dtype.itemsize
    word, words = (np.dtype(np.int64), size // 8) if size % 8 == 0 else (np.dtype(f"i{size}"), 1)
    return array.view(word).reshape(array.size, words)


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
        where, required, since = self.mask
        conditions = ([where] if where else []) + [f"{name} is not null" for name in sorted(required)]
        return (" and ".join(conditions) or "every event") + (f" after the first {since:,}" if since else "")

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

    def narrowed(self, column: str) -> "Space":
        """A copy of this space for the day a column has its first null: until now its rows were all valid."""
        where, required, since = self.mask
        main = self if self.parent is None else self.parent
        other = Space(Mask(where, required | {column}, since), main)
        other.arena.lay_out_as(self.arena)
        assert other.rank is not None
        if self.rank is None:
            rings = main.arena.rings
            keys = np.flatnonzero(rings[:, TAIL] > rings[:, HEAD])
            timeline.rank_by_position(rings, keys, other.rank.data)
        else:
            other.rank.data[:] = self.rank.data
        return other

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
