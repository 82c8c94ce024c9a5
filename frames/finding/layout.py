"""Events laid out key after key, each in order of ts, ties as they arrived: a frame is then two positions."""

from typing import NamedTuple

import numpy as np

from frames.finding.intake import ID, chunks, in_parallel
from kernels.frames import fill as frame_fill
from kernels.stored import edges
from swag.tables.columns import fixed, room


class LaidOut(NamedTuple):
    """order: the row at each position (None: as they are); when: its ts; segments: where keys begin, and all end."""

    order: np.ndarray | None
    when: np.ndarray
    segments: np.ndarray

    def spans(self, keys: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions lo … hi, without hi, of the events of a key with start <= ts <= end."""
        lo, hi = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
        where = (np.ascontiguousarray(each, np.int64) for each in (keys, starts, ends))  # one kernel for all who ask
        frame_fill.spans(self.when, self.segments, *where, lo, hi)
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
    ids = ids.astype(ID, copy=False)
    if ids[0] >= 0 and edges.is_sorted(ids):
        segments = np.searchsorted(ids, np.arange(count + 1, dtype=ID))
        if edges.ordered(fixed(instants), segments):
            return LaidOut(None, instants, segments)
    return _by_key(fixed(instants), ids, count)


def _by_key(instants: np.ndarray, ids: np.ndarray, count: int) -> LaidOut:
    """Each core puts its share of the rows behind those of the shares before it, key by key."""
    slices = chunks(ids.size)
    counts = np.zeros((len(slices), count), np.int64)
    in_parallel(lambda part: frame_fill.count_keys(ids[slices[part]], counts[part]), range(len(slices)))
    segments = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    first = segments[:-1] + np.cumsum(counts, axis=0) - counts
    order, when, at = room(segments[-1], np.int64), room(segments[-1], np.int64), first.copy()

    def lay(part: int) -> bool:
        s = slices[part]
        return bool(frame_fill.lay_out(instants[s], ids[s], s.start, at[part], order, when))

    in_order = all(in_parallel(lay, range(len(slices))))
    seams = first[(first > segments[:-1]) & (first < segments[1:])]
    if not in_order or bool((when[seams] < when[seams - 1]).any()):
        order = order[np.lexsort((when, np.repeat(np.arange(count), np.diff(segments))))]
        when = instants[order]
    return LaidOut(order, when, segments)
