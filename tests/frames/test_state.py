"""Saved and restored at any point, a detector or a filler goes on as if nothing had happened."""

import datetime
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from swag.durable.state import State
from tests.examples import share
from tests.frames.cases import COMPILED, SPECS, streams, table

STEPS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.booleans()), min_size=1, max_size=6)


def written(state: State) -> State:
    """Through JSON and a file of arrays, so that only plain things survive."""
    header, arrays = state
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return json.loads(json.dumps(header)), {name: loaded[name] for name in loaded.files}


def reborn(detector: fr.Detector) -> fr.Detector:
    new = fr.Detector(detector.spec, ts=detector.ts, key=detector.key, fragments=detector.fragments)
    new.restore(written(detector.state()))
    return new


def frames_of(spec: Any, rows: list[dict], steps: Any, key: str | None, fragments: bool, skips: bool, saved: bool):
    """Every table that comes out, with its metadata, and what is promised with it."""
    detector, out, at, upto = fr.Detector(spec, key=key, fragments=fragments), [], 0, -1
    detector = detector.with_skips() if skips else detector
    for size, behind, punctuated in [*steps, (len(rows), 0, True)]:
        batch = [row for row in rows[at : at + size] if row["ts"] > upto]
        at += size
        detector = reborn(detector) if saved else detector
        detector.push(table(batch))
        detector = reborn(detector) if saved else detector
        if punctuated:
            upto = max([upto, *(row["ts"] - behind for row in batch)])
            out.append((detector.punctuate(upto), detector.promised, detector.buffered))
            detector = reborn(detector) if saved else detector
            out[-1] += (detector.skips.tolist() if skips else None,)
    out.append((detector.finish(), detector.promised, detector.buffered, None))
    assert reborn(detector).promised == detector.promised
    return [(found.to_pydict(), found.schema, found.schema.metadata, *rest) for found, *rest in out]


@pytest.mark.parametrize("name", COMPILED)
@settings(max_examples=share(20))
@given(rows=streams(), steps=STEPS, key=st.sampled_from(["k", None]), fragments=st.booleans(), skips=st.booleans())
def test_a_detector_goes_on_as_if_nothing_had_happened(name, rows, steps, key, fragments, skips):
    args = SPECS[name], rows, steps, key, fragments, skips
    assert repr(frames_of(*args, saved=True)) == repr(frames_of(*args, saved=False))


HALF_PAST_NINE = datetime.datetime(2024, 3, 1, 9, 30)
SAID = [
    7,
    np.int32(7),
    "2024-03-01T09:30:00",
    datetime.date(2024, 3, 1),
    HALF_PAST_NINE,
    HALF_PAST_NINE.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
    np.datetime64("2024-03-01T09:30:00.123", "ms"),
    np.datetime64("2024-03", "M"),
    pa.scalar(HALF_PAST_NINE, pa.timestamp("ns")),
]


@pytest.mark.parametrize("t", SAID, ids=repr)
def test_punctuations_before_the_first_event_are_saved_as_they_were_given(t):
    zone = "UTC" if getattr(t, "tzinfo", None) else None
    events = pa.table({"ts": pa.array([0, 0], pa.timestamp("ns", zone)), "x": [1.0, 2.0]})
    told, again = fr.Detector(fr.Threshold("x", ">", 1)), fr.Detector(fr.Threshold("x", ">", 1))
    told.punctuate(t)
    again.restore(written(told.state()))
    refusals = []
    for detector in (told, again):
        with pytest.raises(sw.OutOfOrder, match="promised none up to") as why:
            detector.push(events)
        refusals.append(str(why.value))
    assert refusals[0] == refusals[1]


def test_a_state_stays_as_it_was_saved():
    detector = fr.Detector(fr.Aggregate(sw.median("x"), "<", 9), key="k").with_skips()
    detector.push({"ts": [1, 2, 2, 3], "k": ["a", "b", "a", "a"], "x": [1.0, 2.0, 3.0, 4.0]})
    detector.punctuate(2)
    state = detector.state()
    before = repr(written(state))
    detector.push({"ts": [4, 5, 5], "k": ["c", "b", "a"], "x": [1.0, 20.0, 30.0]})
    detector.punctuate(5)
    assert repr(written(state)) == before


@pytest.mark.parametrize(
    "other",
    [
        fr.Detector(fr.Threshold("x", ">", 2)),
        fr.Detector(fr.Threshold("x", ">", 1), key="k"),
        fr.Detector(fr.Threshold("x", ">", 1), fragments=True),
    ],
)
def test_the_state_of_another_detector_is_refused(other):
    detector = fr.Detector(fr.Threshold("x", ">", 1))
    detector.push({"ts": [1], "x": [2.0]})
    with pytest.raises(sw.BadQuery, match="another detector"):
        detector.restore(other.state())
    assert detector.buffered == 1


def refilled(filler: fr.Filler) -> fr.Filler:
    new = fr.Filler(ts=filler.ts, key=filler.key, before=filler.before, after=filler.after)
    new.restore(written(filler.state()))
    return new


def filled(rows: list[dict], pieces: list[pa.Table], order: list[bool], key: str | None, margins: Any, saved: bool):
    """Everything that comes out of a filler that is fed events and frames in some order."""
    filler, out, events = fr.Filler(key=key, before=margins[0], after=margins[1]), [], iter(rows)
    frames = iter(pieces)
    for of_events in [*order, *[False] * len(pieces), *[True] * len(rows)]:
        filler = refilled(filler) if saved else filler
        if of_events and (row := next(events, None)) is not None:
            out.append(filler.push_events(table([row])))
            filler = refilled(filler) if saved else filler
            out.append(filler.punctuate_events(row["ts"] - 1))
        elif not of_events and (piece := next(frames, None)) is not None:
            out.append(filler.push_frames(piece))
        out.append((filler.buffered, filler.waiting_frames))
    return [each if isinstance(each, tuple) else (each.to_pydict(), each.schema) for each in out]


@given(
    rows=streams(ordered=True),
    order=st.lists(st.booleans(), max_size=20),
    key=st.sampled_from(["k", None]),
    margins=st.tuples(st.integers(-2, 2), st.integers(-2, 2)),
    fragments=st.booleans(),
)
def test_a_filler_goes_on_as_if_nothing_had_happened(rows, order, key, margins, fragments):
    detector, pieces = fr.Detector(fr.Threshold("x", ">", 0), key=key, fragments=fragments), []
    for row in rows:
        detector.push(table([row]))
        pieces.append(detector.punctuate(row["ts"] - 1))
    pieces.append(detector.finish())
    args = rows, pieces, order, key, margins
    assert repr(filled(*args, saved=True)) == repr(filled(*args, saved=False))


@pytest.mark.parametrize("state", [{}, None, b"", ({}, {}), (1, 2)])
def test_what_is_no_state_of_a_detector_is_refused(state):
    with pytest.raises(sw.BadSnapshot, match="is no state of a detector"):
        fr.Detector(fr.Delta("x", 1)).restore(state)
