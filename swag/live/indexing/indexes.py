"""Substream filters: which keys may satisfy a condition, without looking at the others.

One index per set of rows (a `where` and the nulls left out), aggregate and column; thousands of conditions share it. An
index names candidates, never too few; the engine checks them with the shared structures, one batched lookup over just
those keys. So answers are exact, and their cost follows the keys returned.

      CountIndex    count > v, >= v; < v, <= v among the keys that are present      kernels/key_filters/ci_count.py
      SumIndex      the same over values >= 0                                       kernels/key_filters/ci_sum.py
      ExtremaIndex  max and min: extrema_index.py                                   kernels/key_filters/ci_extrema.py

Windows are time-based and end now: far < ts <= now as in query.windows.Reach. One that ends earlier (near > 0, or a
lookup in the past) gets a superset too, if a wider one. What lies further back than `longest` is forgotten.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from kernels.key_filters import bands, ci_count, ci_levels, ci_sum
from kernels.operators.numbers import EARLIEST, LATEST
from swag.durable.state import State, with_arrays

Op = Literal[">", ">=", "<", "<="]
UNCOUNTED = 2.0**60  # units beyond all levels: no index tells that a sum is above
NEIGHBOURHOOD = 12  # 2^12 keys and their levels fit the cache


class SubstreamIndex:
    """What the indexes share: time, the horizon, room for keys, and the walk whose output does not fit.

    Once a window longer than `longest` is to be served: make another index and give it the rows that are kept.
    """

    def __init__(self, longest: int | None = None) -> None:
        self.longest = longest  # the longest window asked for, in the unit of ts; None: forget nothing
        self.now = EARLIEST
        self.key_count = 0
        self._out = np.empty(1024, np.int64)
        self._next_to_expire = 0

    # -- what an engine calls -----------------------------------------------------------------------------------------

    def add_keys(self, count: int) -> None:
        """Keys are 0 .. count - 1 from now on."""
        if count > self._capacity:
            self._grow(max(count, 2 * self._capacity))
        self.key_count = max(self.key_count, count)

    def update(self, ids: np.ndarray, ts: np.ndarray, values: np.ndarray | None = None) -> None:
        """Take the rows of a checked batch, in order of arrival (each key's times do not decrease)."""
        if ids.size == 0:
            return
        self.now = max(self.now, int(ts.max()))
        if ids.size > 4096 and self.key_count > 1 << NEIGHBOURHOOD:
            ids, ts, values = self._by_neighbourhood(ids, ts, values)
        self._update(ids, ts, values)
        self.expire(self.now, 16 + ids.size // 4)

    def _by_neighbourhood(self, *columns: Any) -> Iterator[Any]:
        """The columns of a batch, the first being ids, with rows of neighbouring keys together."""
        places = np.empty(columns[0].size, np.int64)
        starts = np.zeros((self.key_count >> NEIGHBOURHOOD) + 2, np.int64)
        ci_count.places_by_key(columns[0], NEIGHBOURHOOD, starts, places)
        for column in columns:
            moved = None if column is None else np.empty_like(column)
            if moved is not None:
                ci_count.put_at(places, column, moved)
            yield moved

    def candidates(self, far: int, op: Op, v: float, now: int, near: int = 0) -> np.ndarray:
        """The keys whose aggregate over (now - far, now - near] satisfies `op v`, and maybe others; in order."""
        if now - far < self.horizon:  # further back than anything is remembered
            return np.arange(self.key_count)
        return self._candidates(min(max(EARLIEST, now - far), LATEST), op, v, now, near)

    def walk_of(self, op: Op, v: float) -> int | None:
        """The number by which `walk_each` knows a condition; None: it is none that one walk answers.

        It is the same for as long as `stamp` is.
        """
        return None

    @property
    def stamp(self) -> float:
        """Another one where conditions are answered by other walks than before."""
        return 0.0

    def walk_each(self, walks: np.ndarray, x: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of many conditions, one after the other in no order, over windows (x, ends]; and where those
        of each begin. What is before the horizon is not known."""
        raise NotImplementedError

    def serves(self, longest: int, conditions: Sequence[tuple[Op, float]]) -> bool:
        """Is this index as good for these conditions, on windows up to that long, as one made for them?"""
        return self.longest is None or longest <= self.longest

    def present(self, far: int, now: int) -> np.ndarray:
        """The ids of all keys with a row after now - far, and maybe of others."""
        return np.arange(self.key_count)

    def _candidates(self, x: int, op: Op, v: float, now: int, near: int) -> np.ndarray:
        """The same for x = now - far, within what is remembered."""
        raise NotImplementedError

    def expire(self, now: int, some: int | None = None) -> None:
        """Time passes: forget what no window reaches, for all keys or for the next few in turn."""
        self.now = max(self.now, now)
        count = self.key_count
        if count == 0 or self.longest is None:
            return
        begin = self._next_to_expire if some is not None else 0
        end = min(count, begin + (count if some is None else some))
        self._expire(begin, end, self.horizon)
        self._next_to_expire = end % count

    def forget(self, keys: np.ndarray) -> None:
        """All that is known of these keys: their rows are given again."""
        raise NotImplementedError

    @property
    def horizon(self) -> int:
        return EARLIEST if self.longest is None else max(EARLIEST, self.now - self.longest)

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.state()[1].values())

    def state(self) -> State:
        """What it knows of all keys."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        raise NotImplementedError

    # -- what each index does its own way -----------------------------------------------------------------------------

    @property
    def _capacity(self) -> int:
        raise NotImplementedError

    def _grow(self, keys: int) -> None:
        raise NotImplementedError

    def _update(self, ids: np.ndarray, ts: np.ndarray, values: np.ndarray | None) -> None:
        raise NotImplementedError

    def _expire(self, begin: int, end: int, horizon: int) -> None:
        raise NotImplementedError

    def _walked(self, walk: Any, *arguments: Any) -> np.ndarray:
        """What a walk returns, in a buffer that grows until it fits; in order, which depends on no earlier lookup."""
        while (found := walk(*arguments, self._out)) > self._out.size:
            self._out = np.empty(2 * self._out.size, np.int64)
        return np.sort(self._out[:found])

    def _walked_each(self, walk: Any, *arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same of a walk for many, each in no order; and where those of each begin."""
        count = arguments[1].size
        starts, done = np.zeros(count + 1, np.int64), 0
        while (done := walk(*arguments, starts, done, self._out)) < count:
            grown = np.empty(2 * self._out.size, np.int64)
            grown[: starts[done]] = self._out[: starts[done]]
            self._out = grown
        return starts, self._out[: starts[count]].copy()


class CountIndex(SubstreamIndex):
    """CI-COUNT with p levels per size; `epsilon` is what a candidate's count may be off by."""

    def __init__(self, p: int = 8, longest: int | None = None) -> None:
        super().__init__(longest)
        self.known = ci_count.empty(p)

    @property
    def epsilon(self) -> float:
        return ci_levels.relaxation(self.known.p)

    def _candidates(self, x: int, op: Op, v: float, now: int, near: int) -> np.ndarray:
        """For > and >= a walk by the least count that satisfies; for < and <= the present keys that are not beyond."""
        if op in (">", ">="):
            return self._at_least(self._least(op, v), x)
        most = self._most(op, v)
        keys = self.present(now - x, now)
        if most is None or now - near < self.now:  # rows after the window's end count too: the index knows too much
            return keys
        if most < 0:
            return keys[:0]
        level = ci_levels.level_beyond(most + 1, self.known.p)
        return keys if level is None else keys[: ci_count.without(self.known, level, x, keys)]

    def walk_of(self, op: Op, v: float) -> int | None:
        least = self._least(op, v) if op in (">", ">=") else None
        return None if least is None else self._asked(least)

    def walk_each(self, walks: np.ndarray, x: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.known = ci_count.with_room(self.known, 0, 64)  # to cut a few bands
        return self._walked_each(ci_count.newer_each, self.known, walks, x)

    def decided(self, far: int, op: Op, v: float, now: int, near: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The candidates in two parts: keys that satisfy the condition for certain, and keys to be checked."""
        least = self._least(op, v) if op in (">", ">=") else None
        known = now - near >= self.now and now - far >= self.horizon
        beyond = self._beyond(least) if least is not None and known else None
        if least is None or beyond is None:
            return np.empty(0, np.int64), self.candidates(far, op, v, now, near)
        level = self._asked(least)
        while True:
            found, certain = ci_count.decided(self.known, level, beyond, max(EARLIEST, now - far), self._out)
            if found <= self._out.size:
                return np.sort(self._out[:certain]), np.sort(self._out[certain:found])
            self._out = np.empty(2 * self._out.size, np.int64)

    def _beyond(self, least: int) -> int | None:
        return ci_levels.level_beyond(least, self.known.p)

    def present(self, far: int, now: int) -> np.ndarray:
        return np.arange(self.key_count) if now - far < self.horizon else self._at_least(1, max(EARLIEST, now - far))

    def _least(self, op: Op, v: float) -> int | None:
        """The smallest count that satisfies the condition, None if none does."""
        if v != v or v == math.inf:
            return None
        return max(1, 1 if v == -math.inf else math.floor(v) + 1 if op == ">" else math.ceil(v))

    def _most(self, op: Op, v: float) -> int | None:
        """The largest count that does; None if all do."""
        if v == math.inf:
            return None
        return -1 if v != v or v == -math.inf else math.ceil(v) - 1 if op == "<" else math.floor(v)

    def _at_least(self, least: int | None, x: int) -> np.ndarray:
        if least is None:
            return np.empty(0, np.int64)
        level = self._asked(least)  # first: it may put another state in place
        return self._walked(ci_count.newer, self.known, level, x)

    def _asked(self, least: int) -> int:
        """The level that answers for a count, indexed, with room to cut a band."""
        level = ci_levels.level_within(least, self.known.p)
        self.known = ci_count.indexed(self.known, level)
        return level

    @property
    def _capacity(self) -> int:
        return self.known.keys.shape[0]

    def _grow(self, keys: int) -> None:
        self.known = ci_count.with_keys(self.known, keys)

    def forget(self, keys: np.ndarray) -> None:
        ci_count.forget(self.known, keys)

    def _update(self, ids: np.ndarray, ts: np.ndarray, values: np.ndarray | None) -> None:
        begin = 0
        while (begin := ci_count.update(self.known, ids, ts, begin, self.horizon)) < ids.size:
            self.known = ci_count.with_room(self.known, 16, 64 * self.known.p)

    def _expire(self, begin: int, end: int, horizon: int) -> None:
        ci_count.expire(self.known, begin, end, horizon)

    def state(self) -> State:
        p, keys, blocks, order = self.known
        about = np.array([self.now, self.key_count, p])
        return {}, {"about": about, "keys": keys, "blocks": blocks} | arrays_of(order)

    def restore(self, state: State) -> None:
        arrays = state[1]
        self.now, self.key_count, p = (int(each) for each in arrays["about"])
        self.known = ci_count.Levels(p, arrays["keys"], arrays["blocks"], order_of(arrays))


class SumIndex(CountIndex):
    """CI-SUM over a column of integers >= 0, or of floats in units of 1 / scale (chosen by the first values).

    presence: the index that knows which keys have a row at all, as a zero leaves no trace here; asked for < and <=. To
    be set again whenever that one is made anew.
    """

    def __init__(
        self, p: int = 8, longest: int | None = None, floats: bool = False, presence: CountIndex | None = None
    ) -> None:
        super().__init__(p, longest)
        self.floats, self.presence = floats, presence
        self.scale = 0.0  # none yet
        self.rest = np.zeros(0)

    @staticmethod
    def first_negative(values: np.ndarray) -> int:
        """The first row of a batch that this index can not take, or -1. To be asked before anything is changed."""
        return int(ci_sum.first_negative(values))

    def present(self, far: int, now: int) -> np.ndarray:
        return np.arange(self.key_count) if self.presence is None else self.presence.present(far, now)

    def _candidates(self, x: int, op: Op, v: float, now: int, near: int) -> np.ndarray:
        if (op == ">=" and v <= 0) or (op == ">" and v < 0):
            return self.present(now - x, now)
        return super()._candidates(x, op, v, now, near)

    def walk_of(self, op: Op, v: float) -> int | None:
        if v <= 0 or (self.floats and (self._least(op, v) or 0) <= 1):  # keys that are just present may pass
            return None
        return super().walk_of(op, v)

    @property
    def stamp(self) -> float:
        return self.scale

    def _beyond(self, least: int) -> int | None:
        """Nothing is certain of a float sum, whose threshold was lowered, nor of values that were cut."""
        return None if self.floats or least >= ci_sum.LARGEST_COUNTED else super()._beyond(least)

    def decided(self, far: int, op: Op, v: float, now: int, near: int = 0) -> tuple[np.ndarray, np.ndarray]:
        if (op == ">=" and v <= 0) or (op == ">" and v < 0):
            return np.empty(0, np.int64), self.present(far, now)
        return super().decided(far, op, v, now, near)

    def _least(self, op: Op, v: float) -> int | None:
        """The least sum, in units where it is of floats, lowered by what their rounding may be off."""
        if self.floats:
            if v != v:
                return None
            v = min(v, sys.float_info.max)  # a sum of finite values may be infinite
            units = v * self.scale * (1 - 1e-11) - 2  # one unit at either end, and what a float sum may be off
            return ci_sum.LARGEST_COUNTED if units >= ci_sum.LARGEST_COUNTED else max(1, math.floor(units))
        least = super()._least(op, v)
        return None if least is None else min(least, ci_sum.LARGEST_COUNTED)

    def _at_least(self, least: int | None, x: int) -> np.ndarray:
        if self.floats and least is not None and least <= 1:  # less than a unit may leave no trace
            return self.present(self.now - x, self.now)
        return super()._at_least(least, x)

    def _most(self, op: Op, v: float) -> int | None:
        if not self.floats or not math.isfinite(v):
            return super()._most(op, v)
        units = v * self.scale * (1 + 1e-11)
        return -1 if v < 0 else None if units >= UNCOUNTED else math.ceil(units) + 2

    def _grow(self, keys: int) -> None:
        super()._grow(keys)
        rest = np.zeros(keys if self.floats else 0)
        rest[: self.rest.size] = self.rest
        self.rest = rest

    def forget(self, keys: np.ndarray) -> None:
        super().forget(keys)
        if self.floats:
            self.rest[keys] = 0

    def _update(self, ids: np.ndarray, ts: np.ndarray, values: np.ndarray | None) -> None:
        """Values into CI-SUM, floats as whole units (what is left over is carried on), in steps as there is room."""
        assert values is not None
        if self.floats:
            self.scale = self.scale or _scale(values)
            units = np.empty(ids.size, np.int64)
            ci_sum.in_units(values, ids, self.scale, self.rest, units)
            values = units
        begin = 0
        while (begin := ci_sum.update(self.known, ids, ts, values, begin, self.horizon)) < ids.size:
            self.known = ci_count.with_room(self.known, 2 * ci_levels.SIZES, 64 * self.known.p)

    def state(self) -> State:
        return with_arrays(super().state(), {"scale": np.array([self.scale]), "rest": self.rest})

    def restore(self, state: State) -> None:
        super().restore(state)
        self.scale, self.rest = float(state[1]["scale"][0]), state[1]["rest"]


def _scale(values: np.ndarray) -> float:
    """A power of two that makes the largest of the first values about 2^24 units; 0 as long as there is none."""
    largest = np.max(values, where=np.isfinite(values), initial=0.0)
    return 2.0 ** min(24 - math.frexp(largest)[1], 1000) if largest > 0 else 0.0


def arrays_of(order: bands.Bands) -> dict[str, np.ndarray]:
    return {"cells": order.cells, "piles": order.piles, "rows": order.rows}


def order_of(arrays: dict[str, np.ndarray]) -> bands.Bands:
    return bands.Bands(arrays["cells"], arrays["piles"], arrays["rows"])
