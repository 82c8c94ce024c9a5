"""Rings and time: grouping, disorder, expiry, relocation, ranks and window edges, each against plain lists."""

import bisect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings import in_step, timeline
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, SMALLEST_RING, TAIL, Batch
from swag.live import window_edges
from swag.live.arena import Arena
from swag.query.windows import Reach
from tests.kernels.harness import Plan, Stream, check_arena, plans
from tests.kernels.operators import integers

KEYS = st.lists(st.integers(0, 5), max_size=40).map(lambda ids: np.array(ids, np.int64))


def grouped(ids: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    order, keys, starts = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64), np.empty(ids.size + 1, np.int64)
    runs = timeline.group_by_key(ids, seen, order, keys, starts)
    return order, keys, starts, runs


@pytest.mark.parametrize("keys_known", [6, 1000])  # a large batch lists keys by id, a small one as they come
@given(ids=KEYS)
def test_grouping_is_stable(keys_known: int, ids: np.ndarray) -> None:
    seen = np.zeros(keys_known, np.int64)
    order, keys, starts, runs = grouped(ids, seen)
    expected = {int(k): np.flatnonzero(ids == k).tolist() for k in ids}
    assert sorted(keys[:runs].tolist()) == sorted(expected)
    for r in range(runs):
        assert order[starts[r] : starts[r + 1]].tolist() == expected[keys[r]]
    assert starts[0] == 0 or runs == 0
    assert starts[runs] == ids.size
    assert not seen.any()


@given(ids=KEYS, data=st.data())
def test_the_first_row_that_is_older_than_its_keys_previous_one(ids: np.ndarray, data: st.DataObject) -> None:
    ts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=ids.size, max_size=ids.size)), np.int64)
    latest = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=6, max_size=6)), np.int64)
    newest, expected = dict(enumerate(latest.tolist())), -1
    for row, (k, t) in enumerate(zip(ids.tolist(), ts.tolist(), strict=True)):
        if t < newest[k] and expected < 0:
            expected = row
        newest[k] = max(newest[k], t)
    order, keys, starts, runs = grouped(ids, np.zeros(6, np.int64))
    batch = Batch(order, keys[:runs], starts[: runs + 1])
    assert timeline.first_disorder(ts, batch, latest) == expected
    rings = np.array([[64 * k, 64, 40, 60 + k] for k in range(6)])
    kept, slots = np.zeros(6 * 64, np.int64), np.empty(ids.size, np.int64)
    timeline.take_times(ts, batch, rings, kept, latest, slots)
    assert kept[slots].tolist() == ts[order].tolist()
    for k in range(6):
        rows = ts[ids == k].tolist()
        assert rings[k].tolist() == [64 * k, 64, 40, 60 + k + len(rows)]
        assert [kept[64 * k + (p & 63)] for p in range(60 + k, rings[k, 3])] == rows
    if expected < 0:
        assert latest.tolist() == list(newest.values())


@given(times=st.lists(st.integers(-5, 5), max_size=30).map(sorted), x=st.integers(-6, 6), data=st.data())
def test_the_first_position_after_a_time(times: list[int], x: int, data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, len(times)))
    hi = data.draw(st.integers(lo, len(times)))
    first = 100  # positions 100, 101, … in a ring of 64 at offset 64
    ts = np.full(128, 99, np.int64)
    for i, t in enumerate(times):
        ts[64 + ((first + i) & 63)] = t
    expected = first + lo + bisect.bisect_right(times[lo:hi], x)
    assert timeline.first_after(ts, 64, 63, first + lo, first + hi, x) == expected


@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(60, 250),
    spread=st.sampled_from(["even", "bursts", "ties", "all of int64"]),
)
def test_the_first_position_after_a_time_in_a_long_ring(seed: int, length: int, spread: str) -> None:
    rng = np.random.default_rng(seed)
    span = {"even": 10**6, "bursts": 40, "ties": 3, "all of int64": 2**63 - 1}[spread]
    times = rng.integers(-span, span, length)
    if spread == "bursts":
        times = np.sign(times) * 2 ** np.abs(times)
    times, first = np.sort(times), 1000
    ts = np.zeros(512, np.int64)
    ts[256 + ((first + np.arange(length)) & 255)] = times
    asked = np.concatenate([times, times - 1, rng.integers(-span, span, 5), [-(2**63) + 1, 2**63 - 1]])
    for x in asked.tolist():
        expected = first + int(np.searchsorted(times, x, "right"))
        assert timeline.first_after(ts, 256, 255, first, first + length, x) == expected


