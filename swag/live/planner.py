"""Which structure answers a group of queries: from the aggregate, the spread of widths, and what is asked how often.

A group is all queries over the same rows (space) and the same part (family and columns); its structure is one, however
many they are. Costs are counted in combines, as measured relative to each other; what decides is their order of growth.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kernels.operators import monoids
from kernels.windows import running
from swag.durable.state import State, nested
from swag.durable.state import part as inside
from swag.errors import BadQuery, SumOverflow
from swag.live.space import Space
from swag.live.structures.above import Above, AggregatesAbove, CountsAbove
from swag.live.structures.baselines import MaterializeAll, MaterializeNone, PSoup
from swag.live.structures.intervals import Dyadic, Landmark, Partials, Running, RunningFloats, Structure
from swag.live.structures.ranks import ByRank, DistinctRuns, Previous, SortedOnLookup, SortedRuns
from swag.live.turns import require_alone
from swag.query.families import operator
from swag.query.kind import ABOVE, Part
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
    "counts above": CountsAbove,
    "aggregates above": AggregatesAbove,
    **COMPARED,
}
ALGORITHMS = ("auto", "r-int", "b-int", "l-int", *COMPARED)
RECONSIDER = 1 << 14  # updates and lookups of a group between two looks at its plan
NOTED = 256  # lookups for which one note of widths stands
SAMPLED = 1 << 12  # of more windows at once only some are noted
# In ns, as measured: to sort a row into one level of runs, to search one of a window's, to go through one of its rows
# (3 where a window has 1,000 of them, 7 to 10 where it has more).
SORTING, SEARCHING, GOING_THROUGH = 9.0, 55.0, 8.0
# The same of thresholds: to write a row down for one that it satisfies, to look up one that has rows of its own, and to
# search one run for one that shares them.
WRITING_DOWN, LOOKING_UP, FINDING_BOUND = 40.0, 100.0, 30.0
MOST_GROUPS = 4  # of landmarks: each keeps three more partials per row


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

    def above(
        self, rings: np.ndarray, edges: tuple[np.ndarray, np.ndarray], bounds: list[Any], largest: int,
        sums_asked: Callable[[int], bool],
    ) -> tuple[np.ndarray, list[Partials]]:  # fmt: skip
        """Of thresholds, for each bound: how many rows of windows are above it, and their partials, a row per key. That
        may raise as in `without_overflow`; sums_asked: of a bound."""
        (lo, hi), structure, count = edges, self.structure, len(bounds)
        assert isinstance(structure, Above)
        each = np.array(bounds, structure.dtypes[-1])
        bounded = np.tile(lo, (count, 1)), np.tile(hi, (count, 1)), np.repeat(each, rings.size)
        self._note_lookups(*bounded[:2])
        found, partials = structure.above(np.tile(rings, count), bounded)
        counts, states = found.reshape(count, *lo.shape), list(partials.reshape(count, *lo.shape))
        if self.part.family == "sum" + ABOVE and largest * int(found.max(initial=0)) >= 2**63:
            for i, state in enumerate(states):
                about = structure.add_up(rings, (lo, hi, np.full(rings.size, each[i])))
                states[i] = self._without_wrapped(about.reshape(lo.shape), state, counts[i] > 0, partial(sums_asked, i))
        return counts, states

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
        return self._without_wrapped(about, state, (hi > lo).reshape(-1), sums_asked)

    def _without_wrapped(
        self, about: np.ndarray, state: Partials, there: np.ndarray, sums_asked: Callable[[], bool]
    ) -> Partials:
        """about: the sums as floats; there: of any rows."""
        part, exact = self.part, state[1] if isinstance(state, tuple) else state
        wrapped = (np.abs(about - exact) > 2.0**62) & there
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
        some = slice(None, None, 1 + lo.size // SAMPLED)
        widths = (hi[some] - lo[some])[hi[some] > lo[some]]
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


SHARING = (
    "thresholds: an event is sorted in once, whatever their number, and not written down for each that it satisfies"
)
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
    if part.family.endswith(ABOVE):
        return Choice(CountsAbove if len(part.columns) == 1 else AggregatesAbove, SHARING)
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
    kept, to_sort = _kept_and_sorted(seen.space)
    runs, rows = (
        seen.updates * to_sort + seen.lookups * SEARCHING * (1 + width),
        seen.lookups * GOING_THROUGH * 2**width,
    )
    saved = runs - rows if current is SortedRuns else rows - runs
    seen.regret, rebuild = max(0.0, seen.regret + saved), kept * to_sort
    other = SortedOnLookup if current is SortedRuns else SortedRuns
    asked = f"{seen.lookups:,} lookups to {seen.updates:,} updates, widths about 2^{width:.0f}"
    if seen.regret > rebuild:
        return Choice(other, f"{asked}: saves {seen.regret / 1e6:,.1f} ms for {rebuild / 1e6:,.1f} to sort all rows")
    return Choice(current, f"{asked}: {other.name} would not pay")


def _kept_and_sorted(space: Space) -> tuple[int, float]:
    """How many rows a space keeps, and what it takes to sort one of them into all levels of runs."""
    kept = space.arena.kept(space.arena.rings.shape[0])
    return int(kept.sum()), SORTING * max(1.0, np.log2(max(16, int(kept.max(initial=1)))) - 3)


def pays_apart(seen: Group) -> bool:
    """Would thresholds that share be cheaper with rows of their own? Where few rows satisfy few of them, or many more
    lookups than rows come; once what that would have saved pays for writing these rows down. `reason` says it."""
    structure, width = seen.structure, seen.log_width / max(1, seen.lookups)
    assert isinstance(structure, Above)
    matches = len(seen.queries) * structure.matched / max(1, structure.looked_through)
    kept, to_sort = _kept_and_sorted(seen.space)
    shared = seen.updates * to_sort + seen.lookups * FINDING_BOUND * (1 + width)
    apart = seen.updates * matches * WRITING_DOWN + seen.lookups * LOOKING_UP
    seen.regret, rebuild = max(0.0, seen.regret + shared - apart), kept * matches * WRITING_DOWN
    asked = f"{seen.lookups:,} lookups to {seen.updates:,} rows, of which each satisfies {matches:,.1f} thresholds"
    pays = seen.regret > rebuild
    seen.reason = f"{asked}: rows of their own {'pay' if pays else 'would not pay'}"
    return pays
