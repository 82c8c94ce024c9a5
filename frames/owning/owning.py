"""A frame owns its events: over the stream that it was found in, it is filled with these and no others.

By time, an event that shares the first or last ts of a frame lies in it, whether it is one of its own or not. Which are
is known by `skip` and `rows` (frames/finding/ties.py): from the detection itself, or from frames found again, in events
that are the same by their fingerprint (frames/owning/origin.py).
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa

from frames.detection import FramesFound, search
from frames.owning.meeting import Meeting
from frames.owning.origin import Origin
from kernels.frames.framing import BEGIN, COUNT, KEY
from swag.errors import BadEvents, BadQuery, SwagError
from swag.query.groupings import By
from swag.tables.columns import column
from swag.tables.key_columns import key_name

Spans = tuple[np.ndarray, np.ndarray]  # positions lo … hi of each frame's events, in the layout of a meeting
BY_TIME = "own=False takes all events from start to end"


@dataclass(frozen=True)
class Owner:
    """Who knows which events are a frame's own. ask: None if these are not the events that it was found in.

    must: ask even if no events share a ts, so that others are refused.
    """

    ask: Callable[[Meeting], Spans | None]
    must: bool = False


def own_spans(meeting: Meeting, owner: Owner | None) -> Spans:
    """The events of each frame: its own if that can be told, else all from start to end."""
    lo, hi = meeting.spans
    exact = meeting.rows is not None and bool((hi - lo == meeting.rows).all())  # then they are its own,
    exact &= not meeting.half_open  # unless it ends where its last event is, which is outside by time
    if owner is None or (not owner.must and (exact or meeting.rises)):
        return lo, hi
    return owner.ask(meeting) or (lo, hi)


def of_found(found: FramesFound) -> Owner:
    """Of frames that were found just now, all of them in order."""
    return Owner(lambda meeting: _from(meeting, found.skips(), found.fields[COUNT]))


def of_skips(skips: np.ndarray, rows: np.ndarray, must: bool = False) -> Owner:
    """Of frames that a detector with skips found. Below 0: it is not known, all events from start to end are its."""

    def ask(meeting: Meeting) -> Spans:
        (lo, hi), known = meeting.spans, skips >= 0
        return np.where(known, lo + skips, lo), np.where(known, lo + skips + rows, hi)

    return Owner(ask, must)


def of_origin(whole: pa.Table, meeting: Meeting, ts: str, by: By, own: bool | None, partial: bool) -> Owner | None:
    """Of frames that were found any time before. partial: some may lack their last pieces.

    own=True: the events must be those that the frames were found in. None: they are, or they are filled by time.
    """
    if own is not None and not isinstance(own, bool):
        raise BadQuery(f"own={own!r} is none of None, True, False.", BY_TIME)
    if own and meeting.moved:
        raise BadQuery("own=True fills frames with their own events, but before or after move their edges.", BY_TIME)
    if own is False or meeting.moved:
        return None
    origin = Origin.of(whole)
    if origin is None or (origin.ts, origin.by) != (ts, by):
        return _refuse(origin) if own else None

    def ask(meeting: Meeting) -> Spans | None:
        if not origin.is_of(meeting.table):
            return _refuse(origin) if own else None
        try:
            return found_again(origin, meeting, whole, partial)
        except SwagError:
            if own or origin.rows:
                raise
            return None  # a note from before the first event is of any stream: these are another's

    return Owner(ask, must=bool(own))


def _from(meeting: Meeting, skips: np.ndarray, rows: np.ndarray) -> Spans:
    first = meeting.spans[0] + skips
    return first, first + rows


def found_again(origin: Origin, meeting: Meeting, whole: pa.Table, partial: bool) -> Spans:
    """The frames of events that they were found in, looked up by frame_id, else by place; they must be as they were."""
    spec = origin.found_by()
    if spec is None:
        raise BadEvents(
            "some events share the first or last ts of a frame; which of them are its own is known only where the"
            " functions are that it was found by.",
            f"fr.detect again; {BY_TIME}",
        )
    found = search(spec, meeting.table, origin.ts, key_name(origin.by))
    here = _FoundHere(found, meeting, _their_keys(found, whole), partial)
    spans, same = here.looked_up(meeting.numbers)
    if not same.all() and meeting.rows is not None and here.keys is not None:
        again, fit = here.looked_up(here.by_place())
        spans, same = (again, fit) if fit.all() else (spans, same)
    if not same.all() or np.unique(meeting.numbers).size < meeting.numbers.size:
        _refuse_changed(meeting.numbers, same)
    return spans


def _their_keys(found: FramesFound, whole: pa.Table) -> np.ndarray | None:
    """Of the frames that were found before: their keys, as those that were found again count them."""
    if found.key is None:
        return None
    name, keys = found.key
    return keys.find(column(whole, name, "frames are found per"), name)


@dataclass(frozen=True, eq=False)
class _FoundHere:
    """Frames that were found again, and those of a meeting, which are looked up among them. keys: of the latter.

    partial: of these, some may lack their last pieces.
    """

    found: FramesFound
    meeting: Meeting
    keys: np.ndarray | None
    partial: bool

    def looked_up(self, places: np.ndarray) -> tuple[Spans, np.ndarray]:
        """The events of frames that are the ones in these places, and which of them are as they were."""
        meeting, found = self.meeting, self.found
        empty = ~meeting.there  # the last piece of a frame, alone
        known = (places >= 0) & (places < found.count)
        at = places[known]
        skips, rows = np.zeros(known.size, np.int64), np.zeros(known.size, np.int64)
        skips[known], rows[known] = found.skips()[at], found.fields[COUNT, at]
        if meeting.rows is not None and self.partial:
            rows = np.minimum(rows, meeting.rows)
        lo, hi = _from(meeting, skips, rows)
        same = known & self._end_there(hi)
        same[known] &= found.fields[BEGIN, at] == meeting.starts[known]
        if meeting.rows is not None:
            same &= rows == meeting.rows
        if self.keys is not None:
            same[known] &= self.keys[known] == found.fields[KEY, at]
        return (lo, np.where(empty, lo, hi)), same | empty

    def _end_there(self, hi: np.ndarray) -> np.ndarray:
        """Which frames of the meeting end with the event in front of these positions?"""
        when = np.append(self.meeting.laid.when, 0)  # frames that are not known are looked up there
        there = (hi > 0) & (hi < when.size)
        return there & (self.meeting.half_open | (when[np.where(there, hi - 1, -1)] == self.meeting.ends))

    def by_place(self) -> np.ndarray:
        """Of each frame the place of the one with its key, start and rows; of several, in order. -1: there are more,
        or fewer. Punctuations of single keys number frames in another order than that of stored events."""
        theirs: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        ours: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        places = np.full(self.meeting.numbers.size, -1)
        for place, same in enumerate(zip(*(self.found.fields[i].tolist() for i in (KEY, BEGIN, COUNT)), strict=True)):
            theirs[same].append(place)
        order = np.argsort(self.meeting.numbers, kind="stable")
        told = (self.keys, self.meeting.starts, self.meeting.rows)
        said = zip(*(np.asarray(each)[order].tolist() for each in told), strict=True)
        for frame, same in zip(order.tolist(), said, strict=True):
            ours[same].append(frame)
        for same, frames in ours.items():
            if len(theirs[same]) == len(frames):
                places[frames] = theirs[same]
        return places


def _refuse(origin: Origin | None) -> NoReturn:
    """Refuses own=True: the frames do not say in which events they were found, or these are others."""
    if origin is None:
        raise BadEvents(
            "own=True, but the frames do not say in which events they were found.",
            f"fr.detect writes it into the metadata of their schema, which other libraries may drop; {BY_TIME}",
        )
    raise BadEvents(
        f"own=True, but these are not the {origin.rows:,} events, by ts={origin.ts!r} and key={origin.key!r}, that the"
        " frames were found in.",
        f"the same rows in the same order, with the columns {', '.join(origin.columns)}; {BY_TIME}",
    )


def _refuse_changed(numbers: np.ndarray, same: np.ndarray) -> NoReturn:
    which = f"frame {numbers[~same][0]} is" if not same.all() else "a frame is there twice, or two are"
    raise BadEvents(
        f"some events share the first or last ts of a frame, and {which} not as it was found in them.",
        f"frames of one fr.detect, unchanged; {BY_TIME}",
    )
