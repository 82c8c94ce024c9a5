"""Events that share a ts: which of them a frame begins with.

      ts      1 2 2 2 3 3        of one key, in order
      frame       [-----]        start 2, end 3, 4 rows; skip 1: one event at ts 2 comes before it

An interval does not say which of the events at its edges are inside. How many come before the first one, and the number
of rows, do; in any table that has all events of the key at that ts. So detection hands skips to filling, with the table
of frames.

Skips are found by position: kernels note the event AT which a frame became certain, and how many of its events came
before (LEAD).
"""

import numpy as np

from frames.finding.layout import LaidOut, laid_out
from frames.scans.scan import extended
from kernels.frames.framing import AT, BEGIN, COUNT, KEY, LEAD, ROWS, START
from swag.durable.state import State

NONE = np.zeros(0, np.int64)


def skips(laid: LaidOut, frames: np.ndarray, leads: np.ndarray, earlier: np.ndarray = NONE) -> np.ndarray:
    """Of frames (rows KEY … AT) in laid out events. earlier: by key, of a frame that began before these events.

    A frame that only the end of the stream made certain (AT is -1) ends with its key, or as many rows before its end
    as its lead is longer than itself.
    """
    keys, late, places = frames[KEY], frames[AT] < 0, laid.places()
    at = places[np.where(late, 0, frames[AT])] if places.size else np.zeros(keys.size, np.int64)
    first = np.where(late, laid.segments[keys + 1] - np.maximum(frames[COUNT], leads), at - leads)
    here = first - laid.spans(keys, frames[BEGIN], frames[BEGIN])[0]
    return np.where(first < laid.segments[keys], earlier[keys], here) if earlier.size else here


class Ties:
    """Skips while events arrive. Owns that of every open frame, by slot, and of every key's run that may become one.

    It is told of the events that were scanned (`among`), of the frames and runs in them, and of the frames that come
    out; `reported` are the skips of those that came out last. Events of one ts are scanned together: a punctuation lets
    through all of them or none.
    """

    def __init__(self) -> None:
        self.of_frames, self.of_runs, self.reported = NONE, NONE, NONE
        self._laid = laid_out(NONE, NONE, 1)

    def among(self, instants: np.ndarray, ids: np.ndarray, keys: int) -> "Ties":
        """The events that frames and runs are told of next."""
        self._laid, self.of_runs = laid_out(instants, ids, keys), extended(self.of_runs, keys, 0)
        return self

    def add_frames(self, frames: np.ndarray, known: np.ndarray | None = None) -> None:
        """Frames of the next slots. known: the skips by slot of all frames, if the scan has counted them."""
        if known is None:
            found = skips(self._laid, frames[:, : AT + 1].T, frames[:, LEAD], self.of_runs)
        else:
            found = known[self.of_frames.size : self.of_frames.size + frames.shape[0]]
        self.of_frames = np.concatenate([self.of_frames, found])

    def add_runs(self, state: np.ndarray) -> None:
        """What keys remember after these events: runs end with their key, as far as it has got."""
        begin, end = self._laid.segments[:-1], self._laid.segments[1:]
        first = end - state[:, ROWS]
        began = np.flatnonzero((begin <= first) & (first < end))
        self.of_runs[began] = first[began] - self._laid.spans(began, state[began, START], state[began, START])[0]

    def report(self, chosen: np.ndarray, moves: np.ndarray, left: int) -> None:
        """Frames come out; those that have ended are forgotten, others came from slot moves[0] to moves[1]."""
        self.reported = self.of_frames[chosen]
        self.of_frames[moves[1]] = self.of_frames[moves[0]]
        self.of_frames = self.of_frames[:left]

    def keep_keys(self, ids: np.ndarray) -> None:
        """Forget all other keys; these are numbered anew, in this order."""
        self.of_runs = extended(self.of_runs, int(ids.max(initial=-1)) + 1, 0)[ids]

    def state(self) -> State:
        return {}, {"of_frames": self.of_frames, "of_runs": self.of_runs.copy(), "reported": self.reported}

    def restore(self, state: State) -> None:
        _, arrays = state
        self.of_frames, self.of_runs, self.reported = arrays["of_frames"], arrays["of_runs"].copy(), arrays["reported"]
