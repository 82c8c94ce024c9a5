"""Events laid out key after key, each in order of ts, ties as they arrived: a frame is then two positions."""

from typing import NamedTuple

import numpy as np

from kernels.frames import fill as frame_fill
from kernels.rings import timeline


class LaidOut(NamedTuple):
    """order: the row at each position (None: as they are); when: its ts; segments: where keys begin, and all end."""

    order: np.ndarray | None
    when: np.ndarray
    segments: np.ndarray

    def spans(self, keys: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions lo … hi, without hi, of the events of a key with start <= ts <= end."""
        lo, hi = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
        frame_fill.spans(self.when, self.segments, keys, starts, ends, lo, hi)
        return lo, hi

    def places(self) -> np.ndarray:
        """The position of each row that is laid out."""
        if self.order is None:
            return np.arange(self.when.size)
        places = np.empty(self.order.max(initial=-1) + 1, np.int64)
        places[self.order] = np.arange(self.order.size)
        return places


def laid_out(instants: np.ndarray, ids: np.ndarray, count: int) -> LaidOut:
    """ids: the key of each row, empty if there is but one; only keys 0 … count - 1 are laid out, -1 is none."""
    if not ids.size:
        segments = np.full(count + 1, instants.size)
        segments[0] = 0
        if bool((instants[1:] >= instants[:-1]).all()):
            return LaidOut(None, instants, segments)
        order = np.argsort(instants, kind="stable")
        return LaidOut(order, instants[order], segments)
    rows = None if ids.min() >= 0 else np.flatnonzero(ids >= 0)
    known = ids if rows is None else ids[rows]
    segments = np.concatenate([[0], np.cumsum(np.bincount(known, minlength=count))])
    order = _by_key(known, count)
    order = order if rows is None else rows[order]
    when, who = instants[order], ids[order]
    if not bool(((when[1:] >= when[:-1]) | (who[1:] != who[:-1])).all()):
        order = order[np.lexsort((when, who))]
        when = instants[order]
    return LaidOut(order, when, segments)


def _by_key(ids: np.ndarray, count: int) -> np.ndarray:
    """The rows of key 0, then those of key 1 …, each as they arrived."""
    if bool((ids[1:] >= ids[:-1]).all()):
        return np.arange(ids.size)
    order, keys, starts = (np.empty(ids.size + extra, np.int64) for extra in (0, 0, 1))
    runs = timeline.group_by_key(ids, np.zeros(count, np.int64), order, keys, starts)
    if bool((keys[1:runs] > keys[: runs - 1]).all()):  # runs come by first appearance; segments are by key
        return order
    return np.argsort(ids, kind="stable")
