"""Snapshots: what was saved answers as before; what is damaged or foreign is refused by the name of the defect."""

import datetime as dt
import gzip
import os
import resource
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import swag as sw
from swag.tables.keys import KeyTable
from tests.snapshots import recipe
from tests.test_engine_stateful import assert_identical, without_bytes

AGGREGATES = [
    sw.count(), sw.sum("x"), sw.sum("i"), sw.mean("x"), sw.max("x"), sw.min("i"), sw.std("y"), sw.first("x"),
    sw.quantile("x", 0.9), sw.median("i"), sw.wmean("x", "y"), sw.corr("x", "y"), sw.last("side"),
]  # fmt: skip


def filled(n=3000, **options):
    rng = np.random.default_rng(5)
    engine = sw.Engine(key="k", **options)
    windows = [sw.Rows(40), sw.Range("50s"), sw.Range(dt.timedelta(seconds=90), until="10s", closed="left")]
    engine.register([sw.Query(a, w) for a in AGGREGATES for w in windows if not (w == windows[2] and a.kind == "corr")])
    engine.register(sw.Query(sw.sum("x"), sw.Rows(9), name="bought", where="side = 'buy'"))
    for start in range(0, n, 500):
        engine.append(batch(rng, start, 500))
    return engine, rng


def batch(rng, start, n):
    return pa.table(
        {
            "ts": pa.array(np.arange(start, start + n), pa.timestamp("s")),
            "k": pa.array([f"key {i}" for i in rng.integers(0, 20, n)]),
            "side": pa.array(rng.choice(["buy", "sell"], n)),
            "x": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
            "y": rng.normal(size=n),
            "i": rng.integers(-9, 9, n),
        }
    )


@pytest.mark.parametrize("options", [{}, {"lateness": "20s"}, {"algorithm": "l-int"}], ids=str)
def test_answers_after_loading_are_those_of_before(tmp_path, options):
    engine, rng = filled(**options)
    engine.save(tmp_path / "snapshot")
    loaded = sw.Engine.load(tmp_path / "snapshot")
    assert_identical(loaded.lookup_all(), engine.lookup_all())
    more = batch(rng, 3000, 700)
    assert engine.append(more) == loaded.append(more)
    assert_identical(loaded.lookup_all(), engine.lookup_all())
    assert without_bytes(loaded.stats()) == without_bytes(engine.stats())


@pytest.mark.parametrize("aggregate", [sw.sum("x"), sw.var("x")], ids=str)
def test_landmark_intervals_answer_to_the_last_bit_where_rows_come_unevenly(tmp_path, aggregate):
    """Their groups follow the widths that were looked up, which are as many as there are numbers of rows."""
    rng = np.random.default_rng(1)
    ts, x = np.cumsum(rng.integers(1, 4, 300)), rng.normal(size=300)
    engine = sw.Engine(algorithm="l-int")
    engine.register(sw.Query(aggregate, sw.Range(20), name="q"))
    for rows in np.array_split(np.arange(300), 10):
        engine.append({"ts": ts[rows], "x": x[rows]})
        before = engine.lookup("q")
        engine.save(tmp_path / "snapshot")
        loaded = sw.Engine.load(tmp_path / "snapshot")
        assert loaded.lookup("q") == before
    assert loaded.append({"ts": [1000, 1001], "x": [0.1, 0.2]}) == engine.append({"ts": [1000, 1001], "x": [0.1, 0.2]})
    assert loaded.lookup("q", at=900) == engine.lookup("q", at=900)


def test_an_engine_without_events_can_be_saved(tmp_path):
    engine = sw.Engine(lateness=5)
    engine.register(sw.Query(sw.sum("x"), sw.Rows(2), name="s"))
    engine.save(tmp_path / "snapshot")
    loaded = sw.Engine.load(tmp_path / "snapshot")
    loaded.append({"ts": [1, 9], "x": [1, 2]})
    assert loaded.lookup("s") == 1