# -- rings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 2])
@given(head=st.integers(0, 50), length=st.integers(1, 16), old=st.sampled_from([16, 32]), new=st.sampled_from([16, 64]))
def test_relocation_keeps_every_entry_that_can_still_be_asked_for(
    shift: int, head: int, length: int, old: int, new: int
) -> None:
    """With a shift, one entry per 2^shift positions: those whose first position is kept."""
    tail = head + length
    rings = np.array([[0, 8, 0, 0], [32, old, head, tail]])
    source, target = np.full(96 >> shift, -1), np.full(160 >> shift, -1)
    entries = range(head >> shift, ((tail - 1) >> shift) + 1)
    for q in entries:
        source[(32 >> shift) + (q & ((old >> shift) - 1))] = q
    timeline.relocate(source, target, shift, rings, np.array([0, 1]), np.array([0, 64]), np.array([8, new]))
    asked = [q for q in entries if q << shift >= head]
    assert [target[(64 >> shift) + (q & ((new >> shift) - 1))] for q in asked] == asked
    assert (target[: 64 >> shift] == -1).all() and (target[(64 + new) >> shift :] == -1).all()


@given(rows=st.integers(0, 70), coming=st.integers(0, 70), capacity=st.sampled_from([0, 8, 16, 64, 1024]))
def test_a_ring_fits_what_it_keeps_and_little_more(rows: int, coming: int, capacity: int) -> None:
    rows = min(rows, capacity)
    rings, keys = np.array([[0, capacity, 5, 5 + rows]]), np.zeros(1, np.int64)
    wanted = np.empty(1, np.int64)
    calm = timeline.fitting(rings, keys, np.array([coming]), wanted)
    size = capacity if wanted[0] < 0 else int(wanted[0])
    assert calm == (wanted[0] < 0)
    assert size & (size - 1) == 0 and size >= rows + coming
    assert size <= max(8, 4 * (rows + coming)) and (size > 0 or rows + coming == 0)
    full = np.empty(1, np.int64)
    assert timeline.overfull(rings, keys, np.array([coming]), full) == (rows + coming > capacity)


@given(
    times=st.lists(st.integers(0, 9), min_size=1, max_size=16).map(sorted),
    horizon=st.one_of(st.integers(-1, 10), st.just(LATEST)),
    rows=st.integers(0, 20),
    coming=st.integers(0, 5),
)
def test_what_expires_is_older_than_the_horizon_and_not_among_the_last_rows(
    times: list[int], horizon: int, rows: int, coming: int
) -> None:
    ts, rings, lost = (
        np.array(times + [0] * (16 - len(times))),
        np.array([[0, 16, 0, len(times)]]),
        np.array([EARLIEST]),
    )
    timeline.expire(rings, ts, lost, np.zeros(1, np.int64), np.array([coming]), np.array([horizon]), rows)
    last_rows = max(0, len(times) + coming - rows)
    gone = [p for p, t in enumerate(times) if t <= horizon and p < last_rows]
    assert rings[0, HEAD] == len(gone)
    assert lost[0] == (times[gone[-1]] if gone else EARLIEST)


@given(sizes=st.lists(st.lists(st.integers(0, 90), min_size=5, max_size=5), min_size=1, max_size=8), data=st.data())
def test_an_arena_keeps_every_row_through_growth_and_shrinking(sizes: list[list[int]], data: st.DataObject) -> None:
    """Each step: five keys get some rows and let go of some; row p of key k holds 1000 k + p."""
    arena, keys = Arena(), np.arange(5)
    column, coarse, wide = arena.allocate(np.int64), arena.allocate(np.int64, 2), arena.allocate(np.int64, 0, rows=2)
    arena.add_keys(5)
    for step in sizes:
        keep = data.draw(st.sampled_from([0, 2, 20, 100]))

        def expire(which: np.ndarray, coming: np.ndarray, keep: int = keep) -> None:
            rings = arena.rings
            rings[which, HEAD] = np.clip(rings[which, TAIL] + coming - keep, rings[which, HEAD], rings[which, TAIL])

        counts = np.array(step)
        arena.make_room(keys, counts, expire)
        for k in keys:
            offset, capacity, _, tail = arena.rings[k].tolist()
            for p in range(tail, tail + step[k]):
                slot = offset + p % capacity
                column.data[slot] = wide.data[0, slot] = wide.data[1, slot] = 1000 * k + p
                if p % 4 == 0:
                    coarse.data[slot >> 2] = 1000 * k + p
            arena.rings[k, TAIL] += step[k]
        if data.draw(st.booleans()):
            arena.tidy(keys[data.draw(st.integers(0, 4)) :], expire)
        check_arena(arena)
        for k in keys:
            offset, capacity, head, tail = arena.rings[k].tolist()
            slots = [offset + p % capacity for p in range(head, tail)]
            expected = [1000 * k + p for p in range(head, tail)]
            assert column.data[slots].tolist() == expected
            assert wide.data[:, slots].tolist() == [expected, expected]
            quarters = [p for p in range(head, tail) if p % 4 == 0]
            assert [coarse.data[(offset + p % capacity) >> 2] for p in quarters] == [1000 * k + p for p in quarters]


def test_memory_follows_what_is_kept() -> None:
    arena, keys = Arena(), np.zeros(1, np.int64)
    arena.allocate(np.int64)
    arena.add_keys(1)

    def keep_three(which: np.ndarray, coming: np.ndarray) -> None:
        arena.rings[which, HEAD] = np.maximum(arena.rings[which, TAIL] - 3, arena.rings[which, HEAD])

    arena.make_room(keys, np.array([100_000]), keep_three)
    arena.rings[0, TAIL] = 100_000
    assert arena.bytes >= 800_000
    arena.tidy(keys, keep_three)
    assert arena.rings[0, CAPACITY] == SMALLEST_RING and arena.rings[0, OFFSET] % SMALLEST_RING == 0


