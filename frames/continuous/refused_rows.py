"""Rows that frames can not take: found by halves, so that all others are taken.

    rows of keys a b c d        refused
    a b | c d                   a b taken, c d refused
          c | d                 c taken; of d row by row: all but the ones that it can not take

What fails is a frame of one key at one event: an integer leaves int64 there, or a function of a user's raises. So it is
that frame which is lost, with the event; the next one begins behind it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from swag.errors import SwagError
from swag.tables.waiting import TimedRows

MOST = 100  # events that are sought one by one: where more are refused, whatever is left of the rows is

Take = Callable[[TimedRows], Any]
Refuse = Callable[[TimedRows, SwagError], None]


class InHalves:
    """Takes rows by halves of their keys, then of their time. take: raises, and nothing is changed, where it can not
    take all of them; refuse: is told of those that were found not to be taken, and why."""

    def __init__(self, take: Take, refuse: Refuse) -> None:
        self.take, self.refuse, self.refused = take, refuse, 0

    def taken(self, rows: TimedRows) -> list[Any]:
        """What `take` gave of all that it took."""
        try:
            return [self.take(rows)]
        except SwagError as why:
            if rows.ts.size <= 1 or self.refused >= MOST:
                self.refused += 1
                self.refuse(rows, why)
                return []
        return [found for half in _halves(rows) for found in self.taken(half)]


def _halves(rows: TimedRows) -> tuple[TimedRows, TimedRows]:
    """Of the keys, or of the rows where there is one key."""
    keys = np.unique(rows.ids)
    first = np.arange(rows.ts.size) < rows.ts.size // 2 if keys.size < 2 else rows.ids < keys[keys.size // 2]
    return rows.some(np.flatnonzero(first)), rows.some(np.flatnonzero(~first))
