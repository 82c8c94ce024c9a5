"""The conditions of many rules, as one index over the keys is asked for all of them."""

from typing import Any

import numpy as np

from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings.pairs import PairWindows
from swag.live.indexing.indexes import SubstreamIndex

KEY_BITS = 40  # of a pair in one number: the rule above, the key below


class Walks:
    """Which walk through an index names the candidates of which rule. It owns that, for one state of an index.

    Most rules are one walk, and all of these are one kernel call. Others (`<`, say, which most keys pass) are asked one
    by one.
    """

    def __init__(self, index: SubstreamIndex, conditions: list[tuple[Any, Any]], windows: PairWindows) -> None:
        self._index, self._conditions, self._windows = index, conditions, windows
        self._stamp = index.stamp
        known: dict[tuple[Any, Any], int | None] = {each: index.walk_of(*each) for each in dict.fromkeys(conditions)}
        walks = [known[each] for each in conditions]
        self._walked = np.array([rule for rule, walk in enumerate(walks) if walk is not None], np.int64)
        self._walks = np.array([walk for walk in walks if walk is not None], np.int64)
        self._single = [rule for rule, walk in enumerate(walks) if walk is None]

    def are_of(self, index: SubstreamIndex) -> bool:
        return index is self._index and index.stamp == self._stamp

    def candidates(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        """(rule, key) pairs, in order."""
        far, near = self._windows.far, self._windows.near
        since = at - np.minimum(far, min(at - int(EARLIEST), int(LATEST)))
        known = since[self._walked] >= self._index.horizon
        walked, walks = self._walked[known], self._walks[known]
        single = [*self._single, *self._walked[~known].tolist()]
        starts, keys = self._index.walk_each(walks, since[walked], at - near[walked])
        codes = [np.repeat(walked, np.diff(starts)) << KEY_BITS | keys]
        for rule in single:
            op, v = self._conditions[rule]
            found = self._index.candidates(int(far[rule]), op, v, at, int(near[rule]))
            codes.append(np.int64(rule << KEY_BITS) | found)
        code = np.sort(np.concatenate(codes))
        return code >> KEY_BITS, code & ((1 << KEY_BITS) - 1)
