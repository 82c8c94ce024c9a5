"""The streams that are measured on: made from a seed, the same for every contender."""

from dataclasses import dataclass

import numpy as np

SECOND = 1000  # timestamps are in milliseconds
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
EPOCH = 1_700_000_000 * SECOND


@dataclass(frozen=True)
class Stream:
    """Events in order of time. All timestamps differ: peers let equal ones see each other, at each event we do not."""

    ts: np.ndarray
    x: np.ndarray
    key: np.ndarray | None = None

    def head(self, count: int) -> "Stream":
        return Stream(self.ts[:count], self.x[:count], None if self.key is None else self.key[:count])


def stream(count: int, spacing: str = "poisson", seed: int = 1) -> Stream:
    """One event per second on average; x is a price that wanders."""
    rng = np.random.default_rng(seed)
    if spacing == "poisson":
        gaps = np.maximum(1, np.rint(rng.exponential(SECOND, count))).astype(np.int64)
    else:
        gaps = np.full(count, SECOND)
    return Stream(EPOCH + np.cumsum(gaps), prices(rng, count))


def prices(rng: np.random.Generator, count: int) -> np.ndarray:
    return 100 + np.cumsum(rng.normal(0, 0.01, count))


def trades(count: int, symbols: int, seed: int = 2) -> Stream:
    """Volumes of trades; a few symbols are traded all the time, most now and then (Zipf), all of them at least once."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, symbols + 1) ** 0.8
    key = rng.choice(symbols, count, p=weight / weight.sum())
    if count >= symbols:
        key[rng.choice(count, symbols, replace=False)] = np.arange(symbols)
    base = stream(count, "poisson", seed)
    return Stream(base.ts, np.rint(rng.lognormal(4, 1, count)), key)


def requests(events: Stream, count: int, seed: int = 3) -> Stream:
    """Moments at which the features of some event's key are asked for, somewhere in the stream."""
    assert events.key is not None
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(events.ts[0], events.ts[-1], count))
    return Stream(ts, np.zeros(count), events.key[rng.integers(0, events.ts.size, count)])


def widths(count: int, shortest: int, longest: int) -> list[int]:
    """Window widths in equal ratios."""
    return [int(w) for w in np.geomspace(shortest, longest, count)]
