"""Patterns of any shape over any stream: matched as frames.theory has them, however it is cut, and in an engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.frames import cases as known
from tests.frames.test_patterns import PATTERNS
from tests.fuzz.target import Target, calls, plain, wrong
from tests.fuzz.targets.frames import Framed

CONDITION = st.sampled_from(
    [
        "x > 0", "x < PREV(x)", "x >= PREV(x, 2)", "i <= 1", "i IS NULL", "i > 0 AND x < 1.5", "k = 'a' OR x > 1",
        "x < AVG(A.x)", "COUNT(*) < 3", "i > FIRST(A.i)", "SUM(A.i) > 2", "x > A.x", "k <> PREV(k)",
    ]
)  # fmt: skip
MEASURES = st.sampled_from(["", "", ", {'n': 'COUNT(*)', 'a': 'LAST(A.x)', 'i': 'SUM(i)', 'f': 'FIRST(i)'}"])
LENGTHS = st.sampled_from(["", "", "", ", min_rows=2", ", max_rows=3", ", min_duration=1, max_duration=4"])
FLOATS = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, -1.0, None, float("nan")])
ROW = st.tuples(st.integers(0, 9), st.sampled_from("ab"), FLOATS, st.sampled_from([-1, 0, 1, 2, 3, None]))
VALUES = {"n": sw.count(), "sum": sw.sum("i"), "least": sw.min("x"), "when": sw.last("ts")}


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """As Python. A is in every pattern, as conditions may be about it."""
    text = f"A {draw(PATTERNS)}"
    define = {name: draw(CONDITION) for name in "ABC" if name in text and draw(st.booleans())}
    extent = ", extent='open'" * draw(st.booleans())
    return f"fr.Pattern({text!r}, {define}{draw(MEASURES)}{draw(LENGTHS)}{extent})"


CASES = st.fixed_dictionaries(
    {
        "spec": patterns(),
        "rows": st.lists(ROW, max_size=10),
        "key": st.sampled_from([None, "k"]),
        "order": st.lists(st.integers(0, 9), max_size=4),
        "cuts": st.lists(st.integers(0, 10), max_size=3),
    }
)


def check(case: dict[str, Any]) -> None:
    rows = [dict(zip(("ts", "k", "x", "i"), row, strict=True)) for row in case["rows"]]
    one = Framed(case["spec"], rows, case["key"])
    one.detected()
    if one.spec.extent == "closed":
        one.cut(case["order"], sorted(case["cuts"]), 0, 0)
    if rows:
        in_engine(one, sorted(case["cuts"]))


def in_engine(one: Framed, cuts: list[int]) -> None:
    """What an engine says of matches as events come is what is said of all of them."""
    calls.append(f"engine.register(fr.FrameQuery(spec, …)); events in order of ts, cut at rows {cuts}")
    rows = sorted(one.rows, key=lambda row: row["ts"])
    engine, query = sw.Engine(key=one.key), fr.FrameQuery(one.spec, VALUES, name="q")
    engine.register(query)
    found: list[dict[str, Any]] = []
    for first, last in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        engine.append(known.table(rows[first:last]))
        found += engine.emitted("q").to_pylist()
    detector = fr.Detector(one.spec, key=one.key)
    detector.push(known.table(rows))
    so_far = set(detector.punctuate(1000)["frame_id"].to_pylist())
    stored = sw.evaluate(query, known.table(rows), key=one.key)
    want = stored.filter(pa.array([each in so_far for each in stored["frame_id"].to_pylist()], pa.bool_()))
    found.sort(key=lambda row: row["frame_id"])
    if repr(found) != repr(want.to_pylist()):
        raise wrong("engine: pattern", f"{found}, expected {want.to_pylist()}")


def target() -> Target:
    return plain("patterns", CASES, check, lambda case: len(case["rows"]))
