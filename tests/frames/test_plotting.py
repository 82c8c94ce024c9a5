"""Pictures of frames: what is on them. How they look was looked at."""

import datetime
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest

import frames as fr
import swag as sw
from swag.cli import main


@pytest.fixture(autouse=True)
def no_figures_are_left():
    yield
    plt.close("all")


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def title(ax: Any) -> str:
    return str(ax.get_title(loc="left"))


def test_a_plot_of_a_million_points_draws_a_few_thousand_and_loses_no_spike():
    x = np.zeros(1_000_000)
    x[[3, 4, 500_000]] = 9, np.nan, -9
    events = {"ts": np.arange(x.size), "x": x}
    ax = fr.plot(fr.detect(fr.Threshold("x", ">", 1, partition=True), events), events, y="x")
    assert len(ax.collections) == 2
    v = ax.lines[0].get_ydata()
    assert v.size < 5_000
    assert (np.nanmin(v), np.nanmax(v)) == (-9, 9)
    assert title(ax) == "1 frame over 1,000,000 events"


def test_a_plot_says_what_is_what():
    events = {"ts": np.arange(6), "x": np.array([0.0, 5, 6, 0, 1, 7])}
    ax = fr.plot(fr.detect(fr.Threshold("x", ">", 3, partition=True), events), events, y="x")
    assert legend(ax) == ["x", "gap", "frame", "x > 3"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("ts", "x")
    assert list(ax.lines[-1].get_ydata()) == [3, 3]


@pytest.mark.parametrize(
    ("spec", "levels"),
    [
        (fr.Threshold("x", "<", 9), [9]),
        (fr.Threshold("x", "<", 1e6), []),  # so far off that the signal would be a line
        (fr.Threshold("other", "<", 3), []),
        (fr.Boundary("x", breaks=[-1, 2, 4]), [2, 4]),
        (fr.Boundary("x", 2.5), [0, 2.5, 5, 7.5]),
        (fr.Boundary("x", 0.01), []),  # more lines than the signal leaves room for
        (fr.Delta("x", 2), []),
        (fr.Threshold("x < 6 AND 2 <= x AND other > 1"), [6, 2]),
        (fr.Threshold("x BETWEEN 3 AND 5 AND x < 1e6 AND x * 2 > 4"), [3, 5]),
        (fr.Threshold("x < 6 OR x > 8"), []),  # neither has to hold
        (fr.Between("x > 5", "x > 7"), [5, 7]),
    ],
)
def test_levels_of_the_signal_are_lines(spec, levels):
    events = {"ts": np.arange(10), "x": np.arange(10.0), "other": np.arange(10.0)}
    ax = fr.plot(fr.detect(spec, events), events, y="x")
    assert [line.get_ydata()[0] for line in ax.lines[1:]] == levels


def test_the_legend_has_what_is_drawn_in_any_of_the_axes():
    events = {"ts": np.arange(6), "k": ["a", "b"] * 3, "x": np.array([0.0, 5, 1, 6, 2, 0])}
    axes = fr.plot(fr.detect(fr.Threshold("x", ">", 4), events, key="k"), events, y="x")
    assert sorted(legend(axes[0])) == ["frame", "x", "x > 4"]  # of which the first has no frame


def test_a_key_that_no_event_has_and_axes_that_are_none_are_refused():
    events = {"ts": np.arange(4), "k": ["a1", "b1"] * 2, "n": [1, 2, 1, 2], "x": np.arange(4.0)}
    found = fr.detect(fr.Threshold("x", ">", 1), events, key=("k", "n"))
    with pytest.raises(sw.BadQuery, match=r'no event has \'a2\' as its "k". Hint: key=\("k", "a1"\)'):
        fr.plot(found, events, y="x", key=("k", "a2"))
    with pytest.raises(sw.BadQuery, match=r"no event has the key k a1, n 2"):
        fr.plot(found, events, y="x", key=(("k", "n"), ("a1", 2)))
    assert len(fr.plot(found, events, y="x", key=("k", "n"))) == 2  # as fr.detect takes them
    with pytest.raises(sw.BadQuery, match=r"ax=5 is no Axes"):
        fr.plot(found, events, y="x", key=("k", "a1"), ax=5)


def test_frames_without_metadata_have_no_levels_and_are_drawn():
    events = {"ts": [1, 2, 3], "x": [1.0, 5.0, 6.0]}
    found = fr.detect(fr.Threshold("x", ">", 3), events).replace_schema_metadata(None)
    assert legend(fr.plot(found, events, y="x")) == ["x", "frame"]


def test_nulls_and_silences_interrupt_the_line():
    #  ts   0 1 2 3 4 5      100      in one place there is no value, in one nothing for long
    events = pa.table({"ts": [0, 1, 2, 3, 4, 5, 100], "x": [1.0, 2.0, None, 3.0, float("nan"), 4.0, 5.0]})
    ax = fr.plot(fr.detect(fr.Threshold("x", ">", 9), events), events, y="x")
    assert np.array_equal(ax.lines[0].get_ydata(), [1, 2, np.nan, 3, np.nan, 4, np.nan, 5], equal_nan=True)
    assert list(ax.lines[1].get_ydata()) == [3, 4, 5]  # alone on their pieces: dots


def test_several_keys_are_small_multiples_and_are_named():
    events = {"ts": np.arange(6), "k": np.array(list("ababcc")), "x": np.arange(6.0)}
    frames = fr.detect(fr.Threshold("x", ">", 1), events, key="k")
    for key in (None, "k"):
        axes = fr.plot(frames, events, y="x", key=key)
        assert [title(ax) for ax in axes] == [
            "k a: 1 frame over 2 events", "k b: 1 frame over 2 events", "k c: 1 frame over 2 events",
        ]  # fmt: skip
        assert axes[0].get_legend() is not None and axes[1].get_legend() is None
    assert title(fr.plot(frames, events, y="x", key=("k", "b"))) == "k b: 1 frame over 2 events"
    with pytest.raises(sw.BadQuery, match="ax shows one"):
        fr.plot(frames, events, y="x", ax=axes[0])


def test_keys_beyond_int64_are_drawn_as_others_are():
    keys = pa.array([1, 2**64 - 1, 2**64 - 1], pa.uint64())
    events = pa.table({"ts": [1, 2, 3], "k": keys, "x": [1, 2, 3]})
    frames = fr.detect(fr.Session(1), events, key="k")
    assert [title(ax).split(":")[0] for ax in fr.plot(frames, events, y="x")] == ["k 1", f"k {2**64 - 1}"]
    assert title(fr.plot(frames, events, y="x", key=("k", 2**64 - 1))).endswith("1 frame over 2 events")
    with pytest.raises(sw.BadQuery, match="is no value of"):
        fr.plot(frames, events, y="x", key=("k", 2**64))


def test_of_many_keys_those_with_most_frames_are_shown():
    k = np.repeat(np.arange(20), 10)
    x = np.where((np.arange(200) % 10 < k // 2 + 1) & (np.arange(200) % 2 == 0), 5.0, 0.0)
    events = {"ts": np.tile(np.arange(10), 20), "k": k, "x": x}
    axes = fr.plot(fr.detect(fr.Threshold("x", ">", 1), events, key="k"), events, y="x")
    assert len(axes) == 6
    assert axes[0].figure.get_suptitle() == "6 of 20 keys, those with most frames"
    assert all(int(title(ax).split()[1].rstrip(":")) >= 8 for ax in axes)


def test_a_key_that_is_none_is_refused():
    events = {"ts": np.arange(4), "k": np.array(list("abab")), "x": np.arange(4.0)}
    frames = fr.detect(fr.Threshold("x", ">", 1), events, key="k")
    for key, says in ((7, "column and the value"), (("k", 3), "no value of"), (("K", "a"), '"k"'), ("a", "key is")):
        with pytest.raises(sw.SwagError, match=says):
            fr.plot(frames, events, y="x", key=key)
    for y in (3, ["x"], "z"):
        with pytest.raises(sw.SwagError):
            fr.plot(frames, events, y=y)


def test_frames_that_touch_are_parted_by_lines_and_many_are_a_band():
    events = {"ts": np.arange(10_000), "x": np.arange(10_000) // 1000, "fast": np.arange(10_000) // 10}
    ax = fr.plot(fr.detect(fr.Boundary("x", 1), events), events, y="x")
    shade, lines = ax.collections
    assert len(shade.get_paths()) == 1
    assert [path.vertices[0, 0] for path in lines.get_paths()] == list(range(1000, 10_000, 1000))
    assert legend(ax) == ["x", "frame", "the next begins", "cells of x"]
    ax = fr.plot(fr.detect(fr.Boundary("fast", 1), events), events, y="x")
    (band,) = ax.collections
    assert max(path.vertices[:, 1].max() for path in band.get_paths()) == 0.05
    assert legend(ax) == ["x", "frames (darker: more begin)"]
    often = fr.plot(fr.detect(fr.Threshold("x % 2", ">", 0), {"ts": np.arange(500), "x": np.arange(500)}),
                    {"ts": np.arange(500), "x": np.arange(500)}, y="x")  # fmt: skip
    assert legend(often)[1] == "in a frame (darker: more of the time)"


def test_frames_of_few_units_are_as_wide_as_they_are_and_parted_too():
    events = {"ts": np.arange(6), "x": np.arange(6.0)}
    shade, lines = fr.plot(fr.detect(fr.Delta("x", 2), events), events, y="x").collections
    assert len(shade.get_paths()) == 1
    assert [path.vertices[0, 0] for path in lines.get_paths()] == [2, 4]
    (shade,) = fr.plot(fr.detect(fr.Threshold("x", "==", 3), events), events, y="x").collections
    assert shade.get_paths()[0].vertices[:, 0].max() < 3.01  # of one event: two columns of pixels, not two units
    days = pa.table({"ts": pa.array([0, 10, 20, 30], pa.int32()).cast(pa.date32()), "x": [1.0, 5.0, 1.0, 1.0]})
    (shade,) = fr.plot(fr.detect(fr.Threshold("x", ">", 3), days), days, y="x").collections
    assert 10 < shade.get_paths()[0].vertices[:, 0].max() < 10.1


def test_the_band_says_how_much_of_the_time_is_in_frames():
    from frames.pictures.drawing import FrameSpans, _covered

    spans = FrameSpans(np.array([0, 4, 5, 20]), np.array([1, 6, 6, 29]))  # 2 + 3 (one inside another) + 10 units
    assert _covered(spans, np.array([0.0, 4.0, 8.0, 20.0, 30.0])).tolist() == [0.5, 0.75, 0.0, 1.0]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"), pa.date32()])
def test_timestamps_have_a_time_axis(kind):
    days = [datetime.date(2024, 3, 1) + datetime.timedelta(i) for i in range(5)]
    events = pa.table({"ts": pa.array(days).cast(pa.timestamp("us")).cast(kind), "x": [1.0, 5.0, 6.0, 1.0, 7.0]})
    ax = fr.plot(fr.detect(fr.Threshold("x", ">", 3), events), events, y="x")
    ax.figure.canvas.draw()
    assert "2024" in ax.xaxis.get_offset_text().get_text()
    assert ax.get_xlabel() == ("ts (Europe/Berlin)" if kind == pa.timestamp("us", "Europe/Berlin") else "ts")


def test_text_is_drawn_by_its_words():
    events = {"ts": [1, 2, 3, 4], "x": [1, 5, 6, 1], "level": ["info", "warn", "warn", "info"], "id": [*"abcd"]}
    found = fr.detect(fr.Threshold("x", ">", 3), events)
    ax = fr.plot(found, events, y="level")
    assert [each.get_text() for each in ax.get_yticklabels()] == ["info", "warn"]
    assert ax.lines[0].get_drawstyle() == "steps-post"  # there is nothing between two words
    with pytest.raises(sw.BadType, match="has 30 values"):
        fr.plot(found, {"ts": range(30), "id": [f"{i:02}" for i in range(30)]}, y="id")


def test_nothing_at_all_can_be_plotted():
    events = pa.table({"ts": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})
    assert title(fr.plot(fr.detect(fr.Threshold("x", ">", 3), events), events, y="x")) == "0 frames over 0 events"
    found = fr.detect(fr.Threshold("x", ">", 3), {"ts": [1], "x": [5.0]})
    fr.plot(found, events, y="x")


def test_the_command_line_says_if_a_file_has_several_series_and_no_key_was_given(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{t},r{t % 3},{t % 7}\n" for t in range(30))
    (tmp_path / "e.csv").write_text("ts,router,x\n" + rows)
    frames = ["frames", "WHERE x > 3", "--events", "e.csv", "--out", "f.csv", "--plot", "f.png"]
    assert main(frames) == 0
    assert 'has 3 values of "router", and there is no --key' in capfd.readouterr().err
    assert main([*frames, "--key", "router"]) == 0
    assert capfd.readouterr().err == ""


def widths(ax: Any) -> list[float]:
    """Of the shades, in parts of the picture's width."""
    (shades,) = ax.collections
    low, high = ax.get_xlim()
    return [float(np.ptp(path.vertices[:, 0])) / (high - low) for path in shades.get_paths()]


@pytest.mark.parametrize("ts", [5, datetime.datetime(2024, 3, 1, 9, 30)])
def test_a_frame_of_one_instant_is_seen_also_where_it_is_the_whole_picture(ts):
    events = {"ts": [ts], "x": [1.0]}
    ax = fr.plot(fr.detect(fr.Threshold("x", ">", 0), events), events, y="x")
    assert [0.001 < width < 0.01 for width in widths(ax)] == [True]


def test_a_key_of_few_events_beneath_one_of_many_has_frames_that_are_seen():
    events = {"ts": [*range(10_000), 3, 4], "k": ["long"] * 10_000 + ["short"] * 2, "x": [0.0] * 10_000 + [9.0] * 2}
    axes = fr.plot(fr.detect(fr.Threshold("x", ">", 1), events, key="k"), events, y="x")
    assert [0.001 < width < 0.01 for width in widths(axes[1])] == [True]
