"""What a detector remembers of some keys, handed over and taken back key by key; and keys that are let go."""

from typing import NamedTuple

import numpy as np

from frames.finding.core import DetectorCore
from frames.finding.intake import ID
from frames.scans.kinds import SCANS
from kernels.frames.framing import GAP_SLOT, KEY, SLOT

OPEN = {"frame": SLOT, "gap": GAP_SLOT}  # what may be open of a key, and where its slot is noted


class KeyMemory(NamedTuple):
    """What is remembered of some keys, and what is open of them.

    of_keys: arrays with a row for each key, as the scan's `memory` has them. frames: of the frame and of the gap that
    may be open, which keys have one, and arrays with a row for each of these: as `per_frame` has them, and its number.
    """

    of_keys: list[np.ndarray]
    frames: dict[str, tuple[np.ndarray, list[np.ndarray]]]


def remembered(core: DetectorCore, ids: np.ndarray) -> KeyMemory:
    """What is remembered of these keys; of none, the types and shapes of its arrays."""
    assert core.scan is not None
    frames = {}
    for name, which in OPEN.items():
        slots = core.scan.keyed[ids, which]
        has = slots >= 0
        frames[name] = has, [array[slots[has]] for array in (*core.scan.per_frame(), core.numbers)]
    return KeyMemory([array[ids] for array in core.scan.memory()], frames)


def remember(core: DetectorCore, ids: np.ndarray, memory: KeyMemory) -> None:
    """Of these keys the memory is this, and nothing else."""
    assert core.scan is not None
    scan = core.scan
    scan.add_keys(max(1, int(ids.max(initial=0)) + 1))
    for array, values in zip(scan.memory(), memory.of_keys, strict=True):
        array[ids] = values
    touched = np.zeros(scan.keyed.shape[0], bool)
    touched[ids] = True
    stay = ~touched[scan.frames[:, KEY]]
    parts = [[array[: scan.count][stay] for array in (*scan.per_frame(), core.numbers)]]
    for has, arrays in memory.frames.values():
        arrays[0][:, KEY] = ids[has]
        parts.append(arrays)
    all_ = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    order = np.argsort(all_[-1], kind="stable")
    *frames, core.numbers = (array[order] for array in all_)
    scan.put_frames(frames)


def forget(core: DetectorCore, ids: np.ndarray) -> None:
    """These keys are as if they had never been: what was open of them is not, and they have no events that wait to be
    read again."""
    assert core.scan is not None and core.schema is not None and core.clock is not None
    core.scan.add_keys(max(1, int(ids.max(initial=0)) + 1))
    new = SCANS[type(core.spec)](core.spec, core.schema, core.clock)
    new.add_keys(1)
    of_keys = [np.repeat(array[:1], ids.size, axis=0) for array in new.memory()]
    nothing = [array[:0].copy() for array in (*core.scan.per_frame(), core.numbers)]
    remember(core, ids, KeyMemory(of_keys, dict.fromkeys(OPEN, (np.zeros(ids.size, bool), nothing))))
    if core.events is not None:
        core.events.drop(core.scan, core.scan.frames)


def keys_in_use(core: DetectorCore) -> np.ndarray:
    """The keys of which anything is open, or waits."""
    assert core.scan is not None and core.keys is not None
    found = np.zeros(core.keys.count, bool)
    rests = core.scan.at_rest(core.scan.memory())[: found.size]
    found[: rests.size] = ~rests
    found[core.waiting.rows.ids] = True
    found[list(core.of_keys)] = True
    if core.events is not None:
        found[core.events.ids] = True
    if core.ends is not None:
        found[core.ends.keys(core.keys)] = True
    return np.flatnonzero(found)


def keep_keys(core: DetectorCore, ids: np.ndarray, owned: bool = True) -> None:
    """Forget all keys but these, which are those in use. They are numbered anew, in this order. owned: the table of
    keys is its own; else whoever owns that has seen to it."""
    assert core.scan is not None and core.keys is not None and core.schema is not None and core.clock is not None
    old = core.scan
    old.add_keys(int(ids.max(initial=0)) + 1)  # of some only events that wait have come
    place = np.zeros(max(core.keys.count, int(ids.max(initial=0)) + 1, core.scan.keyed.shape[0]), ID)
    place[ids] = np.arange(ids.size)
    new = SCANS[type(core.spec)](core.spec, core.schema, core.clock)
    new.add_keys(max(ids.size, 1))
    for mine, theirs in zip(new.memory(), old.memory(), strict=True):
        mine[: ids.size] = theirs[ids]
    frames = [array[: old.count].copy() for array in old.per_frame()]
    frames[0][:, KEY] = place[frames[0][:, KEY]]
    new.put_frames(frames)
    new.go_on(old.rest())
    core.scan = new
    if owned:
        core.keys.keep(ids)
    core.waiting.renumber(ids)
    if core.events is not None:
        core.events.renumber(place)
    if core.ties is not None:
        core.ties.keep_keys(ids)
    core.of_keys = {int(place[key]): upto for key, upto in core.of_keys.items()}
    if core.follower is not None:
        core.follower.renumber(ids)
