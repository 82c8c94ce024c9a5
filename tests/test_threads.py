"""Several threads use one engine: batches are whole, and nobody sees half of one."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import swag as sw
from swag.live.planner import Group

ALL = sw.Range(10**9)
KEYS = 7


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