# -- masked spaces and windows ------------------------------------------------------------------------------------


@given(plan=plans())
def test_ranks_count_the_rows_before_a_position_that_count(plan: Plan) -> None:
    masked = Plan(plan.keys, True, plan.odd, plan.seed, plan.batches)
    stream = Stream(masked, integers)
    for batch in plan.batches:
        stream.append(batch)
        for k in stream.keys:
            main, own = stream.store.main.arena.rings[k], stream.space.arena.rings[k]
            positions = np.arange(main[HEAD], main[TAIL] + 1)[None, :]
            ranks, _ = stream.space.to_positions(np.array([k]), positions, positions)
            steps = np.diff(ranks[0])
            assert ((steps == 0) | (steps == 1)).all()
            assert ranks[0, -1] == own[TAIL] == len(stream.rows[k])
            assert ranks[0, 0] >= own[HEAD]


@given(plan=plans())
def test_a_space_narrowed_where_every_row_counted_has_the_same_positions(plan: Plan) -> None:
    stream = Stream(Plan(plan.keys, False, 0.0, plan.seed, plan.batches), integers)
    for batch in plan.batches:
        stream.append(batch)
    other = stream.store.main.narrowed("x")
    lo, hi = stream.windows(5)
    for mine, theirs in zip((lo, hi), other.to_positions(stream.keys, lo, hi), strict=True):
        assert np.array_equal(mine, theirs)


REACHES = [
    Reach(by_time, far, near)
    for by_time in (False, True)
    for far, near in ((1, 0), (2, 1), (5, 0), (9, 4), (30, 0), (30, 29), (200, 50))
]


@given(plan=plans(), ago=st.integers(0, 40))
def test_window_edges_are_those_of_the_definition(plan: Plan, ago: int) -> None:
    """lo and hi of what is kept, and the first window that reaches back to what is gone."""
    stream = Stream(plan, integers)
    for batch in plan.batches:
        stream.append(batch)
        at = max(stream.store.now, 0) - ago
        lo, hi, short = window_edges.edges(stream.store, stream.keys, window_edges.lengths_of(REACHES), at)
        cut = []
        for k in stream.keys:
            head = int(stream.store.main.arena.rings[k, HEAD])
            for w, reach in enumerate(REACHES):
                inside = window_by_definition(stream.times[k], reach, at)
                kept = [p for p in inside if p >= head]
                assert list(range(lo[k, w], hi[k, w])) == kept, f"key {k} of {plan.keys}, {reach} at {at}"
                if kept != inside:
                    cut.append((k, w))
        assert cut == [] or (short is not None and short <= cut[0])


def window_by_definition(times: list[int], reach: Reach, now: int) -> list[int]:
    """SPEC section 2, on positions from 0."""
    past = [p for p, t in enumerate(times) if t <= now]
    if reach.by_time:
        return [p for p in past if now - reach.far < times[p] <= now - reach.near]
    return past[max(len(past) - reach.far, 0) : max(len(past) - reach.near, 0)]


@given(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=1, max_size=20), st.integers(-1, 75))
def test_searches_in_step_find_what_each_finds_alone(lengths: list[tuple[int, int]], x: int) -> None:
    """Rings that wrap, that are full, empty, or have no memory any more; more or fewer of them than there are lanes."""
    rings, slots = np.zeros((len(lengths), 4), np.int64), []
    for k, (rows, gone) in enumerate(lengths):
        capacity = 1 << (rows - 1).bit_length() if rows else 0
        ring = np.zeros(capacity, np.int64)
        ring[np.arange(gone, gone + rows) & (capacity - 1)] = np.arange(rows)
        rings[k] = sum(each.size for each in slots), capacity, gone, gone + rows
        slots.append(ring)
    keys = np.arange(len(lengths))[::-1].copy()
    starts = np.empty(keys.size, np.int64)
    in_step.starts_after(rings, np.concatenate(slots), keys, x, starts)
    assert starts.tolist() == [gone + min(x + 1, rows) for rows, gone in lengths[::-1]]


def test_only_a_window_that_lost_rows_is_called_short() -> None:
    #   ts      10  20  30  40  50          kept from 30 on; lost: 20
    ts = np.array([0, 0, 30, 40, 50, 0, 0, 0])
    rings, lost = np.array([[0, 8, 2, 5]]), np.array([20])
    lo, hi = np.empty((2, 1, 1), np.int64)

    def short(by_time: int, far: int, near: int) -> bool:
        window = np.array([[by_time, far, near]])
        return timeline.edges(rings, ts, lost, np.zeros(1, np.int64), window, 50, (lo, hi)) >= 0

    assert not short(0, 3, 0) and short(0, 4, 0) and short(0, 5, 2) and not short(0, 5, 5)
    assert not short(1, 30, 0) and short(1, 31, 0)
    assert (lo[0, 0], hi[0, 0]) == (2, 5)
