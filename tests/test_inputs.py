"""Events in every form that people have them in give the answers of the same events as an Arrow table."""

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path

import duckdb
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given

import frames as fr
import swag as sw
from swag.files.files import Files, found

QUERY = sw.Query(sw.sum("x"), sw.Range(5), name="s")
TABLE = pa.table({"ts": [1, 2, 4, 9], "k": ["a", "b", "a", "b"], "x": [1.5, 2.5, None, 4.0]})
LATER = TABLE.slice(2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    pa.parquet.write_table(TABLE, folder / "t.parquet")
    pa.csv.write_csv(TABLE, folder / "t.csv")
    pa.feather.write_feather(TABLE, folder / "t.arrow")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    with pa.CompressedOutputStream(str(folder / "t.csv.zst"), "zstd") as file:
        file.write((folder / "t.csv").read_bytes())
    for number, part in enumerate((TABLE.slice(0, 1), TABLE.slice(1, 1), LATER)):
        pa.parquet.write_table(part, folder / f"part-{number}.parquet")
        pa.csv.write_csv(part, folder / f"part-{number}.csv")
    return folder


UNITS = st.tuples(st.sampled_from("YMWDhms") | st.sampled_from(["ms", "us", "ns"]), st.sampled_from([1, 1, 2, 25, 100]))


def test_times_with_a_zone_beside_times_without_one_are_refused():
    zoned, plain = dt.datetime(2024, 3, 1, 9, tzinfo=dt.UTC), dt.datetime(2024, 3, 1, 9)
    count = sw.Query(sw.count(), sw.Rows(2), name="n")
    for times in ([plain, None, zoned], [zoned, plain]):
        for events in ({"ts": [1] * len(times), "t": times}, [{"ts": 1, "t": each} for each in times]):
            with pytest.raises(sw.BadType, match="times with a time zone beside times without one"):
                sw.evaluate(count, events)
    for times in ([plain, plain], [zoned, None]):
        assert sw.evaluate(count, {"ts": [1, 2], "t": times})["n"].to_pylist() == [1, 2]


@given(
    st.lists(st.integers(-(10**6), 10**6) | st.none(), min_size=1, max_size=4),
    UNITS,
    st.sampled_from("Mm"),
    st.booleans(),
)
def test_times_of_numpy_in_any_unit_are_those_that_numpy_says(counts, unit, kind, as_list):
    """In steps of 25 seconds as well, in arrays and lists; of months and years there are no lengths."""
    dtype = f"{kind}8[{unit[1]}{unit[0]}]"
    values = np.array(["NaT" if count is None else count for count in counts], dtype)
    events = {"ts": range(len(counts)), "x": list(values) if as_list else values.astype(values.dtype.newbyteorder(">"))}
    if kind == "m" and unit[0] in "YM":
        with pytest.raises(sw.BadType, match='column "x" can not be read'):
            sw.evaluate(sw.Query(sw.last("x"), sw.Rows(1), name="x"), events)
        return
    found = sw.evaluate(sw.Query(sw.last("x"), sw.Rows(1), name="x"), events)["x"].combine_chunks()
    assert found.is_valid().to_pylist() == [count is not None for count in counts]
    known = found.drop_null().to_numpy(zero_copy_only=False)
    assert (known == values[~np.isnat(values)]).all()


def test_times_of_numpy_that_int64_can_not_hold_in_a_unit_of_arrow_are_refused():
    for dtype in ("M8[h]", "m8[h]", "M8[Y]"):
        with pytest.raises(sw.BadType, match="does not fit int64 in"):
            sw.evaluate(QUERY, {"ts": [1], "x": np.array([2**60], dtype)})


@pytest.mark.parametrize("out", ["pandas", "polars"])
def test_what_another_library_has_no_type_for_is_said(out):
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    query = sw.Query(sw.last("x"), sw.Rows(1), name="x")
    with pytest.raises(sw.BadType, match=f"can not be made a frame of {out}"):
        sw.evaluate(query, pa.table({"ts": [1], "x": union}), out=out)


def without_nulls(rows):
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


FORMS = {
    "a table": lambda folder: TABLE,
    "a batch": lambda folder: TABLE.to_batches()[0],
    "a dict": lambda folder: TABLE.to_pydict(),
    "a dict of arrays": lambda folder: {
        "ts": np.array([1, 2, 4, 9]), "k": np.array(["a", "b", "a", "b"]), "x": pa.array([1.5, 2.5, None, 4.0])
    },
    "a list of tables": lambda folder: [TABLE.slice(0, 1), *TABLE.slice(1).to_batches(1)],
    "a list of dicts": lambda folder: TABLE.to_pylist(),
    "dicts that lack what is null": lambda folder: without_nulls(TABLE.to_pylist()),
    "pandas": lambda folder: TABLE.to_pandas(),
    "pandas by ts": lambda folder: TABLE.to_pandas().set_index("ts"),
    "pandas by several": lambda folder: TABLE.to_pandas().set_index(["ts", "k"]),
    "polars": lambda folder: pl.from_arrow(TABLE),
    "polars, lazy": lambda folder: pl.from_arrow(TABLE).lazy().filter(pl.col("ts") > 0),
    "duckdb": lambda folder: duckdb.sql("SELECT * FROM TABLE_"),
    "parquet": lambda folder: folder / "t.parquet",
    "parquet as text": lambda folder: str(folder / "t.parquet"),
    "csv": lambda folder: folder / "t.csv",
    "csv, compressed": lambda folder: folder / "t.csv.gz",
    "csv, compressed otherwise": lambda folder: folder / "t.csv.zst",
    "arrow": lambda folder: folder / "t.arrow",
    "wildcards": lambda folder: folder / "part-*.parquet",
    "wildcards of csv": lambda folder: str(folder / "part-?.csv"),
    "several": lambda folder: [folder / "part-0.parquet", folder / "part-1.csv", folder / "part-2.parquet"],
    "a dataset": lambda folder: pa.dataset.dataset(folder / "t.parquet"),
}  # fmt: skip
TABLE_ = TABLE


@pytest.mark.parametrize("form", FORMS)
def test_whatever_events_come_in_they_are_answered_alike(form, folder):
    events = FORMS[form](folder)
    expected = sw.evaluate(QUERY, TABLE, key="k")
    assert sw.evaluate(QUERY, events, key="k").to_pylist() == expected.to_pylist()
    assert sw.evaluate(QUERY, TABLE, at=FORMS[form](folder), key="k")["s"].to_pylist() == sw.evaluate(
        QUERY, TABLE, at=TABLE, key="k")["s"].to_pylist()  # fmt: skip
    engine = sw.Engine(key="k")
    engine.register(QUERY)
    assert engine.append(FORMS[form](folder)) == 4
    assert sorted(engine.lookup("s").to_pylist(), key=str) == [{"k": "b", "value": 4.0}]
    assert fr.detect(fr.Threshold("x", ">", 2), FORMS[form](folder)).num_rows == 2


@pytest.mark.parametrize(
    ("events", "error", "message"),
    [
        ([{"ts": 1}, 7], sw.BadType, "event 1 of the list is 7, which is no dict"),
        ([{"ts": 1, "x": "a"}, {"ts": 2, "x": 3}], sw.BadType, 'column "x" can not be read'),
        ("nothing.parquet", sw.BadEvents, '"nothing.parquet" can not be read: No such file'),
        ("no*.parquet", sw.BadEvents, 'no file matches "no\\*.parquet"'),
        ("s3://bucket/t.parquet", sw.BadEvents, "is an address.*pyarrow.dataset"),
        ("trades.xlsx", sw.BadEvents, "ends in none of .parquet"),
        ("", sw.BadEvents, "'' is not the name of a file"),
        (Path("trades.json.gz"), sw.BadEvents, "of compressed files, only CSV is read"),
    ],
)
def test_what_can_not_be_read_is_said(events, error, message):
    with pytest.raises(error, match=message):
        sw.evaluate(QUERY, events)


def test_a_folder_is_refused_with_what_to_write(folder):
    with pytest.raises(sw.BadEvents, match=r"ends in none of"):
        sw.evaluate(QUERY, folder)
    (folder / "days.parquet").mkdir(exist_ok=True)
    with pytest.raises(sw.BadEvents, match=r"it is a folder. Hint: .*days.parquet/\*.parquet"):
        sw.evaluate(QUERY, folder / "days.parquet")


def test_files_of_other_columns_are_not_read_together(tmp_path):
    for name, table in {"a": {"ts": [1], "x": [1]}, "b": {"ts": [2], "y": [1]}}.items():
        pa.parquet.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    with pytest.raises(sw.BadEvents, match=r'a.parquet" has a column "x", and ".*b.parquet" has none'):
        sw.evaluate(QUERY, tmp_path / "*.parquet")


def test_types_of_files_that_have_nothing_in_common_are_named(tmp_path):
    for name, values in {"a": [1], "b": ["one"]}.items():
        pa.parquet.write_table(pa.table({"ts": [1], "x": values}), tmp_path / f"{name}.parquet")
    with pytest.raises(sw.BadEvents, match='column "x" is int64 in others, string in'):
        sw.evaluate(QUERY, tmp_path / "*.parquet")


CELLS = st.one_of(st.none(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False, width=32), st.booleans(),
                  st.sampled_from(["a", "01", "2020-01-05", "2020-01-05 10:00:00"]))  # fmt: skip


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=3))
def test_several_csv_files_are_read_as_their_rows_in_one(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("csv")
    header = "ts,x\n"
    lines = [[f"1,{'' if cell is None else cell}\n" for cell in part] for part in parts]
    for number, part in enumerate(lines):
        (folder / f"p{number}.csv").write_text(header + "".join(part))
    (folder / "whole.csv").write_text(header + "".join(line for part in lines for line in part))
    several = Files(found(folder / "p*.csv")).read()
    assert several.equals(Files([folder / "whole.csv"]).read())


def test_rows_are_read_in_order_of_the_names_of_files(folder):
    assert Files(found(folder / "part-*.parquet")).read().column("ts").to_pylist() == [1, 2, 4, 9]
    assert [t.num_rows for t in Files(found(folder / "part-*.csv")).batches(["x"], 3)] == [2, 2]


@pytest.mark.parametrize("out", ["pandas", "polars", "arrow"])
def test_answers_come_as_the_caller_likes(out):
    events = {"ts": [1, 2, 3], "x": [2**62 + 1, None, 5], "t": [dt.date(2020, 1, 1)] * 3}
    queries = [sw.Query(sw.max("x"), sw.Rows(1), name="m"), sw.Query(sw.last("t"), sw.Rows(2), name="t")]
    answers = sw.evaluate(queries, events, out=out)
    kinds = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table}
    assert isinstance(answers, kinds[out])
    values = answers["m"].to_pylist() if out == "arrow" else list(answers["m"])
    assert [None if value is pd.NA else value for value in values] == [2**62 + 1, None, 5]


