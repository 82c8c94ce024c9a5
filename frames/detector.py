"""Detection while events arrive: push in any order, punctuate, and the frames decided so far come out.

Events wait until a punctuation promises that nothing older comes; then they are sorted and taken by the same scan as
stored events (scans/scan.py), whose memory of every key is all that is kept of them (Maier et al. 2012, 4.1 and 4.2).
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.core import DetectorCore
from frames.finding.intake import END_OF_TIME, START_OF_TIME, is_empty
from frames.finding.promises import promised, promised_end
from frames.finding.ties import Ties
from frames.owning.origin import Fingerprint, Origin
from frames.specs import Spec, check_spec
from frames.state import key_setting, nested
from frames.tables import Key, before_events, key_of
from swag.arguments import check_flag, check_name
from swag.durable.state import State
from swag.durable.state import part as part_of
from swag.errors import BadEvents, BadQuery, BadSnapshot, BadType
from swag.explain import many
from swag.query.as_call import shown
from swag.query.groupings import one_or_several
from swag.tables.columns import as_table
from swag.tables.key_columns import apart, joined, key_name


class Detector:
    """Frames of a stream. The result does not depend on how the stream is cut, or on the order between punctuations.

    fragments=True reports a frame that is certain but still open piece by piece, at every punctuation: pieces of one
    frame have one frame_id, are disjoint and in order; the last is marked `final` (with rows 0 and no interval if
    nothing is left to report).

    >>> import frames as fr
    >>> detector = fr.Detector(fr.Threshold("load", ">", 0.3))
    >>> detector.push({"ts": [1, 2, 3], "load": [0.5, 0.6, 0.1]})
    >>> detector.punctuate(3).to_pylist()
    [{'frame_id': 0, 'start': 1, 'end': 2, 'rows': 2}]
    >>> detector.finish().num_rows
    0

    Owns a core that finds the frames (frames/finding/core.py) and the fingerprint of all events, which the frames carry
    (frames/owning/origin.py). `state` hands all of it over, at any time.
    """

    def __init__(self, spec: Spec, *, ts: str = "ts", key: Key = None, fragments: bool = False) -> None:
        check_spec(spec)
        check_name(ts, "ts", 'ts="ts"')
        self._by = key_of(key, spec)
        check_flag(fragments, "fragments")
        self.spec, self.ts, self.key, self.fragments = spec, ts, one_or_several(self._by), fragments
        self._core = DetectorCore(spec, ts, key_name(self._by), fragments)
        self._origin, self._seen = Origin.of_search(spec, ts, self._by), Fingerprint()
        self._over = False

    def __repr__(self) -> str:
        options = f", key={shown(self.key)}" * (self.key is not None) + ", fragments=True" * self.fragments
        certain = int(np.count_nonzero(self._core.numbers >= 0))
        said = [f"{many(self.buffered, 'event')} buffered", f"{many(certain, 'frame')} open"]
        said += ["finished"] * self._over
        return f'<fr.Detector {self.spec!r}, ts="{self.ts}"{options}: {", ".join(said)}>'

    @property
    def buffered(self) -> int:
        """Events that wait for a punctuation."""
        return self._core.waiting.count

    @property
    def promised(self) -> int | None:
        """The latest t (in the unit of ts) such that no frame, or piece of one, with start <= t is still to come."""
        return END_OF_TIME if self._over else promised(self._core)

    def push(self, events: Any) -> None:
        """Take events, in any order, none at or before the last punctuation. All or nothing."""
        if self._over:
            raise BadEvents("the stream was finished; nothing can be pushed any more.", "make a new fr.Detector")
        table = as_table(events, keep=True)
        if is_empty(table):
            return
        rows, fields = self._core.take(joined(table, self._by) if len(self._by) > 1 else table)
        self._seen.add(fields, rows.ts, rows.ids, self._core.keys)

    @property
    def promised_end(self) -> int | None:
        """The latest t (in the unit of ts) such that no frame, or piece of one, with end <= t is still to come."""
        return END_OF_TIME if self._over else promised_end(self._core)

    def punctuate(self, t: Any, key: Any = None) -> pa.Table:
        """No event with ts <= t is still to come: of one key (a value, or a tuple), or of any. Returns the frames (or
        pieces) that this decides.

        >>> import frames as fr
        >>> detector = fr.Detector(fr.Threshold("load", ">", 0.3), key="router")
        >>> detector.push({"ts": [1, 1, 2], "router": ["a", "b", "a"], "load": [0.5, 0.6, 0.1]})
        >>> detector.punctuate(2, key="a").to_pylist()
        [{'frame_id': 0, 'router': 'a', 'start': 1, 'end': 1, 'rows': 1}]
        """
        if key is not None:
            return self._noted(self._punctuate_key(t, key))
        if self._core.clock is None:
            self._core.said.add(t, None)
            return self._noted(before_events(self.spec, self._by, self.fragments))
        return self._noted(self._core.advance(self._core.clock.instant(t, "t")))

    def _punctuate_key(self, t: Any, key: Any) -> pa.Table:
        """Of one key, which may be one that has not come yet."""
        if not self._by:
            raise BadQuery(f"punctuate(…, key={key!r}): this detector has no key.", 'fr.Detector(…, key="router")')
        if self._core.clock is None or self._core.keys is None:
            raise BadEvents("no event has come, so nobody knows what a key is.", "punctuate(t) of all keys")
        given = key if len(self._by) > 1 and isinstance(key, tuple) else (key,)
        if len(given) != len(self._by):
            raise BadQuery(f"key={key!r} is no key of {', '.join(self._by)}.", f"a tuple of {len(self._by)} values")
        column = self._core.keys.one(given if len(given) > 1 else given[0], self._by[0])
        if column is None:
            raise BadType(f"key={key!r} is no value of type {self._core.keys.type}.", "a value of the key column")
        return self._core.advance_key(column, self._core.clock.instant(t, "t"))

    def finish(self) -> pa.Table:
        """The stream is over: the rest of its frames."""
        if self._core.clock is None:
            table = before_events(self.spec, self._by, self.fragments)
        else:
            table = self._core.advance(END_OF_TIME, over=True)
        self._over = True
        return self._noted(table)

    def punctuate_before(self, t: int) -> pa.Table:
        """No event with ts < t, in the unit of ts, is still to come."""
        return self.punctuate(t - 1) if t > START_OF_TIME else self._noted(self._core.advance(None))

    def with_skips(self) -> "Detector":
        """The same, with `skips`: for who fills frames with their own events."""
        if getattr(self.spec, "overlap", False):
            raise BadQuery(f"{self.spec}: frames that overlap are filled when all events are there.", "fr.summarize")
        self._core.ties = Ties()
        return self

    @property
    def skips(self) -> np.ndarray:
        """Of the frames that came out last: how many events of their key that share their start came before them."""
        assert self._core.ties is not None
        return self._core.ties.reported

    def state(self) -> State:
        """All that it knows: a header of plain JSON, and arrays. A detector of the same arguments can go on with it."""
        header, arrays = nested({"core": self._core, "seen": self._seen})
        return {**header, "over": self._over, "of": self._settings()}, arrays

    def restore(self, state: State) -> None:
        """Go on from what a detector of the same arguments knew; what this one knew is forgotten."""
        header = state[0] if isinstance(state, tuple | list) and len(state) == 2 else None
        if not isinstance(header, dict) or "of" not in header:
            raise BadSnapshot(f"{state!r:.60} is no state of a detector.", "other.state(), of one made alike")
        if header["of"] != self._settings():
            raise BadQuery(
                f"the state is that of another detector: {header['of']}.", "fr.Detector with the same arguments"
            )
        self._core.restore(part_of(state, "core"))
        self._seen.restore(part_of(state, "seen"))
        self._over = header["over"]

    def _settings(self) -> dict[str, Any]:
        """What must be the same for a state to go on; functions are not compared."""
        return {"spec": repr(self.spec), "ts": self.ts, "key": key_setting(self._by), "fragments": self.fragments}

    def _noted(self, table: pa.Table) -> pa.Table:
        table = apart(table, self._by) if len(self._by) > 1 else table
        return self._origin.noted(table, self._seen, self._over)
