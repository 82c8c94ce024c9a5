"""Late rows in their place, against plain lists: what is kept, ranks, and every structure with every operator."""

import bisect
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.key_filters import ci_count, ci_extrema
from kernels.rings.timeline import HEAD
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.indexing.indexes import CountIndex, SumIndex
from swag.live.late_rows import displacing, put_in_place
from swag.live.store import Retention
from swag.live.structures.intervals import Dyadic, Landmark, Running, RunningFloats, Structure
from swag.live.structures.ranks import SortedRuns
from swag.query.kind import Part
from swag.query.windows import Depth
from tests.kernels.checks import check, check_sorted_runs
from tests.kernels.harness import COLUMNS, COUNTED, FEWER, Batch, Plan, Stream, check_arena, plans
from tests.kernels.operators import NAMED, OPERATORS, Operator, floats
from tests.kernels.test_structures import LONG, is_tried, made, wrong_answers

LATENESS = 25
PAIRS: list[tuple[type[Structure], Operator]] = [
    (Running, NAMED["sum of integers"]),
    (Running, NAMED["walk, user-defined"]),
    (RunningFloats, NAMED["sum of floats"]),
    *((kind, operator) for kind in (Dyadic, Landmark) for operator in OPERATORS if is_tried(kind, operator)),
]
crossed = pytest.mark.parametrize(("kind", "operator"), PAIRS, ids=lambda each: getattr(each, "__name__", str(each)))


@dataclass
class LateStream(Stream):
    """A stream of which every third row is late. Of every key it knows which rows count, in their places."""

    lateness: int = LATENESS
    counted: list[list[bool]] = field(default_factory=list)

    def append(self, batch: Batch) -> None:
        """As Grouping.apply does."""
        store, n = self.store, batch.rows
        store.time.lateness = self.lateness
        if store.keys.count < self.plan.keys and n:
            store.keys.count += 1
            for each in (self.rows, self.times, self.counted):
                each.append([])
        store.grow_keys()
        store.retention = Retention(Depth(batch.age or 0, batch.keep))
        rows = self._rows(n)
        by_key = store.grouped(rows)
        store.time.go_on(int(rows.ts.max(initial=store.now)))
        displaced = displacing(store, rows, by_key)
        self._put(rows)
        redo = None if displaced is None else put_in_place(store, rows, by_key, displaced)
        runs = store.append(rows, by_key) if redo is None else redo
        for structure in self.structures:
            structure.follow(runs[self.space.mask])
        store.tidy(self.rng.integers(0, 4))

    def _rows(self, n: int) -> CheckedRows:
        ids = self.rng.integers(0, max(1, self.store.keys.count), n)
        ts = max(self.store.now, 0) + np.cumsum(self.rng.integers(0, 3, n))
        ts -= np.where(self.rng.random(n) < 0.3, self.rng.integers(0, self.lateness + 1, n), 0)
        counted = self.rng.random(n) < 0.7 if self.plan.masked else np.ones(n, bool)
        data = {name: self.values(self.rng, n, self.plan.odd) for name in COLUMNS[: self.columns]}
        fields: Any = {name: SimpleNamespace(values=values, valid=None) for name, values in data.items()}
        return CheckedRows(ts, ids, fields | {"counted": SimpleNamespace(valid=counted)})

    def _put(self, rows: CheckedRows) -> None:
        """Each behind those of its time; of rows that are gone nobody knows the time any more."""
        counts, rings = rows.chosen[COUNTED], self.store.main.arena.rings
        assert counts is not None
        for e in np.argsort(rows.ts, kind="stable"):
            k, t = int(rows.ids[e]), int(rows.ts[e])
            at = bisect.bisect_right(self.times[k], t, lo=int(rings[k, HEAD]))
            if counts[e]:
                row = tuple(rows.fields[name].values[e].item() for name in COLUMNS[: self.columns])
                self.rows[k].insert(sum(self.counted[k][:at]), row)
            self.times[k].insert(at, t)
            self.counted[k].insert(at, bool(counts[e]))


