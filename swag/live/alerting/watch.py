"""What was last seen of rules and keys, and when to look again at those that time alone may change.

bits      a row per key of which anything was seen, a column per rule; a key that passes nothing has none
queue     (due, rule, key) in order of time; new ones wait beside it until they are worth sorting in
"""

from typing import NamedTuple

import numpy as np

from kernels.key_filters import watching
from kernels.operators.numbers import LATEST
from swag.durable.state import State

KEY_BITS, SIDE_BITS = 40, 2
FIRST_ROOM = 16  # rows, and rules, that there is room for at first


class WatchedPairs(NamedTuple):
    """Rules (by their number) and keys."""

    rule: np.ndarray
    key: np.ndarray

    @property
    def code(self) -> np.ndarray:
        return self.rule << (KEY_BITS + SIDE_BITS) | self.key

    def chosen(self, which: np.ndarray) -> "WatchedPairs":
        return WatchedPairs(self.rule[which], self.key[which])


NO_PAIRS = WatchedPairs(np.zeros(0, np.int64), np.zeros(0, np.int64))


def pairs_of(code: np.ndarray) -> WatchedPairs:
    return WatchedPairs(code >> (KEY_BITS + SIDE_BITS), code & ((1 << KEY_BITS) - 1))


def sides_of(code: np.ndarray) -> np.ndarray:
    return code >> KEY_BITS & ((1 << SIDE_BITS) - 1)


