"""Punctuations: up to when nothing more comes of a stream."""

from typing import Any

import numpy as np

from swag.columns import Clock
from swag.errors import BadType, OutOfOrder

START_OF_TIME, END_OF_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Promise:
    """The latest of the punctuations. Owns them as they were given until events or frames say what the type of ts is."""

    def __init__(self) -> None:
        self._said: list[Any] = []

    def add(self, t: Any, clock: Clock | None) -> None:
        """Nothing up to t comes any more."""
        if clock is None:
            check_instant(t)
            self._said.append(t)
        else:
            self._said = [self.instant_with(t, clock)]

    def instant_with(self, t: Any, clock: Clock) -> int | None:
        """What it would be with t."""
        instants = [clock.instant(each, "the punctuation t") for each in (*self._said, t) if each is not None]
        return min(max(instants), END_OF_TIME) if instants else None

    def instant(self, clock: Clock | None) -> int | None:
        """In the unit of ts; None: there was none, or the unit is not known yet."""
        return None if clock is None else self.instant_with(None, clock)

    def check(self, clock: Clock, instants: np.ndarray, what: str, hint: str) -> None:
        upto = self.instant(clock)
        if upto is not None and instants.size and int(instants.min()) <= upto:
            row = int(np.argmax(instants <= upto))
            raise OutOfOrder(
                f"{what} {row} is at {clock.show(int(instants[row]))}, "
                f"but a punctuation promised none up to {clock.show(upto)}.",
                hint,
            )
