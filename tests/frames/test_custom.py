"""Custom frames: the logical operator, against its definition; the built-in kinds and windows, stated in it."""

from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames import theory
from tests.frames.cases import CUSTOM, SPECS, actual, expected, same, streams, table
from tests.frames.uncompiled import only_uncompiled, run_uncompiled

WHOLE = {"i": "CAST(i AS DOUBLE)"}  # where a null is NaN
ALWAYS = {"open": lambda e, s: True}
RESTATED = {  # the built-in kinds, and each in the logical operator
    "threshold": (fr.Threshold("x", ">", 1, min_rows=2), CUSTOM["custom threshold"]),
    "delta": (SPECS["delta first <"], CUSTOM["custom delta"]),
    "boundary": (SPECS["boundary, breaks"], fr.Custom(
        "x", state=(0, 0), **ALWAYS, update=lambda e, s: (1, _cell(e.x)),
        close=lambda e, s: s[0] == 1 and _cell(e.x) != s[1],
    )),
    "session": (SPECS["session"], fr.Custom(
        state=(0, 0), **ALWAYS, update=lambda e, s: (1, e.ts), close=lambda e, s: s[0] == 1 and e.ts - s[1] > 1,
    )),
    "state": (SPECS["state"], fr.Custom(
        WHOLE, state=(0, 0.0), **ALWAYS, update=lambda e, s: (1, e.i),
        close=lambda e, s: s[0] == 1 and e.i != s[1] and (e.i == e.i or s[1] == s[1]),
    )),
    "between": (SPECS["between"], fr.Custom(
        "x", state=0, open=lambda e, s: e.x > 1, update=lambda e, s: 1, close=lambda e, s: 2 * (s == 1 and e.x < 1),
    )),
    "between, same": (SPECS["between, same"], fr.Custom(
        {"x": "x", **WHOLE}, open=lambda e, s: e.i > 0, close=lambda e, s: 2 * (e.x > 0),
    )),
    "aggregate >=": (fr.Aggregate(sw.sum("i"), ">=", 3), fr.Custom(
        WHOLE, state=0.0, **ALWAYS, update=lambda e, s: s + _or_0(e.i), close=lambda e, s: 2 * (s + _or_0(e.i) >= 3),
        unfinished=False,
    )),
    "aggregate <": (fr.Aggregate(sw.sum("i"), "<", 3), fr.Custom(
        WHOLE, state=0.0, open=lambda e, s: _or_0(e.i) < 3, update=lambda e, s: s + _or_0(e.i),
        close=lambda e, s: s + _or_0(e.i) >= 3,
    )),
}  # fmt: skip


@numba.njit
def _cell(x: float) -> int:
    return -1 if x != x else int(x > 0) + int(x > 1) + int(x > 2.5)


@numba.njit
def _or_0(x: float) -> float:
    return x if x == x else 0.0


@only_uncompiled
@pytest.mark.parametrize("name", CUSTOM)
@settings(deadline=None)
@given(rows=streams())
def test_property_detection_follows_the_definition(name, rows):
    for key in (None, "k"):
        found = fr.detect(CUSTOM[name], table(rows), key=key)
        assert same(actual(found, key), expected(CUSTOM[name], rows, key))


@only_uncompiled
@pytest.mark.parametrize("name", RESTATED)
@settings(deadline=None)
@given(rows=streams())
def test_property_a_built_in_kind_stated_in_it_gives_the_same_frames(name, rows):
    a, b = (fr.detect(spec, table(rows), key="k") for spec in RESTATED[name])
    assert sorted(row[:4] for row in actual(a, "k")) == sorted(row[:4] for row in actual(b, "k"))


@only_uncompiled
@settings(deadline=None)
@given(rows=streams(), span=st.integers(1, 4))
def test_property_sliding_windows_by_time_that_look_ahead_are_frames(rows, span):
    """Each event begins one: those that look back, an event may begin several of."""
    rows = list({(row["ts"], row["k"]): row for row in rows}.values())  # a window holds all events of its first ts
    ahead = fr.Custom(
        overlap=True, state=(0, 0), **ALWAYS, update=lambda e, s: (1, s[1] if s[0] else e.ts),
        close=lambda e, s: s[0] == 1 and e.ts - s[1] >= span,
    )  # fmt: skip
    frames = fr.detect(ahead, table(rows), key="k")
    said = fr.summarize(frames, table(rows), [sw.count(), sw.max("i")], key="k", own=True)
    window = sw.Range(1, until=1 - span)
    queries = [sw.Query(sw.count(), window, "n"), sw.Query(sw.max("i"), window, "m")]
    windows = sw.evaluate(queries, table(rows), key="k")
    assert _sorted(said, "k", "start", "count()", "max(i)") == _sorted(windows, "k", "ts", "n", "m")


