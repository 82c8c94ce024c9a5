"""CI-MAX and CI-MIN as an engine uses them; see swag/substreams.py."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kernels import ci_extrema
from swag.substreams import MAX, MIN, CountIndex, Op, SubstreamIndex, order_of


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
        steps = [self._step(op, v)[0] for op, v in conditions if not math.isnan(v)] or [self._step(">", 0)[0]]
        self.state = ci_extrema.empty(np.unique(np.array(steps, self.dtype)))

    def _candidates(self, x: int, op: Op, v: float, now: int, near: int) -> np.ndarray:
        if math.isnan(v):
            return np.empty(0, np.int64)
        end = now - near
        step, reaching = self._step(op, v)
        if reaching:  # the largest threshold that is not above
            threshold = int(np.searchsorted(self.state.ladder, step, "right")) - 1
            if threshold >= 0:
                self.state = ci_extrema.with_room(self.state)
                return self._walked(ci_extrema.newer, self.state, threshold, x, end)
            return self.present(now - x, now)
        keys = self.present(now - x, now)
        if end < self.now:
            return keys
        threshold = int(np.searchsorted(self.state.ladder, step, "left"))
        return keys[: ci_extrema.without(self.state, threshold, x, keys)]

    def present(self, far: int, now: int) -> np.ndarray:
        return np.arange(self.key_count) if self.presence is None else self.presence.present(far, now)

    def _step(self, op: Op, v: float) -> tuple[Any, bool]:
        """The condition as a threshold that (turned) values reach, or must not reach."""
        if self.kind == "min":
            op, v = _TURNED[op], _turned(v, self.dtype)
        strict = op in (">", "<=")
        if self.dtype.kind == "f":
            return (np.nextafter(self.dtype.type(v), np.inf) if strict else self.dtype.type(v)), op in (">", ">=")
        step = v if math.isinf(v) else math.floor(v) + 1 if strict else math.ceil(v)
        return self.dtype.type(min(max(step, MIN), MAX)), op in (">", ">=")

    @property
    def _capacity(self) -> int:
        return self.state.keys.shape[0]

    def _grow(self, keys: int) -> None:
        self.state = ci_extrema.with_keys(self.state, keys)

    def _update(self, ids: np.ndarray, ts: np.ndarray, values: np.ndarray | None) -> None:
        assert values is not None
        values = values.astype(self.dtype, copy=False)
        if self.kind == "min":
            values = -values if self.dtype.kind == "f" else ~values
        begin = 0
        while (begin := ci_extrema.update(self.state, ids, ts, values, begin)) < ids.size:
            self.state = ci_extrema.with_room(self.state)

    def _expire(self, begin: int, end: int, horizon: int) -> None:
        ci_extrema.expire(self.state, begin, end, horizon)

    def saved(self) -> dict[str, np.ndarray]:
        state = self.state
        arrays = {name: getattr(state, name) for name in ("ladder", "keys", "stairs", "times", "entries")}
        about = np.array([self.now, self.key_count])
        return arrays | {"about": about} | state.order._asdict()

    def restored(self, arrays: dict[str, np.ndarray]) -> None:
        self.now, self.key_count = (int(each) for each in arrays["about"])
        ladder, keys, stairs = arrays["ladder"], arrays["keys"], arrays["stairs"]
        self.state = ci_extrema.Stairs(ladder, keys, stairs, arrays["times"], arrays["entries"], order_of(arrays))


_TURNED: dict[Op, Op] = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def _turned(v: float, dtype: np.dtype) -> float:
    """A threshold on the axis of turned values: -x for floats, ~x = -x - 1 for integers, which can not overflow."""
    return -v if dtype.kind == "f" else -v - 1
