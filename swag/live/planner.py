"""Which structure answers a group of queries: from the aggregate, the spread of widths, and what is asked how often.

A group is all queries over the same rows (space) and the same part (family and columns); its structure is one, however
many they are. Costs are counted in combines, as measured relative to each other; what decides is their order of growth.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kernels.operators import monoids
from kernels.windows import running
from swag.durable.state import State, nested
from swag.durable.state import part as inside
from swag.errors import BadQuery, SumOverflow
from swag.live.space import Mask, Space
from swag.live.structures.baselines import MaterializeAll, MaterializeNone, PSoup
from swag.live.structures.intervals import Dyadic, Landmark, Partials, Running, RunningFloats, Structure
from swag.live.structures.ranks import ByRank, DistinctRuns, Previous, SortedOnLookup, SortedRuns
from swag.live.turns import require_alone
from swag.query.families import operator
from swag.query.kind import Kind, Part
from swag.query.query import titles
from swag.query.user_calls import failed
from swag.query.user_defined import is_exact

COMPARED: dict[str, type[Structure]] = {
    "psoup": PSoup,
    "materialize-all": MaterializeAll,
    "materialize-none": MaterializeNone,
}
STRUCTURES: dict[str, type[Structure]] = {  # by the names that snapshots hold
    "running": Running,
    "running floats": RunningFloats,
    "dyadic": Dyadic,
    "landmark": Landmark,
    "sorted runs": SortedRuns,
    "sorted on lookup": SortedOnLookup,
    "previous": Previous,
    "distinct": DistinctRuns,
    **COMPARED,
}
ALGORITHMS = ("auto", "r-int", "b-int", "l-int", *COMPARED)
RECONSIDER = 1 << 14  # updates and lookups of a group between two looks at its plan
NOTED = 256  # lookups for which one note of widths stands
# In ns, as measured: to sort a row into one level of runs, to search one of a window's, to go through one of its rows
# (3 where a window has 1,000 of them, 7 to 10 where it has more).
SORTING, SEARCHING, GOING_THROUGH = 9.0, 55.0, 8.0
MOST_GROUPS = 4  # of landmarks: each keeps three more partials per row


class Route(NamedTuple):
    """Where a query is answered from: the rows that count for it and the space they lie in, those that make a key
    present, its parts (None: nothing has come yet that it could be answered from) and those whose groups serve them,
    how, the type, and what floats are divided by."""

    mask: Mask
    home: Mask
    presence: Mask
    parts: tuple[Part, ...] | None
    served_by: tuple[Part, ...]
    kind: Kind
    type: pa.DataType
    unit: float


@dataclass(frozen=True)
class Choice:
    structure: type[Structure]
    reason: str


@dataclass
class Group:
    """The queries that share a structure, and what they have asked of it since the plan was last looked at.

    It owns the structure, and replaces it (`use`). Asked of it: to follow the rows, partials, whether it is `due`.
    stands_in: a user's function raised while the structure that was chosen was brought up to date; this one, which
    does without, answers until that works again.
    """

    space: Space
    part: Part
    structure: Structure
    reason: str
    queries: list[str] = field(default_factory=list)
    stands_in: bool = False
    lookups: int = 0
    _counted: int = 0  # updates of the structure that were considered
    widths: set[int] = field(default_factory=set)  # that windows have had, as quarters of powers of two
    log_width: float = 0.0  # summed over lookups
    _unnoted: int = 0  # lookups since widths were last noted
    regret: float = 0.0  # what the other structure would have saved so far, in combines

    @classmethod
    def of(cls, space: Space, part: Part, choice: "Choice") -> "Group":
        """A group whose structure is built from the rows that are kept."""
        group = cls(space, part, choice.structure(space, part), choice.reason)
        group.bring(group.structure.rebuild)
        return group

    @property
    def updates(self) -> int:
        """Rows that came since the plan was last looked at."""
        return self.structure.updates - self._counted

    def use(self, choice: "Choice") -> None:
        """Another structure from now on."""
        require_alone()
        self.structure.drop()
        self._counted = -self.updates
        self.structure, self.reason = choice.structure(self.space, self.part), choice.reason
        self.stands_in = False
        self.bring(self.structure.rebuild)

    def renumber(self, kept: np.ndarray) -> None:
        """Ring kept[i] is ring i from now on. What is for comparison only is built anew."""
        self.structure.renumber(kept)
        if type(self.structure) in COMPARED.values():
            self.use(Choice(type(self.structure), self.reason))

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        """The partials of windows from its structure; where a user's function raises, from one that stands in."""
        self._note_lookups(lo, hi)
        while True:
            try:
                return self.structure.lookup(keys, lo, hi)
            except Exception as why:
                if self.part.user is None:
                    raise
                if isinstance(self.structure, MaterializeNone):  # it folds the rows of these windows, and no others
                    raise failed(f"{titles(self.queries)}: lift or combine", why) from why
            self._stand_in()

    def select(
        self, keys: np.ndarray, edges: tuple[np.ndarray, np.ndarray], ranks: np.ndarray, next_too: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of quantiles: the elements of ranks in windows, and if they are asked for the next ones."""
        self._note_lookups(*edges)
        assert isinstance(self.structure, ByRank)
        return self.structure.select(keys, *edges, ranks, next_too)

    def without_overflow(
        self, rings: np.ndarray, edges: tuple[np.ndarray, np.ndarray], state: Partials, largest: int,
        sums_asked: Callable[[], bool],
    ) -> Partials:  # fmt: skip
        """What `lookup` gave of integers, which wrap, and come back; unless the sum of a window is itself too large: of
        that, only the mean is known. largest: the largest absolute value. sums_asked: does anybody want the sum?"""
        part, (lo, hi) = self.part, edges
        if part.family not in ("sum", "moments") or int((hi - lo).max(initial=0)) * largest < 2**63:
            return state
        about, values = np.empty(lo.size), self.space.raw[part.columns[0]].data
        running.add_up_each(values, self.space.arena.rings, rings, edges, about)
        exact = state[1] if isinstance(state, tuple) else state
        wrapped = (np.abs(about - exact) > 2.0**62) & (hi > lo).reshape(-1)
        if not wrapped.any():
            return state
        if sums_asked():
            value = about[wrapped][0]
            raise SumOverflow(
                f'a window of "{part.columns[0]}" sums to about {value:.3g}, which does not fit int64.',
                "cast the column to float64",
            )
        floats = np.where(wrapped, about, exact)
        return (state[0], floats, *state[2:]) if isinstance(state, tuple) else floats

    def bring(self, up_to_date: Callable[[], None]) -> None:
        """Rows are here already: where a user's function raises of some, whatever windows do not hold those answer."""
        try:
            up_to_date()
        except Exception:
            if self.part.user is None:
                raise
            self._stand_in()

    def _stand_in(self) -> None:
        """Running aggregates hold rows that no window does: they may be too large where base intervals are not."""
        other = Dyadic if isinstance(self.structure, Running) else MaterializeNone
        self.use(Choice(other, "a function raised: windows are answered without what it raised of"))
        self.stands_in = True

    def _note_lookups(self, lo: np.ndarray, hi: np.ndarray) -> None:
        """How wide windows are; running sums take all alike. Of many small lookups every so many speak for those
        before: to note the widths of twenty windows took longer than to look them up."""
        self.lookups += lo.size
        self._unnoted += lo.size
        if prefers_running(self.part) or (self._unnoted < NOTED and self.log_width):
            return
        widths = (hi - lo)[hi > lo]
        if widths.size:
            logs = np.log2(widths)
            self.widths.update(np.flatnonzero(np.bincount((4 * logs).astype(np.int64))).tolist())
            typical = np.log2(widths.mean()) if self.part.family == "quantile" else logs.mean()
            self.log_width += float(typical) * self._unnoted
        self._unnoted = 0

    def state(self) -> State:
        """Its part, rows and queries, the structure with its partials, and what was asked of it so far."""
        header = {
            "family": self.part.family, "columns": list(self.part.columns), "mask": self.space.mask.to_json(),
            "queries": self.queries, "reason": self.reason,
            "structure": next(name for name, kind in STRUCTURES.items() if kind is type(self.structure)),
            "counted": [self.updates, self.lookups], "stands_in": self.stands_in, "widths": sorted(self.widths),
            "log_width": self.log_width, "regret": self.regret,
        }  # fmt: skip
        return nested(header, {"partials": self.structure.state()})

    @classmethod
    def restored(cls, state: State, space: Space, part: Part) -> "Group":
        """The group of a state, whose space is restored. What is for comparison only is built anew from its rows."""
        header = state[0]
        structure = STRUCTURES[header["structure"]](space, part)
        structure.restore(inside(state, "partials"))
        if type(structure) in COMPARED.values():
            structure.rebuild()
        group = cls(space, part, structure, header["reason"], header["queries"], header["stands_in"])
        group.lookups = header["counted"][1]
        group._counted = structure.updates - header["counted"][0]
        group.log_width, group.regret = header["log_width"], header["regret"]
        group.widths = set(header["widths"] if "widths" in header else [4 * level for level in header["levels"]])
        return group

    def due(self) -> bool:
        return self.updates + self.lookups >= RECONSIDER

    def start_over(self, switched: bool) -> None:
        self._counted, self.lookups = self.structure.updates, 0
        self.log_width = 0.0
        if switched:
            self.regret = 0.0


HOLISTIC = {
    "distinct": Choice(
        DistinctRuns, "a value is new where it was last seen before the window: ranks in sorted intervals"
    ),
    "mode": Choice(Previous, "modes are holistic: the rows of a window, each with the one before it of its value"),
}


def choose(part: Part, dtype: np.dtype, algorithm: str, seen: Group | None = None) -> Choice:
    """The structure for a part whose raw columns are of `dtype`; `seen`: what its group was asked so far."""
    if part.family in HOLISTIC:
        return HOLISTIC[part.family]
    if part.family == "quantile":
        return _by_rank(algorithm, seen)
    if algorithm == "b-int":
        return Choice(Dyadic, "asked for")
    if algorithm == "l-int":
        return Choice(Landmark, "asked for")
    if algorithm in COMPARED:
        return Choice(COMPARED[algorithm], "asked for, to compare")
    if algorithm == "r-int" and not subtractable(part):
        if part.family not in ("moments", "comoments", "skew", "shape", "decayed"):
            raise BadQuery(
                f"R-INT subtracts, and {part} can not be taken off again.",
                'Engine(algorithm="auto"), or "b-int", "l-int"',
            )
        return Choice(Dyadic, "not R-INT: what is taken off again would leave a residue")
    if algorithm == "r-int" or prefers_running(part):
        return _running(part, dtype, algorithm == "r-int", seen)
    return _by_cost(seen)


def subtractable(part: Part) -> bool:
    return part.family == "sum" or (part.family == "user" and monoids.invertible(operator(part)))


def prefers_running(part: Part) -> bool:
    """A user's own inverse is trusted where it is exact: floats taken off again leave a residue."""
    return part.family == "sum" or (part.user is not None and part.user.invert is not None and is_exact(part.user))


def _running(part: Part, dtype: np.dtype, forced: bool, seen: Group | None) -> Choice:
    """Running intervals; of float sums certified ones, or base intervals once too many of these were uncertain."""
    if part.family != "sum" or dtype != np.float64:
        return Choice(Running, "asked for" if forced else "subtractable, and integers come back exactly: O(1) for both")
    if not forced and seen is not None and isinstance(seen.structure, RunningFloats):
        structure = seen.structure
        if structure.uncertain * 20 > structure.lookups:
            return Choice(
                Dyadic, f"{structure.uncertain} of {structure.lookups} running sums were not certain to 1e-12"
            )
    if not forced and seen is not None and isinstance(seen.structure, Dyadic):
        return Choice(Dyadic, seen.reason)
    return Choice(RunningFloats, "asked for" if forced else "subtractable: O(1) for both, double-double, certified")


def clusters(widths: set[int]) -> int:
    """How many groups of landmarks serve these: each a little less than an octave."""
    count, upto = 0, -1
    for width in sorted(widths):
        if width > upto:
            count, upto = count + 1, width + 2
    return max(1, count)


def _by_cost(seen: Group | None) -> Choice:
    """Base intervals or landmarks: switch once what that would have saved pays for building the other from the rows."""
    if seen is None or not seen.lookups:
        return Choice(Dyadic, "not subtractable: cheapest updates, until lookups outweigh them")
    current, groups = type(seen.structure), clusters(seen.widths)
    if groups > MOST_GROUPS:
        return Choice(Dyadic, f"not subtractable; widths in {groups} clusters, too many for landmarks")
    width = seen.log_width / seen.lookups
    dyadic = seen.updates + seen.lookups * (1 + width)
    landmark = seen.updates * 4 * groups + seen.lookups * 2
    seen.regret = max(0.0, seen.regret + (dyadic - landmark if current is Dyadic else landmark - dyadic))
    rebuild = int(seen.space.arena.kept(seen.space.arena.rings.shape[0]).sum()) * (
        4 * groups if current is Dyadic else 1
    )
    other = Landmark if current is Dyadic else Dyadic
    asked = f"{seen.lookups:,} lookups to {seen.updates:,} updates, widths about 2^{width:.0f}"
    if seen.regret > rebuild:
        return Choice(other, f"{asked}: saves {seen.regret:,.0f} combines for {rebuild:,} to build it")
    return Choice(current, f"{asked}: {other.name} would not pay for being built")


def _by_rank(algorithm: str, seen: Group | None) -> Choice:
    """Quantiles: sorted runs, or none where looking through the rows of the windows that are asked for costs less than
    to keep them sorted. The other is taken once what it would have saved pays for sorting all rows that are kept."""
    if algorithm == "materialize-none":
        return Choice(SortedOnLookup, "asked for, to compare")
    if algorithm != "auto" or seen is None:
        asked = "asked for" if algorithm == "b-int" else "quantiles are holistic: sorted base intervals"
        return Choice(SortedRuns, asked)
    current, width = type(seen.structure), seen.log_width / max(1, seen.lookups)
    kept = seen.space.arena.kept(seen.space.arena.rings.shape[0])
    to_sort = SORTING * max(1.0, np.log2(max(16, int(kept.max(initial=1)))) - 3)
    runs, rows = (
        seen.updates * to_sort + seen.lookups * SEARCHING * (1 + width),
        seen.lookups * GOING_THROUGH * 2**width,
    )
    saved = runs - rows if current is SortedRuns else rows - runs
    seen.regret, rebuild = max(0.0, seen.regret + saved), int(kept.sum()) * to_sort
    other = SortedOnLookup if current is SortedRuns else SortedRuns
    asked = f"{seen.lookups:,} lookups to {seen.updates:,} updates, widths about 2^{width:.0f}"
    if seen.regret > rebuild:
        return Choice(other, f"{asked}: saves {seen.regret / 1e6:,.1f} ms for {rebuild / 1e6:,.1f} to sort all rows")
    return Choice(current, f"{asked}: {other.name} would not pay")