class Watch:
    """It owns the bits of rules and keys, and the queue. Asked of it: bits, who is `ready`, and to note what was seen.

    A pair is in the queue at most once for each side (where that is not one of several edges: judging.py), from which
    it is watched until its time has come.
    """

    def __init__(self) -> None:
        self.rows = np.zeros(0, np.int32)  # of each key, 0: none
        self.bits = np.zeros((1, FIRST_ROOM), np.uint8)
        self._owner = np.full(1, -1)  # the key of a row
        self._due, self._code = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._fresh: list[tuple[np.ndarray, np.ndarray]] = []

    # -- room ---------------------------------------------------------------------------------------------------------

    def add_keys(self, count: int) -> None:
        if count > self.rows.size:
            self.rows = np.concatenate([self.rows, np.zeros(max(count, 2 * self.rows.size) - self.rows.size, np.int32)])

    def add_rules(self, count: int) -> None:
        width = self.bits.shape[1]
        if count > width:
            self.bits = np.hstack([self.bits, np.zeros((self.bits.shape[0], max(count, 2 * width) - width), np.uint8)])

    def _give_rows(self, keys: np.ndarray) -> None:
        """A row for each of these keys that has none."""
        new = keys[self.rows[keys] == 0]
        if not new.size:
            return
        new, free = np.unique(new), np.flatnonzero(self._owner[1:] < 0) + 1
        if free.size < new.size:
            free = self._emptied()
            new = np.unique(keys[self.rows[keys] == 0])  # some of the others may have given theirs back just now
        if free.size < new.size:
            more = max(FIRST_ROOM, new.size, self._owner.size)
            self._owner = np.concatenate([self._owner, np.full(more, -1)])
            self.bits = np.vstack([self.bits, np.zeros((more, self.bits.shape[1]), np.uint8)])
            free = np.flatnonzero(self._owner[1:] < 0) + 1
        chosen = free[: new.size]
        self._owner[chosen], self.rows[new] = new, chosen

    def _emptied(self) -> np.ndarray:
        """Rows of zeros go back; returns all that are free."""
        empty = (self._owner >= 0) & ~self.bits.any(axis=1)
        self.rows[self._owner[empty]] = 0
        self._owner[empty] = -1
        return np.flatnonzero(self._owner[1:] < 0) + 1

    # -- bits ---------------------------------------------------------------------------------------------------------

    def flags(self, pairs: WatchedPairs) -> np.ndarray:
        out = np.empty(pairs.key.size, np.uint8)
        watching.flags(self.rows, self.bits, pairs.key, pairs.rule, out)
        return out

    def mark(self, pairs: WatchedPairs, added: np.ndarray, removed: np.ndarray) -> None:
        self._give_rows(pairs.key[added > 0])
        watching.mark(self.rows, self.bits, *pairs[::-1], added.astype(np.uint8), removed.astype(np.uint8))

    def needed(self, count: int) -> np.ndarray:
        """The keys of which somebody was told, or is still to be: they can not be forgotten."""
        needed = np.zeros(count, bool)
        some = (self.bits & (watching.PASSING | watching.TOLD)).any(axis=1) & (self._owner >= 0)
        needed[self._owner[some]] = True
        return needed

    # -- the queue ----------------------------------------------------------------------------------------------------

    def release(self, now: int) -> WatchedPairs:
        """Those whose time has come leave the queue; each of them once, from whatever sides it was watched."""
        begin = np.searchsorted(self._due, now, "right")
        code = np.concatenate([self._code[:begin], *(code[due <= now] for due, code in self._fresh)])
        pairs = pairs_of(code)
        self.mark(pairs, np.zeros(code.size), watching.WATCHED << sides_of(code))
        self._due, self._code = self._due[begin:], self._code[begin:]
        self._fresh = [(due[due > now], code[due > now]) for due, code in self._fresh]
        return pairs_of(np.unique(pairs.code))

    def add(self, pairs: WatchedPairs, side: np.ndarray, due: np.ndarray) -> None:
        """Pairs that are not in the queue from that side; where nothing is ever due they stay out of it."""
        some = due < LATEST
        pairs, side, due = pairs.chosen(some), side[some], due[some]
        self.mark(pairs, watching.WATCHED << side, np.zeros(side.size))
        self._fresh.append((due, pairs.code | side << KEY_BITS))
        if sum(due.size for due, _ in self._fresh) > max(1024, self._due.size >> 3) or len(self._fresh) > 64:
            self._sort_in()

    def _sort_in(self) -> None:
        due, code = (np.concatenate(each) for each in zip(*self._fresh, strict=True))
        order = np.argsort(due)
        at = np.searchsorted(self._due, due[order])
        self._due, self._code = np.insert(self._due, at, due[order]), np.insert(self._code, at, code[order])
        self._fresh = []

    def empty(self) -> None:
        """Nobody is in the queue any more."""
        self._due, self._code, self._fresh = self._due[:0], self._code[:0], []
        self.bits &= np.uint8(watching.PASSING | watching.TOLD)

    def _keep(self, chosen: np.ndarray) -> None:
        self._due, self._code = self._due[chosen], self._code[chosen]

    # -- rules and keys that go ---------------------------------------------------------------------------------------

    def forget_rule(self, rule: int) -> None:
        if self._fresh:
            self._sort_in()
        self._keep(pairs_of(self._code).rule != rule)
        if rule < self.bits.shape[1]:
            self.bits[:, rule] = 0

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""
        if self._fresh:
            self._sort_in()
        self.add_keys(int(kept.max(initial=-1)) + 1)
        number = np.full(max(1, self.rows.size), -1)
        number[kept] = np.arange(kept.size)
        pairs = pairs_of(self._code)
        new = number[pairs.key]
        self._code = self._code - pairs.key + new
        self._keep(new >= 0)
        gone = (self._owner >= 0) & (number[self._owner] < 0)
        self.bits[gone] = 0
        self._owner = np.where((self._owner < 0) | gone, -1, number[self._owner])
        self.rows = self.rows[kept]

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in (self.rows, self.bits, self._owner, self._due, self._code))

    def state(self) -> State:
        """The bits of rules and keys, and the queue with all that waited beside it sorted in."""
        if self._fresh:
            self._sort_in()
        arrays: dict[str, np.ndarray] = {
            "rows": self.rows,
            "bits": self.bits.reshape(-1),
            "owner": self._owner,
            "due": self._due,
        }
        return {"rules": self.bits.shape[1]}, {**arrays, "code": self._code}

    def restore(self, state: State) -> None:
        header, arrays = state
        self.rows, self._owner = arrays["rows"], arrays["owner"]
        self.bits = arrays["bits"].reshape(-1, header["rules"])
        self._due, self._code = arrays["due"], arrays["code"]