def test_a_kind_of_answers_that_there_is_not_is_refused_before_anything_is_read():
    with pytest.raises(sw.BadQuery, match="out='numpy' is none of arrow, pandas, polars"):
        sw.evaluate(QUERY, "nothing.parquet", out="numpy")


def test_rows_of_a_file_that_changes_stay_as_they_were(tmp_path):
    pa.feather.write_feather(TABLE, tmp_path / "t.arrow", compression="uncompressed")
    engine = sw.Engine(key="k")
    engine.register(QUERY)
    engine.append(tmp_path / "t.arrow")
    (tmp_path / "t.arrow").write_bytes(b"\xff" * 5000)
    assert engine.lookup("s").to_pylist() == [{"k": "b", "value": 4.0}]


def test_what_other_libraries_can_not_compute_is_told_as_theirs():
    connection = duckdb.connect()
    connection.sql("CREATE TABLE gone AS SELECT 1 AS ts, 2 AS x")
    relation = connection.sql("SELECT * FROM gone")
    connection.sql("DROP TABLE gone")
    for events, why in [
        (pl.scan_parquet("nope.parquet"), "LazyFrame can not be computed: No such file or directory .*nope.parquet"),
        (pl.LazyFrame({"ts": [1]}).select("y"), 'LazyFrame can not be computed: unable to find column "y"'),
        ([relation, relation], "DuckDBPyRelation can not be computed: Catalog Error"),
        (relation, "DuckDBPyRelation can not be computed: Catalog Error: Table with name gone does not exist\\."),
    ]:
        with pytest.raises(sw.BadEvents, match=why):
            sw.evaluate(QUERY, events)
        with pytest.raises(sw.BadEvents, match=why):
            fr.detect(fr.Session(5), events)


