"""Every structure with every operator that it may hold: a lookup is the fold of its window, and of nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import swag as sw
from kernels.operators import monoids
from swag.errors import BadQuery
from swag.live.planner import choose
from swag.live.structures.baselines import MaterializeAll, MaterializeNone, PSoup
from swag.live.structures.intervals import Dyadic, Landmark, Running, RunningFloats, Structure
from swag.live.structures.ranks import SortedOnLookup, SortedRuns
from swag.query.families import parts_of
from swag.query.kind import Part
from tests.kernels.checks import check
from tests.kernels.harness import FEWER, JIT, REGISTERED, Batch, Plan, Stream, check_arena, plans
from tests.kernels.operators import LAST, NAMED, OPERATORS, Operator

CHOSEN, BASELINES = (Dyadic, Landmark), (PSoup, MaterializeAll, MaterializeNone)  # by the planner, or only to compare
SOME = ("sum of integers", "max of floats", "comoments", "walk, user-defined")  # of one array, of several, ordered


def is_tried(structure: type[Structure], operator: Operator) -> bool:
    """Every pair compiles for seconds. Those whose kernels are the same but for the operator's functions are tried
    uncompiled (test_without_jit.py); further operators there with the structures that the planner chooses."""
    if not JIT:
        return structure in CHOSEN or not operator.further
    return structure is Dyadic or operator.name in SOME


PAIRS: list[tuple[type[Structure], Operator]] = [
    (Running, NAMED["sum of integers"]),
    (Running, NAMED["walk, user-defined"]),
    (RunningFloats, NAMED["sum of floats"]),
    *((structure, operator) for structure in CHOSEN for operator in OPERATORS if is_tried(structure, operator)),
    *((structure, operator) for structure in BASELINES for operator in OPERATORS if is_tried(structure, operator)),
]
crossed = pytest.mark.parametrize(("kind", "operator"), PAIRS, ids=lambda each: getattr(each, "__name__", str(each)))


def made(kind: type[Structure], operator: Operator, stream: Stream) -> Structure:
    structure = kind(stream.space, operator.part)
    if isinstance(structure, MaterializeAll):
        structure.set_windows(REGISTERED, stream.store)
    structure.rebuild()
    return structure


def wrong_answers(
    stream: Stream, operator: Operator, structure: Structure, lo: np.ndarray, hi: np.ndarray
) -> list[str]:
    """Of these windows, those whose answer is not the fold of their rows."""
    answers = operator.answers((hi - lo).reshape(-1), structure.lookup(stream.keys, lo, hi))
    edges = [(k, int(a), int(b)) for k in stream.keys for a, b in zip(lo[k], hi[k], strict=True)]
    wrong = []
    for (k, a, b), answer in zip(edges, answers, strict=True):
        mismatch = operator.mismatch(stream.rows[k][a:b], answer)
        if mismatch:
            wrong.append(f"key {k}, [{a}, {b}) of {stream.kept(k)}: {mismatch}")
    return wrong


@crossed
@FEWER
@given(plan=plans())
def test_every_lookup_equals_the_fold_of_its_window(kind: type[Structure], operator: Operator, plan: Plan) -> None:
    stream = Stream(plan, operator.values, operator.columns)
    structure = made(kind, operator, stream)
    stream.structures.append(structure)
    for batch in plan.batches:
        stream.append(batch)
        assert wrong_answers(stream, operator, structure, *stream.windows(6)) == []
        assert wrong_answers(stream, operator, structure, *stream.registered()) == []
        check(stream, operator, structure)
    check_arena(stream.store.main.arena)
    check_arena(stream.space.arena)


@crossed
@FEWER
@given(plan=plans())
def test_a_structure_rebuilt_from_the_rows_kept_answers_alike(
    kind: type[Structure], operator: Operator, plan: Plan
) -> None:
    stream = Stream(plan, operator.values, operator.columns)
    for batch in plan.batches:
        stream.append(batch)
    structure = made(kind, operator, stream)
    stream.structures.append(structure)
    assert wrong_answers(stream, operator, structure, *stream.windows(6)) == []
    stream.append(plan.batches[0])
    assert wrong_answers(stream, operator, structure, *stream.windows(6)) == []
    assert structure.bytes >= 0
    structure.drop()
    assert not any(kept is column for column in structure.held for kept in stream.space.arena.columns)


MANY = 1000 if JIT else 20  # stretches are short when kernels are not compiled (conftest.py)
BATCHES = (
    Batch(9 * MANY, 9 * MANY, None),
    Batch(1, 9 * MANY, None),
    Batch(5 * MANY, 6 * MANY, None),
    Batch(30, 6 * MANY, None),
)
LONG = Plan(keys=1, masked=False, odd=0.0005, seed=7, batches=BATCHES)
IN_FRACTIONS = ("skew", "shape", "product")  # whose truth takes longer with every digit
SHORTER = replace(LONG, batches=tuple(replace(batch, rows=-(-batch.rows // 4)) for batch in BATCHES))


@crossed
def test_windows_of_thousands_of_rows(kind: type[Structure], operator: Operator) -> None:
    """Wide enough for stretches (kernels/windows/landmark.py, kernels/baselines/naive.py)."""
    plan = SHORTER if operator.name in IN_FRACTIONS else LONG
    stream = Stream(plan, operator.values, operator.columns)
    structure = made(kind, operator, stream)
    stream.structures.append(structure)
    for batch in plan.batches:
        stream.append(batch)
        assert wrong_answers(stream, operator, structure, *stream.windows(7)) == []


def test_materialized_windows_are_found_and_others_are_folded() -> None:
    stream = Stream(Plan(1, False, 0.0, 3, ()), NAMED["max of floats"].values)
    structure = made(MaterializeAll, NAMED["max of floats"], stream)
    stream.structures.append(structure)
    assert isinstance(structure, MaterializeAll)
    for size in (5, 30, 1, 200, 3):
        stream.append(Batch(size, 50, 50))
        structure.lookup(stream.keys, *stream.registered())
    assert structure.folded == 0
    stream.store.time.now += 20  # time goes on: windows by time have moved
    assert wrong_answers(stream, NAMED["max of floats"], structure, *stream.registered()) == []
    assert structure.folded == 0
    head, tail = stream.kept(0)
    structure.lookup(stream.keys, np.array([[head + 1]]), np.array([[tail - 2]]))
    assert structure.folded == 1


def test_materialized_without_a_store_windows_count_the_rows_of_their_space() -> None:
    stream = Stream(Plan(1, False, 0.0, 4, ()), NAMED["sum of integers"].values)
    structure = MaterializeAll(stream.space, NAMED["sum of integers"].part)
    structure.set_windows(REGISTERED)
    stream.structures.append(structure)
    for size in (3, 30, 100):
        stream.append(Batch(size, 50, None))
        lo, hi = stream.registered()
        by_rows = [i for i, reach in enumerate(REGISTERED) if not reach.by_time]
        structure.lookup(stream.keys, lo[:, by_rows], hi[:, by_rows])
    assert structure.folded == 0


# -- pairs that must be refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", [sw.max("x"), sw.min("x"), LAST])
def test_r_int_refuses_what_can_not_be_taken_off_again(aggregate: sw.Aggregate) -> None:
    with pytest.raises(BadQuery, match="R-INT subtracts"):
        choose(parts_of(aggregate)[0], np.dtype(np.float64), "r-int")
    with pytest.raises(BadQuery, match="R-INT subtracts"):
        sw.Engine(algorithm="r-int").register(sw.Query(aggregate, sw.Rows(3)))


@pytest.mark.parametrize("aggregate", [sw.var("x"), sw.cov("x", "y")])
def test_moments_are_never_subtracted(aggregate: sw.Aggregate) -> None:
    assert choose(parts_of(aggregate)[0], np.dtype(np.float64), "r-int").structure is Dyadic
    assert not monoids.invertible(monoids.Moments()) and not monoids.invertible(monoids.CoMoments())


def test_float_sums_run_in_double_doubles_only() -> None:
    part = Part("sum", ("x",))
    assert choose(part, np.dtype(np.float64), "r-int").structure is RunningFloats
    assert choose(part, np.dtype(np.int64), "r-int").structure is Running


@pytest.mark.parametrize("algorithm", ["auto", "b-int", "l-int", "psoup", "materialize-all", "materialize-none"])
def test_quantiles_begin_as_sorted_runs_unless_nothing_is_to_be_kept(algorithm: str) -> None:
    expected = SortedOnLookup if algorithm == "materialize-none" else SortedRuns
    assert choose(Part("quantile", ("x",)), np.dtype(np.float64), algorithm).structure is expected


def test_a_float_inverse_is_not_trusted_unless_asked_for() -> None:
    mean = sw.aggregate("x", lambda x: x, lambda a, b: a + b, lambda a: a, 0.0, invert=lambda a, b: a - b)
    exact = sw.aggregate("x", lambda x: int(x), lambda a, b: a + b, lambda a: a, 0, invert=lambda a, b: a - b)

    def structure(aggregate: sw.Aggregate, algorithm: str) -> type[Structure]:
        return choose(parts_of(aggregate)[0], np.dtype(np.float64), algorithm).structure

    assert structure(mean, "auto") is Dyadic and structure(mean, "r-int") is Running
    assert structure(exact, "auto") is Running


@pytest.mark.parametrize("algorithm", ["psoup", "materialize-all", "materialize-none"])
def test_the_engine_answers_alike_with_what_it_is_compared_with(algorithm: str) -> None:
    queries = [
        sw.Query(aggregate, window, where=where)
        for aggregate in (sw.sum("x"), sw.max("x"), sw.std("x"), sw.corr("x", "y"), sw.median("x"))
        for window in (sw.Rows(5), sw.Rows(40, until=7), sw.Range(9), sw.Range(60, until=3))
        for where in (None, "y > 0")
    ]
    rng = np.random.default_rng(5)
    engines = [sw.Engine(algorithm=each) for each in ("auto", algorithm)]
    for engine in engines:
        engine.register(queries)
    ts = 0
    for size in (1, 3, 50, 200, 1, 7):
        passed, times = ts, ts + np.cumsum(rng.integers(0, 3, size))
        ts = int(times[-1])
        events = {"ts": times, "x": rng.normal(size=size), "y": rng.normal(size=size)}
        answers = []
        for engine in engines:
            engine.append(events)
            rows = engine.lookup_all().to_pylist() + engine.lookup_all(at=max(ts - 1, passed)).to_pylist()
            engine.advance(ts + 2)
            answers.append(rows + engine.lookup_all().to_pylist())
        ts += 2
        for expected, actual in zip(*answers, strict=True):
            assert [v is None for v in actual.values()] == [v is None for v in expected.values()]
            numbers = [name for name, value in expected.items() if value is not None]
            assert [actual[n] for n in numbers] == pytest.approx([expected[n] for n in numbers], rel=1e-9, nan_ok=True)