def test_saving_replaces_an_older_snapshot_or_leaves_it(tmp_path):
    path = tmp_path / "snapshot"
    engine, _ = filled(500)
    engine.save(path)
    first = path.read_bytes()
    engine.save(path)
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["snapshot"]


def places(folder):
    """Paths that nothing can be saved to, and why."""
    os.mkdir(folder / "folder")
    os.mkfifo(folder / "pipe")
    os.symlink(os.devnull, folder / "link to a device")
    os.symlink("circle", folder / "circle")
    (folder / "file").write_bytes(b"content")
    return [
        (folder / "folder", "it is a folder"),
        (folder / "pipe", "it is a pipe"),
        (os.devnull, "it is a device"),
        (folder / "link to a device", "it is a device"),
        (folder / "circle", "symbolic links"),
        (folder / "nowhere" / "snapshot", "there is no folder"),
        (folder / "file" / "snapshot", "Not a directory"),
        (folder / ("n" * 300), "File name too long"),
        ("nul\0", "embedded null"),
        ("", "it is a folder"),
    ]


def test_what_can_not_be_written_is_an_error_of_ours_and_stays_as_it_is(tmp_path):
    engine, _ = filled(50)
    for path, why in places(tmp_path):
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(sw.BadSnapshot) as found:
            engine.save(path)
        assert f'"{Path(path)}" can not be written: ' in str(found.value)
        assert why in str(found.value)
        assert found.value.hint
        assert sorted(os.listdir(tmp_path)) == before
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert (tmp_path / "file").read_bytes() == b"content"


def test_a_full_disk_leaves_the_older_snapshot(tmp_path):
    engine, _ = filled(500)
    engine.save(tmp_path / "snapshot")
    before, limits = (tmp_path / "snapshot").read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(sw.BadSnapshot, match="can not be written: File too large"):
            engine.save(tmp_path / "snapshot")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "snapshot").read_bytes() == before
    assert os.listdir(tmp_path) == ["snapshot"]


def test_a_link_is_written_through(tmp_path):
    engine, _ = filled(50)
    (tmp_path / "elsewhere").mkdir()
    os.symlink("elsewhere/snapshot", tmp_path / "link")
    for _ in range(2):  # what the link points at is made, then replaced
        engine.save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert os.listdir(tmp_path / "elsewhere") == ["snapshot"]
        assert sw.Engine.load(tmp_path / "elsewhere" / "snapshot").stats() == sw.Engine.load(tmp_path / "link").stats()


@pytest.mark.parametrize("path", [7, None, b"snapshot"])
def test_a_path_is_text(path):
    with pytest.raises(sw.BadType, match="not text"):
        sw.Engine().save(path)
    with pytest.raises(sw.BadType, match="not text"):
        sw.Engine.load(path)


