"""What a detector refuses leaves no trace; a batch without values may come as any type."""

import pyarrow as pa
import pytest

import frames as fr
import swag as sw

FAR = 1_700_000_000_000_000_000  # beyond what float64 counts exactly


def mixed(i: list[int | None], k: list[str | None] | None = None) -> pa.Table:
    columns = {"ts": list(range(len(i))), "x": [0.0] * len(i), "i": pa.array(i, pa.int64())}
    return pa.table(columns if k is None else columns | {"k": k})


@pytest.mark.parametrize(
    "values", [[None, FAR, FAR + 3, FAR + 4], [FAR, None, FAR + 4], [-(2**63), 2**63 - 1, 5], [None, None], [5]]
)
def test_integers_beside_floats_are_counted_from_a_value_that_is_there(values: list[int | None]) -> None:
    events = mixed(values)
    both, alone = fr.detect(fr.Delta({"x": 1.0, "i": 4}), events), fr.detect(fr.Delta("i", 4), events)
    assert both.select(["start", "end", "rows"]) == alone.select(["start", "end", "rows"])
    detector = fr.Detector(fr.Delta({"x": 1.0, "i": 4}))
    detector.push(events)
    assert detector.finish().select(["start", "end", "rows"]) == alone.select(["start", "end", "rows"])


def test_a_refused_batch_is_not_what_others_are_counted_from() -> None:
    events = mixed([FAR, FAR + 3, FAR + 4], ["a", "a", "a"])
    detector = fr.Detector(fr.Delta({"x": 1.0, "i": 4}), key="k")
    with pytest.raises(sw.SwagError):
        detector.push(mixed([5], [None]))
    detector.push(events)
    assert detector.finish().num_rows == fr.detect(fr.Delta({"x": 1.0, "i": 4}), events, key="k").num_rows == 2


def test_a_refused_batch_leaves_no_keys_behind_however_large() -> None:
    n = 140_000
    keys = [f"z{j % 1000}" for j in range(n - 1)] + [None]
    large = pa.table({"ts": [1] * n, "k": keys, "x": [1.0] * n})
    first, then = (
        pa.table({"ts": [0], "k": ["b"], "x": [1.0]}),
        pa.table({"ts": [1, 1, 2], "k": ["a"] * 3, "x": [1.0, -1, -1]}),
    )
    detector = fr.Detector(fr.Threshold("x", ">", 0), key="k")
    detector.push(first)
    with pytest.raises(sw.BadEvents, match="row 139999"):
        detector.push(large)
    detector.push(then)
    assert fr.fill(detector.finish(), pa.concat_tables([first, then]), key="k").num_rows == 2


def test_frames_that_were_moved_are_told() -> None:
    events = pa.table({"ts": [1, 1, 2, 2, 3], "x": [1.0, -1, 1, 1, -1]})
    frames = fr.detect(fr.Threshold("x", ">", 0), events)
    for start, end in ((50, 60), (-9, -8), (0, 9)):
        moved = frames.set_column(1, "start", pa.array([start] * frames.num_rows))
        moved = moved.set_column(2, "end", pa.array([end] * frames.num_rows))
        for ask in (
            lambda moved=moved: fr.fill(moved, events),
            lambda moved=moved: fr.summarize(moved, events, [sw.count()]),
        ):
            with pytest.raises(sw.SwagError):
                ask()


@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.int64(), pa.bool_()], ids=str)
def test_events_without_values_may_come_as_any_type(kind: pa.DataType) -> None:
    detector = fr.Detector(fr.Threshold("x", ">", 1))
    detector.push({"ts": [1, 2], "x": [2.0, 3.0]})
    detector.push({"ts": [3], "x": pa.nulls(1, kind)})
    detector.push({"ts": [4], "x": [0.0]})
    assert detector.finish()["rows"].to_pylist() == [2]
    with pytest.raises(sw.BadType, match="from the start"):
        late = fr.Detector(fr.Threshold("x", ">", 1))
        late.push({"ts": [1], "x": pa.nulls(1)})
        late.push({"ts": [2], "x": [2.0]})
