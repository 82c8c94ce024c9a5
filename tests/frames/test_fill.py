"""Filling and summaries: events with start - before <= ts <= end + after of a frame of their key, and aggregates."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames import theory
from swag.stored import blocks
from tests import oracle
from tests.every_kind import options_of, others
from tests.examples import share
from tests.frames.cases import LATEST, SUM_OF_SQUARES, equal, streams, table

AGGREGATES = [
    sw.count(), sw.count("x"), sw.sum("x"), sw.sum("i"), sw.mean("x"), sw.min("x"), sw.max("i"), sw.first("x"),
    sw.last("i"), sw.var("x"), sw.std("i", ddof=0), sw.wmean("x", "i"), sw.cov("x", "i"), sw.corr("x", "i"),
    sw.quantile("x", 0.4), sw.quantile("i", 0.9, method="linear"), sw.median("x"),
    SUM_OF_SQUARES.alias("squares"), LATEST.alias("latest"),
]  # fmt: skip
FURTHER = [
    sw.skew("x"), sw.kurtosis("i"), sw.slope("x", "i"), sw.intercept("x", "i"), sw.r2("x", "i"), sw.product("x"),
    sw.any("b"), sw.all("b"), sw.count_if("b"), sw.arg_max("k", "x"), sw.arg_min("i", "x"), sw.first_n("k", 2),
    sw.last_n("x", 3), sw.decayed_sum("x", 2), sw.decayed_mean("x", 2), sw.decayed_count(3), sw.age(),
    sw.count_distinct("x"), sw.count_distinct("k"), sw.mode("i"), sw.mode("k"), sw.count_distinct("i", approx=True),
]  # fmt: skip
FURTHER += others((each.kind for each in AGGREGATES + FURTHER), "i")


@st.composite
def framings(draw, most=8):
    """Frames of any kind, overlapping or not, in any order, of keys that may have no events."""
    size = draw(st.integers(0, most))
    rows = []
    for number in range(size):
        start = draw(st.integers(0, 9))
        rows.append(
            {
                "frame_id": number,
                "k": "abd"[draw(st.integers(0, 2))],
                "start": start,
                "end": start + draw(st.integers(0, 4)),
            }
        )
    schema = pa.schema({"frame_id": pa.int64(), "k": pa.string(), "start": pa.int64(), "end": pa.int64()})
    return pa.Table.from_pylist(rows, schema=schema)


def inside(frame, row, key, before, after):
    return (key is None or frame[key] == row[key]) and frame["start"] - before <= row["ts"] <= frame["end"] + after


@given(frames=framings(), rows=streams(), before=st.integers(0, 3), after=st.integers(-1, 3))
@settings(max_examples=share(80), deadline=None)
def test_fill_gives_every_pair_in_input_order(frames, rows, before, after):
    for key in (None, "k"):
        filled = fr.fill(frames, table(rows), key=key, before=before, after=after)
        wanted = [
            (at, frame["frame_id"])
            for at, row in enumerate(rows)
            for frame in frames.to_pylist()
            if inside(frame, row, key, before, after)
        ]
        numbered = fr.fill(
            frames,
            table(rows).append_column("row", pa.array(range(len(rows)), pa.int64())),
            key=key,
            before=before,
            after=after,
        )
        pairs = list(zip(numbered["row"].to_pylist(), numbered["frame_id"].to_pylist(), strict=True))
        assert sorted(pairs) == wanted
        assert [row for row, _ in pairs] == [row for row, _ in wanted]
        assert filled.column_names == ["ts", "k", "x", "i", "frame_id"]


@given(frames=framings(), rows=streams(), before=st.integers(0, 3), after=st.integers(0, 3))
@settings(max_examples=share(50), deadline=None)
def test_summaries_are_the_aggregates_of_the_filled_frames(frames, rows, before, after):
    for key in (None, "k"):
        summary = fr.summarize(frames, table(rows), AGGREGATES, key=key, before=before, after=after)
        assert summary.select(frames.column_names).equals(frames)
        for frame, found in zip(frames.to_pylist(), summary.to_pylist(), strict=True):
            own = theory.in_order([row for row in rows if inside(frame, row, key, before, after)])
            for aggregate in AGGREGATES:
                wanted = theory.aggregate(aggregate, own)
                assert close(found[str(aggregate)], wanted), (
                    f"{aggregate}: {found[str(aggregate)]} != {wanted} of {own}"
                )


@given(frames=framings(), rows=streams(), before=st.integers(0, 3), after=st.integers(0, 3))
@settings(max_examples=share(50), deadline=None)
def test_summaries_of_further_aggregates_are_as_of_the_end_of_the_frame(frames, rows, before, after):
    rows = [{**row, "b": None if row["i"] is None else row["i"] > 0} for row in rows]
    events = table(rows).append_column("b", pa.array([row["b"] for row in rows], pa.bool_()))
    for key in (None, "k"):
        summary = fr.summarize(frames, events, FURTHER, key=key, before=before, after=after)
        for frame, found in zip(frames.to_pylist(), summary.to_pylist(), strict=True):
            own = theory.in_order([row for row in rows if inside(frame, row, key, before, after)])
            window = oracle.Window(own, frame["end"] + after)
            for aggregate in FURTHER:
                agg = oracle.agg(aggregate.kind, *aggregate.columns, **options_of(aggregate))
                wanted = oracle.aggregate(agg, window)
                assert oracle.same(wanted, found[str(aggregate)], oracle.tolerance(agg, window)), (aggregate, own)


def close(found, wanted):
    if isinstance(found, float) and isinstance(wanted, float | int) and math.isfinite(wanted):
        return abs(found - wanted) <= 1e-7 * max(1.0, abs(wanted))
    return equal(found, wanted)


def test_summaries_are_also_of_what_is_computed_of_aggregates():
    events = {"ts": np.arange(6), "x": np.array([1, 5, 9, 2, 0, 7])}
    found = fr.detect(fr.Threshold("x", ">", 1), events)
    both = fr.summarize(found, events, [sw.max("x") - sw.min("x"), sw.count(), sw.max("x * 2")])
    assert both.drop_columns(["frame_id", "start", "end", "rows"]).to_pylist() == [
        {"max(x) - min(x)": 7, "count()": 3, "max(x * 2)": 18}, {"max(x) - min(x)": 0, "count()": 1, "max(x * 2)": 14}
    ]  # fmt: skip
    assert fr.summarize(found, events, sw.max("x") > 7)["max(x) > 7"].to_pylist() == [True, False]
    with pytest.raises(sw.BadQuery, match="no window of its own"):
        fr.summarize(found, events, sw.max("x").over(sw.Rows(3)) - 1)
    with pytest.raises(sw.UnknownColumn, match=r'reads "y", but the events have: ts, x\.$'):
        fr.summarize(found, events, [sw.max("x * 2"), sw.sum("y")])


def test_margins_take_in_what_led_up_to_a_frame():
    frames = fr.detect(fr.Threshold("x", ">", 5), {"ts": np.arange(8), "x": np.array([0, 0, 9, 9, 0, 0, 0, 9])})
    commands = {"ts": np.array([0, 1, 3, 5, 6]), "what": np.array(list("abcde"))}
    assert fr.fill(frames, commands, before=1)["what"].to_pylist() == ["b", "c", "e"]
    assert fr.summarize(frames, commands, [sw.count()], before=2)["count()"].to_pylist() == [3, 2]


def test_an_event_may_lie_in_several_frames():
    frames = {"frame_id": np.array([7, 3]), "start": np.array([0, 2]), "end": np.array([4, 6])}
    filled = fr.fill(frames, {"ts": np.array([3, 1, 6])})
    assert filled.to_pydict() == {"ts": [3, 3, 1, 6], "frame_id": [7, 3, 7, 3]}


def test_fragments_fill_as_the_frame_they_unite_to():
    pieces = pa.table({
        "frame_id": [0, 1, 0, 1], "start": pa.array([0, 3, 4, None]), "end": pa.array([1, 4, 5, None]),
        "rows": [2, 1, 2, 0], "final": [False, False, True, True],
    })  # fmt: skip
    assert fr.united(pieces).to_pydict() == {"frame_id": [0, 1], "start": [0, 3], "end": [5, 4], "rows": [4, 1]}
    assert fr.fill(pieces, {"ts": np.arange(7)})["ts"].to_pylist() == [0, 1, 2, 3, 3, 4, 4, 5]
    assert fr.summarize(pieces, {"ts": np.arange(7)}, sw.count())["count()"].to_pylist() == [6, 2]


def test_columns_and_clocks_that_do_not_fit_are_refused():
    frames = {"frame_id": np.array([0]), "start": np.array([0]), "end": np.array([4])}
    with pytest.raises(sw.BadQuery, match="frame_id already"):
        fr.fill(frames, {"ts": np.arange(3), "frame_id": np.arange(3)})
    with pytest.raises(sw.BadType, match="cast the frames"):
        fr.fill(frames, {"ts": pa.array([1], pa.timestamp("s"))})
    with pytest.raises(sw.BadQuery, match="two columns"):
        fr.summarize(frames, {"ts": np.arange(3)}, [sw.count(), sw.count()])
    with pytest.raises(sw.BadQuery, match="not an aggregate"):
        fr.summarize(frames, {"ts": np.arange(3)}, ["count"])
    with pytest.raises(sw.UnknownColumn, match='"k"'):
        fr.fill(frames, {"ts": np.arange(3), "k": np.arange(3)}, key="k")
    with pytest.raises(sw.UnknownColumn, match="sum"):
        fr.summarize(frames, {"ts": np.arange(3)}, [sw.sum("x")])
    with pytest.raises(sw.BadQuery, match="integer column"):
        fr.fill(frames, {"ts": np.arange(3)}, before="2m")
    with pytest.raises(sw.SumOverflow):
        fr.summarize(frames, {"ts": np.arange(3), "x": np.array([2**62, 2**62, 1])}, [sw.sum("x")])


@pytest.mark.parametrize("chunk", [1, 3, blocks.CHUNK])
def test_frames_that_lie_inside_each_other(chunk, monkeypatch):
    """
    events   . . . . . . . . . . . .
    frames   [0                    ]      deeper and deeper, then one behind the other, then out again
               [1                ]
                 [2] [3  ]  [4 ]
               [5 ]
    """
    monkeypatch.setattr(blocks, "CHUNK", chunk)
    events = {"ts": np.arange(12), "x": np.array([5.0, 1, 4, 1, 3, 9, 2, 6, 5, 3, 5, 8]), "i": np.arange(12)}
    spans = [(0, 11), (1, 10), (2, 3), (4, 6), (8, 9), (1, 2)]
    starts, ends = zip(*spans, strict=True)
    frames = pa.table({"frame_id": range(6), "start": starts, "end": ends})
    found = fr.summarize(frames, events, AGGREGATES).to_pylist()
    rows = [{"ts": t, "x": float(events["x"][t]), "i": t} for t in range(12)]
    for (start, end), answers in zip(spans, found, strict=True):
        for aggregate in AGGREGATES:
            assert equal(answers[str(aggregate)], theory.aggregate(aggregate, rows[start : end + 1])), (
                start,
                aggregate,
            )


def test_many_events_on_several_cores(monkeypatch):
    rng = np.random.default_rng(3)
    events = pa.table(
        {
            "ts": np.sort(rng.integers(0, 50_000, 300_000)),
            "k": rng.integers(0, 500, 300_000),
            "x": rng.normal(size=300_000),
        }
    )
    frames = fr.detect(fr.Threshold("x", ">", 0, min_rows=2), events, key="k")
    monkeypatch.setenv("SWAG_THREADS", "4")
    several = fr.fill(frames, events, key="k", before=3)
    monkeypatch.setenv("SWAG_THREADS", "1")
    assert several.equals(fr.fill(frames, events, key="k", before=3))
    summary = fr.summarize(frames, events, [sw.count(), sw.sum("x"), sw.max("x"), sw.median("x")], key="k")
    counted = several.num_rows  # with margins: more
    assert counted > int(np.asarray(summary["count()"]).sum()) >= int(np.asarray(frames["rows"]).sum())