def test_user_defined_functions_are_given_again(tmp_path):
    query = sw.Query(
        sw.aggregate("x", lift=lambda x: x * x, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0),
        sw.Rows(3),
        name="squares",
    )
    engine = sw.Engine()
    engine.register(query)
    engine.append({"ts": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
    engine.save(tmp_path / "snapshot")
    with pytest.raises(sw.BadSnapshot, match='"squares", whose functions are not in the file'):
        sw.Engine.load(tmp_path / "snapshot")
    assert sw.Engine.load(tmp_path / "snapshot", queries=[query]).lookup("squares") == 14.0


def test_damage_is_found_wherever_it_is(tmp_path):
    engine, _ = filled(500)
    path = tmp_path / "snapshot"
    engine.save(path)
    content = path.read_bytes()
    for at in np.linspace(20, len(content) - 1, 40).astype(int):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(sw.BadSnapshot, match="checksum"):
            sw.Engine.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a snapshot of swag"),
        (b"PAR1" + b"\0" * 100, "is not a snapshot of swag"),
        (b"SWAGSNAP" + (99).to_bytes(4, "little") + b"\0" * 100, "version 99; this swag reads versions 2 and 3"),
        (b"SWAGSNAP" + (2).to_bytes(4, "little") + b"\0" * 100, "checksum"),
    ],
)
def test_foreign_files_are_refused(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(sw.BadSnapshot, match=message):
        sw.Engine.load(tmp_path / "file")


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(sw.BadSnapshot, match="No such file"):
        sw.Engine.load(tmp_path / "nothing")


@pytest.mark.parametrize("written", [2, 3])
@pytest.mark.parametrize("name", recipe.RECIPES)
def test_snapshots_of_every_format_load_and_go_on(tmp_path, name, written):
    path = tmp_path / "snapshot"
    path.write_bytes(gzip.decompress((Path(recipe.__file__).parent / f"format-{written}-{name}.swag.gz").read_bytes()))
    loaded, engine = sw.Engine.load(path), recipe.make(name)
    for more in (None, 150, 200):
        if more is not None:
            assert loaded.append(recipe.batch(more)) == engine.append(recipe.batch(more))
        for query in engine.queries:
            if query.every is None:
                assert_identical(loaded.lookup(query.label), engine.lookup(query.label))
        assert loaded.emitted("ticks") == engine.emitted("ticks")


def test_a_snapshot_of_the_time_when_parentheses_named_columns_loads_and_goes_on(tmp_path):
    path = tmp_path / "snapshot"
    path.write_bytes(gzip.decompress((Path(recipe.__file__).parent / "format-3-parentheses.swag.gz").read_bytes()))
    old, engine = sw.Engine.load(path), recipe.with_parentheses()
    old.save(tmp_path / "again")
    several = [old, sw.Engine.load(tmp_path / "again"), engine]
    for more in (60, 80, 100):
        answers = [
            [each.lookup(query.label) for query in engine.queries if query.every is None]
            + [each.emitted("ticks"), each.filters("much")]
            for each in several
        ]
        for one in answers[:-1]:
            for found, expected in zip(one, answers[-1], strict=True):
                assert_identical(found, expected)
        for each in several:
            each.append(recipe.batch(more, 20))
    for each in several:  # what is registered now, is called as it is called now
        each.register(sw.Query(sw.sum("x * (i)"), sw.Rows(3), name="new"))
        each.append(recipe.batch(120, 20))
    assert len({str(each.lookup("new").to_pylist()) for each in several}) == 1


def test_time_that_passed_before_the_first_event_is_saved(tmp_path):
    for instant, late in ((7, [6]), (dt.datetime(2020, 1, 1), pa.array([0], pa.timestamp("us")))):
        engine = sw.Engine()
        engine.register(sw.Query(sw.count(), sw.Rows(2), name="n"))
        engine.advance(instant)
        engine.save(tmp_path / "snapshot")
        for each in (engine, sw.Engine.load(tmp_path / "snapshot")):
            with pytest.raises(sw.OutOfOrder):
                each.append({"ts": late})


def test_what_is_no_file_is_not_read(tmp_path):
    """A pipe would be waited for, and a device never end."""
    for path, why in places(tmp_path)[:4]:
        with pytest.raises(sw.BadSnapshot, match=f"can not be read: {why}"):
            sw.Engine.load(path)


@pytest.mark.parametrize(
    "ends", [[0, 2, 900], [0, 2, 1], [-5, 2, 4], [], [[0, 2, 4]], np.array([0, 2, 4], np.int32), [0.0, 2.0, 4.0]]
)
def test_keys_whose_ends_are_forged_are_refused(ends):
    text = np.frombuffer(b"abcd", np.uint8)
    with pytest.raises(ValueError, match=r"offset|end at|[Ll]ength|[Nn]egative"):
        KeyTable(pa.string()).restore(({}, {"ends": np.array(ends), "text": text}))