@only_uncompiled
@settings(deadline=None)
@given(rows=streams(), span=st.integers(1, 4))
def test_property_tumbling_windows_by_time_are_frames(rows, span):
    slots = fr.Custom(
        state=(0, 0), **ALWAYS, update=lambda e, s: (1, -(-e.ts // span)),
        close=lambda e, s: s[0] == 1 and -(-e.ts // span) != s[1],
    )  # fmt: skip
    said = fr.summarize(fr.detect(slots, table(rows)), table(rows), [sw.count(), sw.max("i")])
    window, every = sw.Range(span), sw.Every(time=span)
    queries = [sw.Query(sw.count(), window, "n", every=every), sw.Query(sw.max("i"), window, "m", every=every)]
    windows = sw.evaluate(queries, table(rows))
    assert _sorted(said, "count()", "max(i)") == _sorted(windows, "n", "m")


def _sorted(found: pa.Table, *names: str) -> list[Any]:
    return sorted(zip(*(found[name].to_pylist() for name in names), strict=True), key=str)


@only_uncompiled
@pytest.mark.parametrize("name", CUSTOM)
@settings(deadline=None)
@given(rows=streams(), cuts=st.lists(st.integers(0, 9), max_size=4), save=st.booleans())
def test_property_cutting_the_stream_anywhere_changes_nothing(name, rows, cuts, save):
    spec = CUSTOM[name]
    detector, found, said = fr.Detector(spec, key="k"), [], -1
    for t in [*sorted(cuts), 9]:
        detector.push(table([row for row in rows if said < row["ts"] <= t]))
        found.append(detector.punctuate(t))
        said = max(said, t)
        if save:
            again = fr.Detector(spec, key="k")
            again.restore(detector.state())
            detector = again
    found.append(detector.finish())
    whole = pa.concat_tables(found, promote_options="permissive")
    assert sorted(map(repr, actual(whole, "k"))) == sorted(map(repr, expected(spec, rows, "k")))


def test_custom_frames_follow_their_definition_however_the_stream_is_cut():
    run_uncompiled(__file__)


def test_sliding_and_hopping_windows_by_rows_are_frames():
    rng = np.random.default_rng(7)
    events = {"ts": np.cumsum(rng.integers(0, 3, 200)), "k": rng.integers(0, 3, 200), "x": rng.normal(size=200)}
    for rows, hop in ((3, 1), (4, 2), (2, 3)):
        frames = fr.detect(_windows(rows, hop), events, key="k")
        said = fr.summarize(frames, events, [sw.sum("x"), sw.count(), sw.max("x")], key="k", own=True)
        assert set(said["count()"].to_pylist()) == {rows}
        queries = [sw.Query(each, sw.Rows(rows), name) for name, each in (("s", sw.sum("x")), ("m", sw.max("x")))]
        windows = sw.evaluate(queries, events, key="k")
        keys, nth = np.asarray(windows["k"]), np.zeros(200, int)
        for key in range(3):
            nth[keys == key] = np.arange(1, (keys == key).sum() + 1)
        wanted = windows.filter(pa.array((nth >= rows) & ((nth - rows) % hop == 0)))
        assert sorted(zip(*(wanted[c].to_pylist() for c in ("k", "m")), strict=True)) == sorted(
            zip(*(said[c].to_pylist() for c in ("k", "max(x)")), strict=True)
        )
        assert np.allclose(sorted(wanted["s"].to_pylist()), sorted(said["sum(x)"].to_pylist()))


def _windows(rows: int, hop: int) -> fr.Custom:
    """Every hop-th event of a key begins a window of so many rows. Both are part of the state: one compiled scheme."""
    return fr.Custom(
        open=_opens, update=_counted, close=_is_full, state=(0, rows, hop), overlap=True, unfinished=False
    )  # fmt: skip


def _opens(event: Any, seen: Any) -> Any:
    return seen[0] % seen[2] == 0


def _counted(event: Any, state: Any) -> Any:
    return state[0] + 1, state[1], state[2]


def _is_full(event: Any, state: Any) -> Any:
    return 2 * (state[0] == state[1] - 1)


def test_events_in_several_frames_are_filled_into_each():
    events = {"ts": [1, 1, 2, 3], "x": [1.0, 2.0, 3.0, 4.0]}
    frames = fr.detect(_windows(3, 1), events)
    assert frames.select(["start", "end", "rows"]).to_pylist() == [
        {"start": 1, "end": 2, "rows": 3}, {"start": 1, "end": 3, "rows": 3},
    ]  # fmt: skip
    assert fr.fill(frames, events, own=True).select(["x", "frame_id"]).to_pylist() == [
        {"x": 1.0, "frame_id": 0}, {"x": 2.0, "frame_id": 0}, {"x": 2.0, "frame_id": 1},
        {"x": 3.0, "frame_id": 0}, {"x": 3.0, "frame_id": 1}, {"x": 4.0, "frame_id": 1},
    ]  # fmt: skip
    assert fr.summarize(frames, events, sw.sum("x"))["sum(x)"].to_pylist() == [6.0, 9.0]


def test_longer_frames_are_rejected_and_not_split():
    def of(**lengths: Any) -> list[int]:
        spec = fr.Custom("x", open=CUSTOM["custom threshold"].open, close=CUSTOM["custom threshold"].close, **lengths)
        return fr.detect(spec, {"ts": range(8), "x": [2.0, 2, 2, 0, 2, 0, 2, 2]})["rows"].to_pylist()

    assert of() == [3, 1, 2]
    assert of(max_rows=2) == [1, 2]
    assert of(min_rows=2, max_duration=1) == [2]


def test_what_is_no_function_or_no_state_is_refused():
    good = {"open": lambda e, s: True, "close": lambda e, s: False}
    for wrong, says in (
        ({"open": 3}, "no function"), ({"state": "a"}, "neither a number"), ({"state": ()}, "neither a number"),
        ({"overlap": 1}, "neither True"), ({"columns": 7}, "reads the columns"), ({"columns": "a b"}, "can not be"),
        ({"columns": "ts"}, "can not be"), ({"extent": "wide"}, "neither"), ({"min_rows": 0}, "min_rows"),
    ):  # fmt: skip
        with pytest.raises(sw.BadQuery, match=says):
            fr.Custom(**{**good, **wrong})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"open": lambda e, s: e.z > 1}, "open of .* does not compile"),
        ({"close": lambda e, s: "no"}, "close of .* gives"),
        ({"update": lambda e, s: (s, 1)}, "update of .* gives"),
    ],
)
def test_functions_that_do_not_fit_are_refused_before_they_run(wrong, says):
    spec = fr.Custom("x", **{"open": lambda e, s: True, "close": lambda e, s: False, **wrong})
    with pytest.raises(sw.BadQuery, match=says):
        fr.detect(spec, {"ts": [1], "x": [1.0]})


