"""CI-MAX and CI-MIN as an engine uses them; see swag/live/indexing/indexes.py."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from kernels.key_filters import ci_extrema
from kernels.operators.numbers import EARLIEST, LATEST
from swag.durable.state import State
from swag.live.indexing.indexes import CountIndex, Op, SubstreamIndex, arrays_of, order_of


class ExtremaIndex(SubstreamIndex):
    """CI-MAX, or CI-MIN, for the conditions it is made for; others get the answer of the nearest wider one.

    New conditions: make another one and give it the rows that are kept. presence: as for SumIndex.
    """

    def __init__(
        self,
        kind: Literal["max", "min"],
        conditions: Sequence[tuple[Op, float]],
        longest: int | None = None,
        dtype: Any = np.float64,
        presence: CountIndex | None = None,
    ) -> None:
        super().__init__(longest)
        self.kind, self.dtype, self.presence = kind, np.dtype(dtype), presence
        self.known = ci_extrema.empty(self._ladder(conditions))

    def _ladder(self, conditions: Sequence[tuple[Op, float]]) -> np.ndarray:
        steps = [self._step(op, v) for op, v in conditions if v == v]
        return np.unique(np.array([step for step in steps if step is not None] or [0], self.dtype))

    def serves(self, longest: int, conditions: Sequence[tuple[Op, float]]) -> bool:
        return super().serves(longest, conditions) and bool(np.isin(self._ladder(conditions), self.known.ladder).all())

    def _candidates(self, x: int, op: Op, v: float, now: int, near: int) -> np.ndarray:
        """By the nearest threshold of the ladder: keys that reach it, or those that are present and do not."""
        reaching = self._turned(op) in (">", ">=")
        step = None if v != v else self._step(op, v)
        if v != v or (step is None and reaching):
            return np.empty(0, np.int64)
        end = now - near
        if reaching and step is not None:  # the largest threshold that is not above
            threshold = int(np.searchsorted(self.known.ladder, step, "right")) - 1
            if threshold >= 0:
                self.known = ci_extrema.with_room(self.known)
                return self._walked(ci_extrema.newer, self.known, threshold, x, end)
            return self.present(now - x, now)
        keys = self.present(now - x, now)
        if end < self.now:
            return keys
        ladder = self.known.ladder
        threshold = ladder.size if step is None else int(np.searchsorted(ladder, step, "left"))
        return keys[: ci_extrema.without(self.known, threshold, x, keys)]

    def walk_of(self, op: Op, v: float) -> int | None:
        step = self._step(op, v) if v == v and self._turned(op) in (">", ">=") else None
        threshold = -1 if step is None else int(np.searchsorted(self.known.ladder, step, "right")) - 1
        return None if threshold < 0 else threshold

    def walk_each(self, walks: np.ndarray, x: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.known = ci_extrema.with_room(self.known)
        return self._walked_each(ci_extrema.newer_each, self.known, walks, x, ends)

    def present(self, far: int, now: int) -> np.ndarray:
        return np.arange(self.key_count) if self.presence is None else self.presence.present(far, now)

    def _turned(self, op: Op) -> Op:
        return _TURNED[op] if self.kind == "min" else op

    def _step(self, op: Op, v: float) -> Any:
        """The condition as a threshold that (turned) values reach, or must not reach; None: there is no such value."""
        strict, turned = self._turned(op) in (">", "<="), self.kind == "min"
        if self.dtype.kind == "f":
            v = -v if turned else v
            return v if not strict else None if v == math.inf else math.nextafter(v, math.inf)
        exact = Fraction(min(max(v, 2 * EARLIEST), 2 * LATEST))
        exact = -exact - 1 if turned else exact  # as values are: ~x, which can not overflow
        step = max(EARLIEST, math.floor(exact) + 1 if strict else math.ceil(exact))
        return step if step <= LATEST else None

    @property
    def _capacity(self) -> int:
        return self.known.keys.shape[0]

    def _grow(self, keys: int) -> None:
        self.known = ci_extrema.with_keys(self.known, keys)

    def _update(self, ids: np.ndarray, ts: np.ndarray, values: np.ndarray | None) -> None:
        assert values is not None
        values = values.astype(self.dtype, copy=False)
        if self.kind == "min":
            values = -values if self.dtype.kind == "f" else ~values
        begin = 0
        while (begin := ci_extrema.update(self.known, ids, ts, values, begin)) < ids.size:
            self.known = ci_extrema.with_room(self.known)

    def forget(self, keys: np.ndarray) -> None:
        ci_extrema.forget(self.known, keys)

    def _expire(self, begin: int, end: int, horizon: int) -> None:
        ci_extrema.expire(self.known, begin, end, horizon)

    def state(self) -> State:
        ladder, keys, stairs, times, entries, order = self.known
        arrays = {"ladder": ladder, "keys": keys, "stairs": stairs, "times": times, "entries": entries}
        return {}, {"about": np.array([self.now, self.key_count])} | arrays | arrays_of(order)

    def restore(self, state: State) -> None:
        arrays = state[1]
        self.now, self.key_count = (int(each) for each in arrays["about"])
        ladder, keys, stairs = arrays["ladder"], arrays["keys"], arrays["stairs"]
        self.known = ci_extrema.Stairs(ladder, keys, stairs, arrays["times"], arrays["entries"], order_of(arrays))


_TURNED: dict[Op, Op] = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
