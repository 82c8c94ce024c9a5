"""Frames of substreams that are cut in time, in this process: wherever cuts and blocks are, the frames are the same."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
from frames.spark.batch import joining
from frames.spark.batch.tasks import FrameTask
from swag.spark.batch.layout import WHOLE
from swag.tables.columns import Clock

SPECS = [
    fr.Threshold("x", ">", 0),
    fr.Threshold("x", ">", 0, min_rows=3, min_duration=2),
    fr.Threshold("x", "<=", 0, min_rows=2, partition=True),
    fr.Threshold("x", ">", 0, min_duration=4, partition=True),
    fr.Boundary("x", 1.0),
    fr.Boundary({"x": [0, 1], "y": 2}),
    fr.Boundary("x", 1.0, min_rows=2, min_duration=1),
    fr.Threshold("x > 0 OR y = 2", min_rows=2, partition=True),
    fr.State("x", min_rows=2),
    fr.State("y"),
]
TYPES = pa.schema({"t": pa.int64(), "k0": pa.string(), "e0": pa.float64(), "e1": pa.int64()})
OWN = {"frame_id": pa.int64(), "k0": pa.string(), "start": pa.int64(), "end": pa.int64(), "rows": pa.int64()}
BETWEEN = {"k0": pa.string(), "piece": pa.int64(), **dict.fromkeys(joining.NUMBERS, pa.int64())}

FAR = [5e25, 9.3e18, -1e300, -float("inf")]  # cells that int64 has no numbers for: one above, one below
values = st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, float("nan"), *FAR]))
keyed = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("ab"), values, st.integers(-2, 3)), max_size=40)


def laid_out(rows: list[tuple], cuts: dict[str, list[int]]) -> pa.Table:
    """By key, piece, t; keys without cuts are whole."""
    rows = sorted(rows, key=lambda row: (row[1], row[0]))
    pieces = [int(np.searchsorted(cuts[k], t, side="right")) if cuts[k] else WHOLE for t, k, _, _ in rows]
    columns = list(zip(*rows)) or [[], [], [], []]
    table = pa.Table.from_arrays([pa.array(c, kind) for c, kind in zip(columns, TYPES.types)], schema=TYPES)
    return table.append_column("piece", pa.array(pieces, pa.int64()))


def passed(step, task: FrameTask, table: pa.Table, batch: int) -> pa.Table:
    batches = table.to_batches(max_chunksize=batch)
    return pa.Table.from_batches(step(task, batches), schema=task.out)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=60)
@given(keyed, st.lists(st.integers(0, 13), max_size=5), st.lists(st.integers(0, 13), max_size=2), st.integers(1, 20))
def test_cuts_never_change_frames(spec, rows, cuts, others, block_rows):
    table = laid_out(rows, {"a": sorted(cuts), "b": sorted(others)})
    assert spec.cuts
    read = ["x", "y"]
    events = pa.table({"ts": table["t"], "k0": table["k0"], "x": table["e0"], "y": table["e1"]})
    expected = fr.detect(spec, events, key="k0")
    cells = {name: expected.schema.field(name).type for name in spec.reported if name != "kind"}
    kind = {"kind": pa.string()} if "kind" in expected.column_names else {}
    clock = Clock(pa.int64())
    task = FrameTask(
        ("k0",), {"k0": "k"}, "ts", tuple(read), clock, pa.schema({**OWN, **kind, **cells}), block_rows, spec
    )
    first = replace(task, by=("k0", "piece"), out=pa.schema({**BETWEEN, **cells}))
    found = passed(joining.segments, first, table, batch=block_rows)
    found = found.sort_by([("k0", "ascending"), ("piece", "ascending"), ("n", "ascending")])
    found = passed(joining.joined, task, found, batch=max(1, block_rows // 2))
    rank = {"a": [], "b": []}
    for row in expected.to_pylist():
        rank[row["k0"]].append({**row, "frame_id": len(rank[row["k0"]])})
    assert found.sort_by([("k0", "ascending"), ("frame_id", "ascending")]).to_pylist() == rank["a"] + rank["b"]