def test_a_function_that_raises_leaves_the_detector_as_it_was():
    spec = fr.Custom("i", open=lambda e, s: e.i > 0, close=lambda e, s: 5 if e.i > 8 else 7 // e.i > 9)
    detector = fr.Detector(spec)
    detector.push({"ts": [1, 2], "i": [1, 0]})
    with pytest.raises(sw.BadFunction, match="ZeroDivisionError"):
        detector.punctuate(2)
    again = fr.Detector(spec)
    again.restore(detector.state())
    with pytest.raises(sw.BadFunction, match="close gives 0, 1, 2 or -1"):
        fr.detect(spec, {"ts": [1, 2], "i": [1, 9]})


def test_integers_have_no_nan():
    functions = {"open": CUSTOM["custom threshold"].open, "close": CUSTOM["custom threshold"].close}
    with pytest.raises(sw.BadEvents, match="row 1 is null"):
        fr.detect(fr.Custom("x", **functions), {"ts": [1, 2], "x": pa.array([2, None])})
    wide = fr.Custom({"x": "CAST(i AS DOUBLE)"}, **functions)
    assert fr.detect(wide, {"ts": [1, 2], "i": pa.array([2, None])})["rows"].to_pylist() == [1]


def test_it_is_known_by_its_functions_and_in_its_own_process_only():
    spec = CUSTOM["custom threshold"]
    entry = spec.to_json()
    assert fr.Custom.from_json(entry) is spec
    assert fr.Custom.from_json({"custom": ["elsewhere", entry["custom"][1]]}) is None
    assert repr(spec) == 'fr.Custom(("x",), open=…, close=…, min_rows=2)'
    assert theory.final(spec, [{"ts": 1, "x": 2.0}, {"ts": 2, "x": 3.0}]) == [(0, 1)]
