"""Segments of which some rows are needed and others not: looked over a few at a time, in turn.

needed rows   .x..x  ....x  xxxx.  ....      an old segment may hold the last rows of a silent key; once most of
              ^^^^^^^^^^^^                   what is logged is not needed, every trigger rewrites the next few
"""

from dataclasses import dataclass

from swag.durable.state import State
from swag.spark.streams.log import HISTORY, Log, Segment, Shrink

SWEPT = 1 << 13  # rows that a trigger looks over for those that nothing needs, at least


@dataclass
class Sweep:
    """Whose turn it is. swept: the number of the last segment that was looked over."""

    swept: int = -1

    def tend(self, log: Log, kind: str, needed: int, batch: int, shrink: Shrink) -> None:
        """Put small segments together, or look over some. needed: how many rows are, about; batch: how many came."""
        settled = log.header.following - HISTORY
        entries = [entry for entry in log.header.entries if entry.kind == kind and entry.number < settled]
        merged = log.merge(kind, shrink)
        if not merged and sum(entry.rows for entry in entries) > 2 * needed + SWEPT:
            log.rewrite(self._next(entries, batch), shrink)

    def _next(self, entries: list[Segment], batch: int) -> list[Segment]:
        """The segments to look over now: those after the last one swept, or from the first again, up to a limit."""
        later = [entry for entry in entries if entry.number > self.swept]
        run: list[Segment] = []
        for entry in later or entries:
            if run and sum(each.rows for each in run) + entry.rows > max(2 * batch, SWEPT):
                break
            run.append(entry)
        self.swept = run[-1].number
        return run

    def state(self) -> State:
        return {"swept": self.swept}, {}

    def restore(self, state: State) -> None:
        self.swept = state[0]["swept"]
