"""Since when rules are as they are: they are asked at every instant at which an event entered a window, or left it."""

from typing import Any

import numpy as np

from kernels.operators.numbers import EARLIEST
from kernels.rings import moves
from swag.live.alerting.watch import WatchedPairs
from swag.live.grouping import Grouping

ASKED = 1 << 21  # instants at a time


def began(grouping: Grouping, judge: Any, pairs: WatchedPairs, passing: np.ndarray, since: np.ndarray) -> np.ndarray:
    """The first instant from which on each has passed, or not, at every instant up to now.

    since: it was otherwise then (or nothing was known, EARLIEST). Where events that came later have changed how it
    stood at that very instant, that is when it began.
    """
    found = np.empty(pairs.key.size, np.int64)
    counts = sum(_counted(grouping, pairs, windows, since)[0] for windows in judge.windows(pairs))
    block = np.cumsum(counts) // ASKED
    for each in np.unique(block):
        some = np.flatnonzero(block == each)
        found[some] = _began(grouping, judge, pairs.chosen(some), passing[some], since[some])
    return found


def _began(grouping: Grouping, judge: Any, pairs: WatchedPairs, passing: np.ndarray, since: np.ndarray) -> np.ndarray:
    pair, instant = _moves(grouping, judge, pairs, since)
    passes, _ = judge.judge(pairs.chosen(pair), instant)
    otherwise = passes != passing[pair]
    starts = np.searchsorted(pair, np.arange(pairs.key.size + 1))
    last = np.full(pairs.key.size, -1)
    np.maximum.at(last, pair[otherwise], np.flatnonzero(otherwise))
    first = np.minimum(np.maximum(last + 1, starts[:-1]), np.maximum(starts[1:] - 1, 0))
    return np.where(starts[1:] > starts[:-1], np.append(instant, 0)[first], since)


def _moves(grouping: Grouping, judge: Any, pairs: WatchedPairs, since: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(pair, instant), in order, each once: `since`, and when an event entered a window of a pair or left it."""
    known = np.flatnonzero(since > EARLIEST)
    drifting = judge.drifting(pairs)  # these are asked now, too
    which, when = [known, drifting], [since[known], np.full(drifting.size, grouping.store.now)]
    for windows in judge.windows(pairs):
        counts, starts = _counted(grouping, pairs, windows, since)
        out = np.empty(starts[-1], np.int64)
        if out.size:
            _run(grouping, pairs, windows, since, starts, out)
        which.append(np.repeat(np.arange(pairs.key.size), counts))
        when.append(out)
    pair, instant = np.concatenate(which), np.concatenate(when)
    order = np.lexsort((instant, pair))
    pair, instant = pair[order], instant[order]
    again = np.flatnonzero((pair[1:] == pair[:-1]) & (instant[1:] == instant[:-1])) + 1
    return np.delete(pair, again), np.delete(instant, again)


def _counted(grouping: Grouping, pairs: WatchedPairs, windows: Any, since: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts = np.zeros(pairs.key.size + 1, np.int64)
    _run(grouping, pairs, windows, since, starts, np.zeros(0, np.int64))
    return np.diff(starts), starts


def _run(
    grouping: Grouping, pairs: WatchedPairs, windows: Any, since: np.ndarray, starts: np.ndarray, out: np.ndarray
) -> None:
    store = grouping.store
    moves.moves(store.main.arena.rings, store.ts.data, pairs.key, (since, store.now), windows, starts, out)
