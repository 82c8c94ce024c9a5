"""Since when rules are as they are: they are asked at every instant at which an event entered a window, or left it."""

from typing import Any

import numpy as np

from kernels.operators.numbers import EARLIEST
from kernels.rings import moves
from kernels.rings.pairs import PairWindows
from swag.live.alerting.watch import WatchedPairs
from swag.live.grouping import Grouping

ASKED = 1 << 21  # instants at a time


def began(grouping: Grouping, judge: Any, pairs: WatchedPairs, passing: np.ndarray, since: np.ndarray) -> np.ndarray:
    """The first instant from which on each has passed, or not, at every instant up to now.

    since: it was otherwise then (or nothing was known, EARLIEST). Where events that came later have changed how it
    stood at that very instant, that is when it began.
    """
    windows = judge.windows(pairs)
    counted = [_counted(grouping, pairs, each, since) for each in windows]
    if pairs.key.size > 1 and sum(starts[-1] for starts in counted) > ASKED:
        halves = np.array_split(np.arange(pairs.key.size), 2)
        return np.concatenate([began(grouping, judge, pairs.chosen(h), passing[h], since[h]) for h in halves])
    drifting = judge.drifting(pairs)  # these are asked now, too
    pair, instant = _moves(grouping, pairs, list(zip(windows, counted, strict=True)), since, drifting)
    passes, _ = judge.judge(pairs.chosen(pair), instant)
    when = since.copy()
    moves.began(pair, instant, passes, passing, when)
    return when


def _moves(
    grouping: Grouping,
    pairs: WatchedPairs,
    counted: list[tuple[PairWindows, np.ndarray]],
    since: np.ndarray,
    drifting: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(pair, instant), in order, each once: `since`, when an event entered a window of a pair or left it, and now for
    those that drift."""
    known = np.flatnonzero(since > EARLIEST)
    which, when = [known, drifting], [since[known], np.full(drifting.size, grouping.store.now)]
    for windows, starts in counted:
        out = np.empty(starts[-1], np.int64)
        if out.size:
            _run(grouping, pairs, windows, since, starts, out)
        which.append(np.repeat(np.arange(pairs.key.size), np.diff(starts)))
        when.append(out)
    pair, instant = np.concatenate(which), np.concatenate(when)
    own, ordered = np.empty(pair.size, np.int64), np.empty(pair.size, np.int64)
    starts = np.zeros(pairs.key.size + 1, np.int64)
    count = moves.in_order(pair, instant, starts, own, ordered)
    return own[:count], ordered[:count]


def _counted(grouping: Grouping, pairs: WatchedPairs, windows: PairWindows, since: np.ndarray) -> np.ndarray:
    """Where the instants of each pair begin, and the end."""
    starts = np.zeros(pairs.key.size + 1, np.int64)
    _run(grouping, pairs, windows, since, starts, np.zeros(0, np.int64))
    return starts


def _run(
    grouping: Grouping,
    pairs: WatchedPairs,
    windows: PairWindows,
    since: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
) -> None:
    """The kernel that finds when events moved into windows of pairs or out of them; with an empty `out`, it counts."""
    store = grouping.store
    moves.moves(store.main.arena.rings, store.ts.data, pairs.key, (since, store.now), windows, starts, out)
