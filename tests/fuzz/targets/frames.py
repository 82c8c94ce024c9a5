"""Frames of any spec over any stream: found as frames.theory has them, however it is cut; filled; summarised."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames import theory
from tests.frames import cases as known
from tests.frames.test_detector import assert_pieces
from tests.frames.test_fill import close, inside
from tests.fuzz.target import Target, calls, plain, wrong

ODD = [math.inf, -math.inf, 1e18, 1e-9, 5e-324, -0.0, 1e300]
FLOATS = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, 0.1, 7.25, None, math.nan] * 2 + ODD)
WHOLE = st.sampled_from([-1, 0, 1, 2, 3, None, -1, 0, 1, 2, 3, None, 2**40, 2**53 + 1])
ROW = st.tuples(st.integers(-3, 9) | st.sampled_from([100, -1000]), st.sampled_from("abc"), FLOATS, WHOLE)
COLUMN = st.sampled_from(["'x'", "'i'"])
NUMBER = st.sampled_from(["0", "1", "1.5", "2", "-1", "0.1", "3", "1e-9", "5e-324", "1e18"])
WIDTH = st.sampled_from(["1", "1.5", "2", "0.1", "1e-9", "5e-324", "1e18", "[0, 1, 2.5]", "[-1]", "[0.1, 1e18]"])
ORDER = st.sampled_from([">", ">=", "<", "<="])
AGGREGATES = st.sampled_from(
    [
        "sw.count()", "sw.count('x')", "sw.sum('x')", "sw.sum('i')", "sw.mean('x')", "sw.mean('i')", "sw.min('x')",
        "sw.max('i')", "sw.first('x')", "sw.last('i')", "sw.var('x')", "sw.std('i', ddof=0)", "sw.wmean('x', 'i')",
        "sw.cov('x', 'i')", "sw.corr('x', 'i')", "sw.quantile('x', 0.6)", "sw.median('i')",
    ]
)  # fmt: skip
SUMMARIES = [
    "sw.count()",
    "sw.count('x')",
    "sw.sum('i')",
    "sw.min('x')",
    "sw.max('i')",
    "sw.first('x')",
    "sw.last('i')",
]
EXACT = ("sw.count", "sw.min", "sw.max", "sw.first", "sw.last", "sw.sum('i')", "sw.quantile")


DRAWN = (fr.Threshold, fr.Boundary, fr.Delta, fr.Aggregate, fr.Session, fr.Between)
OTHERS = [  # what the properties try of kinds that are not drawn below; what patterns compute may lie on either side
    text
    for text in map(repr, (spec for spec in known.SPECS.values() if not isinstance(spec, (*DRAWN, fr.Pattern))))
    if "max_" not in text and "extent=" not in text
]
LONGEST = st.sampled_from(["", "", ", max_rows=3", ", max_duration=3", ", max_rows=4, max_duration=5"])
PREDICATE = st.sampled_from(["x > 1", "i < 1 OR x < 0", "x >= 0 AND i > 0", "i IS NULL", "x <> 1"])


@st.composite
def specs(draw: st.DrawFn) -> str:
    """As Python."""
    return f"{draw(kinds())[:-1]}{draw(LONGEST)})"


@st.composite
def kinds(draw: st.DrawFn) -> str:
    """Frames of any length but for those of Threshold."""
    kind = draw(st.sampled_from([*(each.__name__ for each in DRAWN), "predicate", "another"]))
    if kind == "another":
        return draw(st.sampled_from(OTHERS))
    column = draw(COLUMN)
    if kind == "Session":
        return f"fr.Session({draw(st.integers(0, 3))})"
    if kind == "Between":
        return f"fr.Between({draw(PREDICATE)!r}, {draw(PREDICATE)!r}, same={draw(st.booleans())})"
    if kind == "predicate":
        return f"fr.Threshold({draw(PREDICATE)!r}, partition={draw(st.booleans())})"
    if kind == "Threshold":
        rows, duration = draw(st.integers(1, 3)), draw(st.sampled_from([0, 0, 1, 3]))
        how = f"min_rows={rows}, min_duration={duration}, partition={draw(st.booleans())}"
        return f"fr.Threshold({column}, {draw(ORDER | st.just('=='))!r}, {draw(NUMBER)}, {how})"
    if kind == "Boundary":
        other = draw(st.sampled_from(["", f", 'i': {draw(WIDTH)}"]))
        return f"fr.Boundary({{'x': {draw(WIDTH)}{other}}})"
    if kind == "Delta":
        limits, measure = (
            draw(st.sampled_from(["1", "1.5", "2", "0.1", "1e18"])),
            draw(st.sampled_from(["first", "range"])),
        )
        return f"fr.Delta({column}, {limits}, measure={measure!r}, op={draw(ORDER)!r})"
    return f"fr.Aggregate({draw(AGGREGATES)}, {draw(ORDER)!r}, {draw(NUMBER)})"


CASES = st.fixed_dictionaries(
    {
        "spec": specs(),
        "rows": st.lists(ROW, max_size=14),
        "key": st.sampled_from([None, "k"]),
        "order": st.lists(st.integers(0, 13), max_size=6),  # which rows come early
        "punctuations": st.lists(st.integers(-4, 10), max_size=4),
        "margins": st.tuples(st.integers(0, 3), st.integers(-1, 3)),
    }
)


def check(case: dict[str, Any]) -> None:
    rows = [dict(zip(("ts", "k", "x", "i"), row, strict=True)) for row in case["rows"]]
    one = Framed(case["spec"], rows, case["key"])
    if not one.is_certain():
        return
    frames = one.detected()
    one.cut(case["order"], sorted(case["punctuations"]), *case["margins"])
    one.filled(frames, *case["margins"])
    one.summarised(frames, *case["margins"])
    one.as_query()


class Framed:
    """A spec over a stream."""

    def __init__(self, spec: str, rows: list[dict[str, Any]], key: str | None) -> None:
        self.text, self.rows, self.key = spec, rows, key
        self.spec = eval(spec, {"fr": fr, "sw": sw})
        self.table = known.table(rows)
        calls.append(f"spec = {spec}")
        calls.append(f"events = pa.table({self.table.to_pydict()}); frames = fr.detect(spec, events, key={key!r})")

    @property
    def kind(self) -> str:
        return type(self.spec).__name__.lower()

    def is_certain(self) -> bool:
        """What is rounded may lie on either side of a limit, and sums of floats that overflow are of no interest."""
        rounded = isinstance(self.spec, fr.Aggregate) and not any(f"({e}" in self.text for e in EXACT)
        odd = any(isinstance(row["x"], float) and abs(row["x"]) > 1e6 for row in self.rows)
        large = any(row["i"] is not None and row["i"] > 9 for row in self.rows)
        line = "sw.corr(" in self.text and abs(self.spec.c) == 1  # points on a line are that far apart, or nearly
        return not (rounded and (odd or large or line)) and not (isinstance(self.spec, fr.Delta) and odd)

    def detected(self) -> pa.Table:
        frames = fr.detect(self.spec, self.table, key=self.key)
        found, want = known.actual(frames, self.key), known.expected(self.spec, self.rows, self.key)
        if not known.same(found, want):
            raise wrong(f"detect: {self.kind}", f"{found}, expected {want}")
        return frames

    # -- cut anywhere -------------------------------------------------------------------------------------------------

    def cut(self, early: list[int], times: list[int], before: int, after: int) -> None:
        """Up to each punctuation all that it needs has come, and some more; the frames are the same."""
        calls.append(
            f"fr.Detector(spec, key={self.key!r}, fragments=…): rows {early} come early, punctuated at {times}"
        )
        calls.append(f"fr.Filler(key={self.key!r}, before={before}, after={after}) is given frames and events")
        for fragments in (False, True):
            detector = fr.Detector(self.spec, key=self.key, fragments=fragments)
            filler = fr.Filler(key=self.key, before=before, after=after)
            rest, came, out, filled = list(range(len(self.rows))), [], [], []
            for time in [*times, None]:
                now = [at for at in rest if time is None or self.rows[at]["ts"] <= time or at in early]
                rest = [at for at in rest if at not in now]
                came += now
                filled.append(filler.push_events(self._numbered(now)))
                detector.push(known.table([self.rows[at] for at in now]))
                found = detector.finish() if time is None else detector.punctuate(time)
                try:
                    self._pass(detector, filler, found, out, filled)
                except sw.SwagError:  # a piece may be handed out too early where its end is moved back
                    if not (fragments and after < 0):
                        raise
                    return
            self._same_frames(out, came, fragments)
            self._same_pairs(filled, came, before, after, fragments)

    def _pass(self, detector: Any, filler: Any, found: pa.Table, out: list[pa.Table], filled: list[pa.Table]) -> None:
        """Frames go on to a filler, and what was promised of them."""
        out.append(found)
        filled.append(filler.push_frames(found))
        if detector.promised is not None:
            filled.append(filler.punctuate_frames(detector.promised))

    def _in_order_of(self, came: list[int]) -> pa.Table:
        """The frames, where ties are in the order in which they came."""
        return fr.detect(self.spec, self.table.take(pa.array(came, pa.int64())), key=self.key)

    def _same_frames(self, out: list[pa.Table], came: list[int], fragments: bool) -> None:
        for table in out:
            if table.column_names != out[-1].column_names or self.key not in (None, *table.column_names):
                raise wrong("detector: columns", f"{table.column_names}, later {out[-1].column_names}")
        whole = pa.concat_tables(out, promote_options="permissive")
        if fragments:
            assert_pieces(whole.to_pylist())
            whole = fr.united(whole)
        found, want = known.actual(whole.sort_by("frame_id"), self.key), known.actual(self._in_order_of(came), self.key)
        if not known.same(found, want):
            raise wrong(f"detector: {self.kind}{' fragments' * fragments}", f"{found}, expected {want}")

    def _same_pairs(self, filled: list[pa.Table], came: list[int], before: int, after: int, fragments: bool) -> None:
        found, want = pairs(filled), self._inside(self._in_order_of(came), before, after)
        if found != want:
            moved = " moved" * bool(before or after)
            raise wrong(f"filler: {self.kind}{' fragments' * fragments}{moved}", f"{found}, expected {want}")

    def _inside(self, frames: pa.Table, before: int, after: int) -> list[tuple[int, int]]:
        """By definition: which row is in which frame."""
        return sorted(
            (at, frame["frame_id"])
            for at, row in enumerate(self.rows)
            for frame in frames.to_pylist()
            if inside(frame, row, self.key, before, after)
        )

    def _numbered(self, which: list[int]) -> pa.Table:
        return known.table([self.rows[at] for at in which]).append_column("row", pa.array(which, pa.int64()))

    # -- filled, summarised -------------------------------------------------------------------------------------------

    def filled(self, frames: pa.Table, before: int, after: int) -> None:
        calls.append(f"fr.fill(frames, events, key={self.key!r}, before={before}, after={after})")
        if before == after == 0:
            return  # then a frame has its own events, wherever others share their times
        found = fr.fill(frames, self._numbered(list(range(len(self.rows)))), key=self.key, before=before, after=after)
        want = self._inside(frames, before, after)
        if pairs([found]) != want:
            raise wrong("fill", f"{pairs([found])}, expected {want}")

    def summarised(self, frames: pa.Table, before: int, after: int) -> None:
        if before == after == 0:
            return
        calls.append(f"fr.summarize(frames, events, {SUMMARIES}, key={self.key!r}, before={before}, after={after})")
        what = [eval(text, {"sw": sw}) for text in SUMMARIES]
        found = fr.summarize(frames, self.table, what, key=self.key, before=before, after=after).to_pylist()
        for frame in found:
            own = theory.in_order([row for row in self.rows if inside(frame, row, self.key, before, after)])
            self._same_summary(what, frame, own, "summarize")

    def as_query(self) -> None:
        """A statement over frames: a frame's summary is over its own events."""
        calls.append(f"sw.evaluate([fr.FrameQuery(spec, …{SUMMARIES})], events, key={self.key!r})")
        what = [eval(text, {"sw": sw}) for text in SUMMARIES]
        asked = fr.FrameQuery(self.spec, [(None, each) for each in what], by=(self.key,) if self.key else None)
        found = sw.evaluate([asked], self.table, key=self.key).to_pylist()
        extents = self._extents()
        if len(found) != len(extents):
            raise wrong("statement: frames", f"{found}, expected {len(extents)}")
        for frame in found:
            which = frame[self.key] if self.key else None
            known_as = (which, frame["start"], frame["end"], frame["rows"])
            own = [each for name, each in extents if name == known_as]
            if not own:
                raise wrong("statement: frames", f"{frame}, expected one of {extents}")
            if len(own) == 1:
                self._same_summary(what, frame, own[0], "statement")

    def _extents(self) -> list[tuple[Any, list[dict[str, Any]]]]:
        found = []
        for value in dict.fromkeys(row[self.key] if self.key else None for row in self.rows):
            own = theory.in_order([row for row in self.rows if self.key is None or row[self.key] == value])
            framing = theory.final(self.spec, own)
            if isinstance(self.spec, fr.Threshold) and self.spec.partition:
                framing = [*framing, *theory.gaps(framing, own)]
            for s, e in framing:
                found.append(((value, own[s]["ts"], own[e]["ts"], e - s + 1), own[s : e + 1]))
        return found

    def _same_summary(self, what: list[Any], frame: dict[str, Any], own: list[dict[str, Any]], by: str) -> None:
        for aggregate in what:
            want = theory.aggregate(aggregate, own)
            got = frame[str(aggregate)]
            if got != want and not close(got, want):
                raise wrong(f"{by}: {aggregate.kind}", f"{aggregate} of {frame}: expected {want} of {own}")


def pairs(tables: list[pa.Table]) -> list[tuple[int, int]]:
    """Which row is in which frame."""
    both = [(t["row"].to_pylist(), t["frame_id"].to_pylist()) for t in tables if "row" in t.column_names]
    return sorted(pair for rows, ids in both for pair in zip(rows, ids, strict=True))


def target() -> Target:
    return plain("frames", CASES, check, lambda case: len(case["rows"]))
