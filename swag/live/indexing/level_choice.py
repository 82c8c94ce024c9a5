"""How many levels per size an index over counts or sums has: as many as ε promises, or fewer while it is seldom asked.

    more levels     fewer candidates that are checked in vain; each row costs more, and memory
    fewer levels    the other way round

The promise is about candidates that nobody checks (`exact=False`): whoever asks for those gets the levels of ε, from
then on. Who asks for exact answers gets these either way.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kernels.key_filters.ci_levels import levels_for

USUAL = 0.2  # whoever asks for another ε has made the choice
COARSE = 0.5  # the ε of an index that is seldom asked
LEVEL_RECONSIDERED = 1 << 16  # rows and candidates between two looks at the choice
CHECKING = 70.0  # ns to check a candidate, as measured


class LevelCost(NamedTuple):
    """In ns, as measured: what a row costs for each level per size, and what one costs that an index is made from."""

    level: float
    making: float


COSTS = {"count": LevelCost(18.0, 75.0), "sum": LevelCost(75.0, 400.0)}


@dataclass
class LevelChoice:
    """The levels of one index. It owns what was seen since they were last thought about, and why they are so many.

    p: levels per size, as of now. promised: those of ε. regret: what the other choice would have saved so far, in ns.
    """

    epsilon: float
    cost: LevelCost
    p: int = 0
    regret: float = 0.0
    rows: int = 0  # that came
    in_vain: int = 0  # candidates that were checked, and did not pass
    asked: int = 0  # how often any were
    reason: str = ""

    def __post_init__(self) -> None:
        self.p, self.free, self._is_used = self.promised, self.epsilon == USUAL, False

    @property
    def promised(self) -> int:
        return levels_for(self.epsilon)

    def promise(self) -> bool:
        """Somebody asks for candidates: from now on it has the levels of ε. True if it had others."""
        self.free, self.reason = False, ""
        other, self.p = self.p != self.promised, self.promised
        return other

    def checked(self, in_vain: int) -> None:
        """Candidates were checked, so many of them in vain. What came before anybody asked says nothing about how often
        that will be: history is often loaded first."""
        if not self._is_used:
            self.rows, self._is_used = 0, True
        self.in_vain += in_vain
        self.asked += 1

    def due(self) -> bool:
        return self.free and self.asked > 0 and self.rows + self.in_vain >= LEVEL_RECONSIDERED

    def reconsider(self, kept: int) -> bool:
        """Are there to be others? Then what that would have saved pays for making the index from the rows kept.

        Candidates in vain grow about with the square of ε, as measured: keys that nearly pass are more than those that
        do.
        """
        coarse = levels_for(COARSE)
        updates, grows = self.rows * (self.promised - coarse) * self.cost.level, (self.promised / coarse) ** 2
        fine = self.p == self.promised
        checks = self.in_vain * CHECKING * (grows - 1 if fine else 1 - 1 / grows)
        self.regret = max(0.0, self.regret + (updates - checks if fine else checks - updates))
        seen = f"{self.rows:,} rows to {self.asked:,} lookups with {self.in_vain:,} candidates in vain"
        self.rows = self.in_vain = self.asked = 0
        if self.regret <= kept * self.cost.making:
            return False
        self.p, self.regret = coarse if fine else self.promised, 0.0
        self.reason = f"{seen}: {'fewer' if fine else 'more'} levels pay"
        return True

    def explained(self) -> str:
        """Its precision, as `explain` says it."""
        if self.p == self.promised:
            return f"p = {self.p} (ε = {self.epsilon:g}{f'; {self.reason}' if self.reason else ''})"
        return f"p = {self.p} (ε = {COARSE:g}, and {self.epsilon:g} once `exact=False` is asked; {self.reason})"
