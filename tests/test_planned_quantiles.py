"""Which structure answers quantiles follows from what is asked how often; what they answer does not."""

from pathlib import Path

import numpy as np
import pytest

import swag as sw

ROWS = 6000
NAMES = ["p10", "p50", "p99", "old"]


def engine_of(algorithm: str = "auto") -> sw.Engine:
    engine = sw.Engine(algorithm=algorithm)
    engine.register(
        [
            sw.Query(sw.quantile("x", 0.1), sw.Rows(2000), "p10"), sw.Query(sw.median("x"), sw.Rows(500), "p50"),
            sw.Query(sw.quantile("x", 0.99, "linear"), sw.Range(1500), "p99"),
            sw.Query(sw.quantile("x", 0.5), sw.Rows(900, until=300), "old"),
        ]
    )  # fmt: skip
    return engine


def batch(number: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(number)
    return {"ts": np.arange(ROWS) + number * ROWS, "x": np.round(rng.normal(size=ROWS), 2)}


def expected(x: np.ndarray) -> dict[str, float]:
    def floor(window: np.ndarray, phi: float) -> float:
        return float(np.sort(window)[max(1, int(phi * window.size)) - 1])

    return {"p10": floor(x[-2000:], 0.1), "p50": float(np.median(x[-500:])), "p99": float(np.quantile(x[-1500:], 0.99)),
            "old": floor(x[-900:-300], 0.5)}  # fmt: skip


def chosen(engine: sw.Engine) -> str:
    lines = engine.explain().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("quantile(x)"))
    return lines[at + 1].split(":")[0].strip()


def test_few_lookups_are_sorted_on_lookup_and_many_by_runs_again(tmp_path: Path) -> None:
    engine = engine_of()
    assert "No events yet" in engine.explain()
    taken = [batch(i) for i in range(6)]
    for each in taken[:5]:
        engine.append(each)
        x = np.concatenate([one["x"] for one in taken])[: int(each["ts"][-1]) + 1]
        assert engine.lookup_all().to_pylist() == [pytest.approx(expected(x))]
    assert chosen(engine) == "sorted on lookup"
    assert "lookups to" in engine.explain() and "to sort all rows" in engine.explain()
    engine.save(tmp_path / "engine.swag")
    engine = sw.Engine.load(tmp_path / "engine.swag")
    assert chosen(engine) == "sorted on lookup"
    before = engine.lookup_all().to_pylist()
    for _ in range(4200):
        engine.lookup_all()
    assert chosen(engine) == "B-INT-QNT"
    assert engine.lookup_all().to_pylist() == before
    engine.append(taken[5])
    x = np.concatenate([one["x"] for one in taken])
    assert engine.lookup_all().to_pylist() == [pytest.approx(expected(x))]


@pytest.mark.parametrize(
    ("algorithm", "name"), [("b-int", "B-INT-QNT"), ("l-int", "B-INT-QNT"), ("materialize-none", "sorted on lookup")]
)
def test_one_that_is_asked_for_stays(algorithm: str, name: str) -> None:
    engine = engine_of(algorithm)
    for i in range(4):
        engine.append(batch(i))
        engine.lookup_all()
    assert chosen(engine) == name
    x = np.concatenate([batch(i)["x"] for i in range(4)])
    assert engine.lookup_all().to_pylist() == [pytest.approx(expected(x))]