def test_requests_that_are_no_table_are_called_so():
    for at in (pd.Index([1, 2]), pd.Series([1, 2]), pl.Series([1, 2]), np.array([1, 2]), [1, 2]):
        with pytest.raises(sw.BadType, match=r"^at is a time, or several, not a table of requests"):
            sw.evaluate(QUERY, TABLE, at=at)
    with pytest.raises(sw.BadType, match=r"^at is a float, which is no table"):
        sw.evaluate(QUERY, TABLE, at=3.5)


@pytest.mark.parametrize("kind", [pa.decimal128(5, -2), pa.decimal256(40, -2)])
def test_decimals_of_hundreds_are_whole_numbers(kind):
    events = pa.table({"ts": [1, 2, 3], "n": pa.array([Decimal("1E+2"), None, Decimal("1.2E+4")], kind)})
    assert fr.detect(fr.Threshold("n", ">", 100), events)["start"].to_pylist() == [3]
    aggregates = [sw.sum("n"), sw.max("n"), sw.sum("n + 1"), sw.count_if("n > 100.5")]
    queries = [sw.Query(aggregate, sw.Rows(3), f"q{i}") for i, aggregate in enumerate(aggregates)]
    last = sw.evaluate(queries, events).to_pylist()[-1]
    assert last == {"ts": 3, "q0": 12100, "q1": 12000, "q2": 12102, "q3": 1}
