"""Several threads use one engine: batches are whole, and nobody sees half of one."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import swag as sw
from swag.live.planner import Group

ALL = sw.Range(10**9)
KEYS = 7
BATCHES, ROUNDS = 30, 12  # of the writer; of each reader

TEN = sw.Range(10)
RULES = [
    sw.Query(sw.count(), TEN, name="busy", having=(">=", 4)),
    sw.Query(sw.count(), sw.Range(10, until=3), name="was busy", having=(">=", 4)),
    sw.Query(sw.max("i") - sw.min("i"), TEN, name="spread", having=(">", 6), where="i <> 5"),
    sw.Query(sw.sum("i"), TEN, name="much of both", having=(">", 12), by=("g", "k")),
    sw.Query(sw.sum("i"), sw.Rows(20), name="little", having=("<", 90), by=()),
]
VALUES = [
    sw.Query(sw.sum("i"), TEN, name="sum"),
    sw.Query(sw.max("i"), sw.Rows(6), name="most", where="i < 9"),
    sw.Query(sw.count_distinct("k"), TEN, name="keys", by="g"),
    sw.Query(sw.count(), sw.Range(5), name="all", by=()),
]


def rows(table: Any) -> list[str]:
    """What is in a table, whatever the order of its keys."""
    return sorted(map(repr, table.to_pylist()))


ASKS: dict[str, Callable[[sw.Engine], Any]] = {
    "filters": lambda engine: rows(engine.filters()),
    "filters by name": lambda engine: rows(engine.filters("was busy")),
    "lookup of who passes": lambda engine: rows(engine.lookup("much of both")),
    "lookup_all": lambda engine: rows(engine.lookup_all()),
    "lookup_all of another grouping": lambda engine: rows(engine.lookup_all(by="g")),
    "lookup of one key": lambda engine: engine.lookup("sum", key=3),
    "features": lambda engine: engine.features({"k": [0, 3, 99], "g": ["u", "v", "u"]}).to_pylist(),
}


def run(*jobs: Callable[[], None]) -> list[BaseException]:
    """Run jobs beside each other; what they raised."""
    raised: list[BaseException] = []

    def caught(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as why:
            raised.append(why)

    threads = [threading.Thread(target=caught, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def batch(number: int, keys: Any) -> dict[str, Any]:
    return {"ts": np.full(keys.size, number), "k": keys, "x": np.ones(keys.size)}


def test_batches_of_several_threads_are_taken_whole() -> None:
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.count(), ALL, name="n"), sw.Query(sw.sum("x"), ALL, name="s")])

    def write(writer: int) -> None:
        for number in range(60):
            engine.append(batch(number, np.arange(50) % KEYS + 100 * writer + number))

    assert run(*(lambda w=w: write(w) for w in range(3))) == []  # type: ignore[misc]
    found = engine.lookup_all()
    assert engine.stats()["events"] == found["n"].to_numpy().sum() == found["s"].to_numpy().sum() == 9000


def test_a_reader_sees_every_batch_or_nothing_of_it() -> None:
    engine, over = sw.Engine(key="k"), threading.Event()
    engine.register([sw.Query(sw.sum("x"), sw.Range(20), name="s"), sw.Query(sw.count(), sw.Range(20), name="n")])
    engine.register(sw.Query(sw.count(), sw.Range(20), name="busy", having=(">=", 1)))
    engine.append(batch(0, np.repeat(np.arange(KEYS), 3)))

    def write() -> None:
        for number in range(1, 300):
            engine.append(batch(number, np.repeat(np.arange(KEYS), 3)))
        over.set()

    def read() -> None:
        while not over.is_set():
            table = engine.lookup_all()
            sums, counts = table["s"].to_numpy(), table["n"].to_numpy()
            assert (sums == counts).all() and (counts == counts[0]).all() and counts[0] % 3 == 0
            assert engine.lookup("busy").num_rows == KEYS

    assert run(write, read, read) == []


def test_queries_come_and_go_while_events_flow() -> None:
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.sum("x"), ALL, name="s"))

    def write() -> None:
        for number in range(200):
            engine.append(batch(number, np.arange(20) % KEYS))

    def change(name: str) -> None:
        for _ in range(50):
            engine.register(sw.Query(sw.max("x"), sw.Rows(9), name=name, where="x > 0"))
            engine.stats()
            engine.unregister(name)

    assert run(write, lambda: change("a"), lambda: change("b")) == []
    assert sum(engine.lookup("s")["value"].to_pylist()) == 4000


def test_a_large_lookup_is_answered_once_and_not_again_alone(monkeypatch: Any) -> None:
    """How often structures are asked is looked at now and then, in large lookups always: that changes nothing yet."""
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.sum("x"), ALL, name="s"), sw.Query(sw.max("x"), ALL, name="m")])
    keys = np.arange(20_000)
    engine.append(batch(1, keys))
    asked: list[int] = []
    answered = Group.lookup
    monkeypatch.setattr(Group, "lookup", lambda self, ids, lo, hi: asked.append(lo.size) or answered(self, ids, lo, hi))
    engine.features({"k": keys})  # what it is asked is worked out alone, once
    for ask, groups in (
        (lambda: engine.lookup("m"), 1),
        (engine.lookup_all, 2),
        (lambda: engine.features({"k": keys}), 2),
    ):
        asked.clear()
        assert ask().num_rows == keys.size
        assert asked == [keys.size] * groups


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def batches(late: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(late)
    found = []
    for number in range(BATCHES):
        k, i, back = rng.integers(0, [[KEYS], [10], [late + 1]], (3, 9))
        found.append({"ts": 2 * number - np.sort(back)[::-1], "k": k, "g": np.where(k % 2, "u", "v"), "i": i})
    return found


def engine_of(options: dict[str, Any], first: dict[str, Any]) -> sw.Engine:
    engine = sw.Engine(key="k", **options)
    engine.register([*RULES, *VALUES])
    engine.append(first)
    return engine


OPTIONS = [{}, {"lateness": 5}, {"lateness": 5, "hold": False}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_answer_is_that_of_all_batches_up_to_one(options: dict[str, Any], often: None) -> None:
    """Of one that was whole when it was asked for at the earliest, and begun when it was there at the latest."""
    given = batches(options.get("lateness", 0))
    engine, alone = engine_of(options, given[0]), engine_of(options, given[0])
    begun = whole = 0
    found: list[tuple[str, Any, int, int]] = []

    def write() -> None:
        nonlocal begun, whole
        for number in range(1, BATCHES):
            begun = number
            engine.append(given[number])
            whole = number

    def read(asks: list[str]) -> None:
        for turn in range(ROUNDS * len(asks)):
            name, earliest = asks[turn % len(asks)], whole
            found.append((name, ASKS[name](engine), earliest, begun))

    names = list(ASKS)
    assert run(write, *(lambda n=n: read(names[n:] + names[:n]) for n in range(3))) == []  # type: ignore[misc]
    expected = [{name: ask(alone) for name, ask in ASKS.items()}]
    for each in given[1:]:
        alone.append(each)
        expected.append({name: ask(alone) for name, ask in ASKS.items()})
    for name, answer, earliest, latest in found:
        assert answer in [expected[number][name] for number in range(earliest, latest + 1)], name
    assert {name: ask(engine) for name, ask in ASKS.items()} == expected[-1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_changes_that_several_threads_were_told_are_together_those_of_one(options: dict[str, Any], often: None) -> None:
    given = batches(options.get("lateness", 0))
    engine, alone = engine_of(options, given[0]), engine_of(options, given[0])
    told: list[list[dict[tuple[Any, ...], Any]]] = [[], [], []]

    def write() -> None:
        for each in given[1:]:
            engine.append(each)

    def ask(mine: list[dict[tuple[Any, ...], Any]]) -> None:
        for _ in range(2 * ROUNDS):
            mine.append(changed(engine))

    assert run(write, *(lambda mine=mine: ask(mine) for mine in told)) == []  # type: ignore[misc]
    told.append([changed(engine)])  # what nobody was told yet
    passing = [passing_now(alone)]
    for each in given[1:]:
        alone.append(each)
        passing.append(passing_now(alone))
    assert follow_each_other(told, passing)


def pair(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["query"], row["k"], row["g"]


def changed(engine: sw.Engine) -> dict[tuple[Any, ...], Any]:
    """By pair the value of those that began, None of those that ceased."""
    return {pair(row): row["value"] if row["passing"] else None for row in engine.changes().to_pylist()}


def passing_now(engine: sw.Engine) -> dict[tuple[Any, ...], Any]:
    return {pair(row): row["value"] for row in engine.filters().to_pylist()}


def follow_each_other(told: list[list[dict[Any, Any]]], passing: list[dict[Any, Any]]) -> bool:
    """Is there an order of what threads were told, each in its own order, the last one last, in which each is the
    difference of who passed after some batch and after that of the one before?"""
    states = {((0,) * len(told), -1)}  # how much of each thread's, and the first batch that it may be as of
    seen = set(states)
    while states:
        taken, number = states.pop()
        others_left = any(taken[i] < len(told[i]) for i in range(len(told) - 1))
        before = passing[number] if number >= 0 else {}
        for i, mine in enumerate(told):
            if taken[i] == len(mine) or (i == len(told) - 1 and others_left):
                continue
            after = next(
                (n for n in range(max(number, 0), len(passing)) if is_between(before, passing[n], mine[taken[i]])), None
            )
            if after is not None:
                state = (*taken[:i], taken[i] + 1, *taken[i + 1 :]), after
                if all(n == len(each) for n, each in zip(state[0], told, strict=True)):
                    return passing[after].keys() == passing[-1].keys()
                if state not in seen:
                    seen.add(state)
                    states.add(state)
    return False


def is_between(before: dict[Any, Any], after: dict[Any, Any], told: dict[Any, Any]) -> bool:
    began = {key: value for key, value in after.items() if key not in before}
    return told == began | {key: None for key in before if key not in after}
