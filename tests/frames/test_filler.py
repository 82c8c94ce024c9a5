"""A Filler gives the pairs of `fill`, each once, whatever comes first, and keeps no more than it must."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.frames.cases import SPECS, streams, table
from tests.frames.test_detector import _cut, arrived, cut_streams
from tests.frames.test_fill import framings

NAMES = ["threshold >=, rows", "partition, rows", "boundary, width", "delta first <", "sum >=", "sum <", "median"]


def numbered(rows):
    return table(rows).append_column("row", pa.array([row["row"] for row in rows], pa.int64()))


def pairs(tables):
    return sorted(
        pair
        for t in tables
        if "row" in t.column_names
        for pair in zip(t["row"].to_pylist(), t["frame_id"].to_pylist(), strict=True)
    )


@given(data=st.data(), frames=framings(), rows=streams(), before=st.integers(0, 2), after=st.integers(0, 2))
@settings(max_examples=80, deadline=None)
def test_frames_and_events_in_any_interleaving(data, frames, rows, before, after):
    for key in (None, "k"):
        filler = fr.Filler(key=key, before=before, after=after)
        events = [{**row, "row": at} for at, row in enumerate(rows)]
        everything = {"events": events, "frames": frames.to_pylist()}
        waiting = {side: list(rows) for side, rows in everything.items()}
        moment, upto = {"events": "ts", "frames": "start"}, {"events": -9, "frames": -9}
        out = []
        while waiting["events"] or waiting["frames"]:
            side = data.draw(st.sampled_from([s for s in waiting if waiting[s]]))
            taken, waiting[side] = _cut(data.draw, waiting[side])
            if side == "events":
                out.append(filler.push_events(numbered(taken)))
            else:
                out.append(filler.push_frames(pa.Table.from_pylist(taken, schema=frames.schema)))
            left = min([row[moment[side]] for row in waiting[side]], default=99)
            t = data.draw(st.integers(-2, left - 1))
            out.append(filler.punctuate_events(t) if side == "events" else filler.punctuate_frames(t))
            upto[side] = max(upto[side], t)
            came = {s: [row for row in rows if row not in waiting[s]] for s, rows in everything.items()}
            assert filler.buffered == sum(row["ts"] > upto["frames"] - before for row in came["events"])
            assert filler.waiting_frames == sum(row["end"] + after > upto["events"] for row in came["frames"])
        wanted = fr.fill(frames, numbered(events), key=key, before=before, after=after)
        assert pairs(out) == pairs([wanted])
        filler.punctuate_frames(100)
        filler.punctuate_events(100)
        assert (filler.buffered, filler.waiting_frames) == (0, 0)


@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), steps=cut_streams(), rows=streams(), before=st.integers(0, 2), after=st.integers(0, 2))
@settings(max_examples=15, deadline=None)
def test_a_detector_feeds_a_filler(name, fragments, data, steps, rows, before, after):
    """Detection, promises and filling go on together: each stream in its own order, cut and punctuated as it likes."""
    rows = data.draw(st.sampled_from([rows, arrived(steps)]))  # another stream, or the very one the frames are of
    events = [{**row, "row": at} for at, row in enumerate(rows)]
    for key in (None, "k"):
        detector = fr.Detector(SPECS[name], key=key, fragments=fragments)
        filler, out = fr.Filler(key=key, before=before, after=after), []
        to_detect, to_fill = [*steps, ("finish", None)], list(events)
        while to_detect or to_fill:
            if to_fill and (not to_detect or data.draw(st.booleans())):
                taken, to_fill = _cut(data.draw, to_fill)
                out.append(filler.push_events(numbered(taken)))
                filler.punctuate_events(data.draw(st.integers(-2, min([row["ts"] for row in to_fill], default=99) - 1)))
                continue
            what, argument = to_detect.pop(0)
            if what == "push":
                detector.push(table(argument))
                continue
            out.append(filler.push_frames(detector.punctuate(argument) if what == "punctuate" else detector.finish()))
            if detector.promised is not None:
                filler.punctuate_frames(detector.promised)
        wanted = fr.fill(
            fr.detect(SPECS[name], table(arrived(steps)), key=key),
            numbered(events),
            key=key,
            before=before,
            after=after,
            own=False,
        )
        assert pairs(out) == pairs([wanted])
        filler.punctuate_events(100)
        assert (filler.buffered, filler.waiting_frames) == (0, 0)


@pytest.mark.parametrize("after", [0, 5])
def test_one_endless_frame_needs_no_more_than_two_punctuations_hold(after):
    detector, filler = fr.Detector(fr.Threshold("x", ">", 0), fragments=True), fr.Filler(after=after)
    most, filled = 0, 0
    for batch in range(200):
        events = {"ts": np.arange(100) + 100 * batch, "x": np.ones(100)}
        filled += filler.push_events(events).num_rows
        most = max(most, filler.buffered)
        detector.push(events)
        filled += filler.push_frames(detector.punctuate(100 * batch + 99)).num_rows
        filler.punctuate_frames(detector.promised)
        filler.punctuate_events(100 * batch + 99)
    assert filled == 20_000
    assert most <= 200
    whole = fr.Filler()
    for batch in range(200):
        whole.push_events({"ts": np.arange(100) + 100 * batch, "x": np.ones(100)})
    assert whole.buffered == 20_000  # without fragments it all waits for the frame


def test_promises_are_kept():
    filler = fr.Filler(key="k")
    filler.punctuate_events(5)
    with pytest.raises(sw.OutOfOrder, match="punctuate_events later"):
        filler.push_events({"ts": np.array([5]), "k": np.array(["a"])})
    filler.punctuate_frames(3)
    with pytest.raises(sw.OutOfOrder, match="punctuate_frames later"):
        filler.push_frames(
            {"frame_id": np.array([0]), "k": np.array(["a"]), "start": np.array([3]), "end": np.array([9])}
        )
    filler.push_events({"ts": np.array([6]), "k": np.array(["a"])})
    with pytest.raises(sw.BadType, match="one schema"):
        filler.push_events({"ts": np.array([6]), "k": np.array(["a"]), "y": np.array([1])})
    assert filler.buffered == 1