@crossed
@FEWER
@given(plan=plans())
def test_what_is_redone_from_a_late_row_on_is_the_fold_of_its_rows(kind, operator, plan: Plan) -> None:
    stream = LateStream(plan, operator.values, operator.columns)
    structure = made(kind, operator, stream)
    stream.structures.append(structure)
    for batch in plan.batches:
        stream.append(batch)
        assert wrong_answers(stream, operator, structure, *stream.windows(6)) == []
        check(stream, operator, structure)
    check_arena(stream.store.main.arena)
    check_arena(stream.space.arena)


@crossed
def test_thousands_of_rows_are_redone_right(kind, operator) -> None:
    stream = LateStream(LONG, operator.values, operator.columns, lateness=3 * LONG.batches[2].rows // 5)
    structure = made(kind, operator, stream)
    stream.structures.append(structure)
    for batch in LONG.batches[1:] * 2:
        stream.append(batch)
        assert wrong_answers(stream, operator, structure, *stream.windows(7)) == []


@given(plan=plans())
def test_times_ranks_and_sorted_runs_follow(plan: Plan) -> None:
    stream = LateStream(plan, floats)
    structure = SortedRuns(stream.space, Part("quantile", ("x",)))
    stream.structures.append(structure)
    store = stream.store
    for batch in plan.batches:
        stream.append(batch)
        check_sorted_runs(stream, structure)
        for k in stream.keys:
            offset, capacity, head, tail = store.main.arena.rings[k].tolist()
            slots = offset + np.arange(head, tail) % max(capacity, 1)
            assert store.ts.data[slots].tolist() == stream.times[k][head:] == sorted(stream.times[k][head:])
            assert store.latest[k] == max(stream.times[k], default=store.latest[k])
            if stream.space.rank is not None:
                ranks = np.cumsum([0, *stream.counted[k]])[head:-1]
                assert stream.space.rank.data[slots].tolist() == ranks.tolist()


# -- indexes over keys ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["count", "sum", "sum of floats"])
@given(seed=st.integers(0, 2**20))
def test_a_key_that_an_index_forgot_and_was_given_again_is_as_in_one_made_anew(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids, ts = rng.integers(0, 5, 120), np.cumsum(rng.integers(0, 3, 120))
    values = None if kind == "count" else rng.integers(0, 9, 120) if kind == "sum" else rng.random(120)
    index, other = (CountIndex(2) if kind == "count" else SumIndex(2, None, kind != "sum") for _ in range(2))
    again = np.isin(ids, [1, 3])
    for each in (index, other):
        each.add_keys(5)
    index.update(ids, ts, values)
    index.candidates(50, ">", 3, int(ts[-1]))  # a level is indexed from its first lookup on
    index.forget(np.array([1, 3]))
    index.update(ids[again], ts[again], None if values is None else values[again])
    other.update(ids, ts, values)
    for far in (5, 40, 200):
        for op, v in ((">", 3.0), (">=", 10.0), ("<", 6.0)):
            found, expected = (each.candidates(far, op, v, int(ts[-1])) for each in (index, other))  # type: ignore[arg-type]
            assert found.tolist() == expected.tolist()


def test_what_was_forgotten_gives_its_memory_back() -> None:
    index = CountIndex(2)
    index.add_keys(3)
    ids, ts = np.arange(300) % 3, np.arange(300)
    index.update(ids, ts)
    free, size = int(index.known.blocks[0, ci_count.FILL]), index.known.blocks.shape[0]
    for _ in range(20):
        index.forget(np.arange(3))
        index.update(ids, ts)
    assert (int(index.known.blocks[0, ci_count.FILL]), index.known.blocks.shape[0]) == (free, size)
    stairs = ci_extrema.with_keys(ci_extrema.empty(np.array([1.0, 5.0])), 2)
    ci_extrema.update(stairs, np.array([0, 1]), np.array([1, 2]), np.array([7.0, 2.0]), 0)
    ci_extrema.forget(stairs, np.array([0, 1]))
    assert stairs.stairs[0, ci_extrema.RANK] == stairs.stairs.shape[0] - 1 and not stairs.keys[:, 0].any()
