"""Punctuations: up to when nothing more comes of a stream."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from swag.arguments import is_whole
from swag.errors import BadType, OutOfOrder
from swag.tables.columns import Clock

START_OF_TIME, END_OF_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Promise:
    """The latest of the punctuations. Owns them as they were given, until it is known what the type of ts is."""

    def __init__(self) -> None:
        self._said: list[Any] = []

    def add(self, t: Any, clock: Clock | None) -> None:
        """Nothing up to t comes any more."""
        if clock is not None:
            self._said = [self.with_(t, clock)]
            return
        if not (is_whole(t) or isinstance(t, str | datetime.date | np.datetime64 | pa.Scalar)):
            raise BadType(f"t={t!r} is no point in time.", "a datetime, or an integer in the unit of ts")
        self._said.append(t)

    def with_(self, t: Any, clock: Clock) -> int:
        """What it would be with this punctuation, in the unit of ts."""
        return max(clock.instant(each, "t") for each in (*self._said, t))

    def instant(self, clock: Clock | None) -> int | None:
        """In the unit of ts; None: there was none, or the unit is not known."""
        return None if clock is None or not self._said else max(clock.instant(each, "t") for each in self._said)


def check_promise(clock: Clock, instants: np.ndarray, upto: int | None, what: str, hint: str) -> None:
    """Refuse what was promised not to come."""
    if upto is not None and instants.size and int(instants.min()) <= upto:
        row = int(np.argmax(instants <= upto))
        raise OutOfOrder(
            f"{what} {row} is at {clock.show(int(instants[row]))}, "
            f"but a punctuation promised none up to {clock.show(upto)}.",
            hint,
        )


def after(instants: np.ndarray, upto: int | None) -> np.ndarray:
    """Which are later? All, if nothing was promised."""
    return np.ones(instants.size, bool) if upto is None or upto < START_OF_TIME else instants > min(upto, END_OF_TIME)
