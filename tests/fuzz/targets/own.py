"""Aggregates of the user's own, plain functions that are compiled: in an engine and over stored events, against a fold.

Some of them refuse a value. A batch that holds one is refused whole, and the engine goes on as before.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import swag as sw
from tests.fuzz.target import Target, calls, plain, wrong

TYPES = {"y": pa.float64(), "n": pa.int64()}


def _small(x: Any) -> Any:
    if x > 4:
        raise ValueError("too large")
    return x


OWN: dict[str, tuple[str, tuple[Any, ...]]] = {  # of which column; lift, combine, lower, identity
    "squares": ("y", (lambda x: x * x, lambda a, b: a + b, lambda a: a, 0.0)),
    "twice": ("y", (lambda x: 2.0 * x, lambda a, b: a + b, lambda a: a, 0.0)),
    "spread": ("y", (lambda x: (x, x), lambda a, b: (min(a[0], b[0]), max(a[1], b[1])), lambda a: a[1] - a[0],
                     (math.inf, -math.inf))),
    "whole": ("n", (lambda x: x, lambda a, b: a + b, lambda a: a, 0)),
    "small": ("y", (_small, lambda a, b: a + b, lambda a: a, 0.0)),
    "odd": ("y", (lambda x: x, lambda a, b: a + b, lambda a: (a, a), 0.0)),  # an answer is a number
}  # fmt: skip
TERMS = ["squares", "twice", "spread", "whole", "small", "odd", ("squares", "twice"), ("twice", "spread")]
ROW = st.tuples(st.sampled_from([0, 1, 3]), st.none() | st.integers(-3, 5).map(float), st.none() | st.integers(-3, 5))
CASES = st.fixed_dictionaries(
    {
        "terms": st.lists(st.sampled_from(TERMS), min_size=1, max_size=2),
        "rows": st.integers(1, 6),  # of the window
        "batches": st.lists(st.lists(ROW, max_size=6), max_size=4),
        "save": st.booleans(),
        "swapped": st.none() | st.sampled_from(["squares", "spread", "whole"]),
    }
)


@cache
def made(name: str) -> sw.Aggregate:
    """Once: what is compiled belongs to it."""
    column, (lift, combine, lower, identity) = OWN[name]
    return sw.aggregate(column, lift=lift, combine=combine, lower=lower, identity=identity)


def term(names: Any) -> Any:
    return made(names) if isinstance(names, str) else made(names[0]) + made(names[1])


def folded(names: Any, window: list[dict[str, Any]]) -> Any:
    if not isinstance(names, str):
        parts = [folded(name, window) for name in names]
        return None if None in parts else sum(parts)
    column, (lift, combine, lower, state) = OWN[names]
    values = [row[column] for row in window if row[column] is not None]
    for value in values:
        state = combine(state, lift(value))
    return lower(state) if values else None


def check(case: dict[str, Any]) -> None:
    one = Owned(case["terms"], case["rows"])
    for batch in case["batches"]:
        one.append(batch)
    if case["save"]:
        one.save(case["swapped"])
    one.evaluated()


class Owned:
    def __init__(self, terms: list[Any], rows: int) -> None:
        self.terms, self.rows = {f"u{i}": each for i, each in enumerate(terms)}, rows
        self.taken: list[dict[str, Any]] = []
        self.time = 0
        calls.append(f"# over sw.Rows({rows}): {self.terms} of tests/fuzz/targets/own.py, beside count() and sum(y)")
        self.queries = [sw.Query(term(each), sw.Rows(rows), name) for name, each in self.terms.items()]
        self.known = [sw.Query(sw.count(), sw.Rows(rows), "count"), sw.Query(sw.sum("y"), sw.Rows(rows), "sum")]
        self.engine = sw.Engine()
        self.refused = self._is_refused(lambda: self.engine.register(self.queries))
        self.engine.register(self.known)

    def append(self, batch: list[Any]) -> None:
        rows = [{"ts": self._tick(gap), "y": y, "n": n} for gap, y, n in batch]
        table = pa.table(
            {name: pa.array([row[name] for row in rows], TYPES.get(name, pa.int64())) for name in ("ts", *TYPES)}
        )
        calls.append(f"engine.append({rows})")
        if self._is_refused(lambda: self.engine.append(table)):
            self.refused = self.refused or not any(self._is_bad(row) for row in rows)
        else:
            self.taken += rows
        self.same()

    def same(self) -> None:
        window = self.taken[-self.rows :]
        ys = [row["y"] for row in window if row["y"] is not None]
        found = self.engine.stats()["events"], self.engine.lookup("count"), self.engine.lookup("sum")
        if found != (len(self.taken), len(window), sum(ys) if ys else None):
            raise wrong("own: a batch is half applied", f"{found}, expected {len(self.taken)}, {len(window)}, {ys}")
        for name, each in self.terms.items() if not self.refused else ():
            self._same(name, self.engine.lookup(name), self._expected(each, window), "engine")

    def evaluated(self) -> None:
        rows = [*self.taken, {"ts": self.time, "y": 1.0, "n": 1}]
        table = pa.table(
            {name: pa.array([row[name] for row in rows], TYPES.get(name, pa.int64())) for name in ("ts", *TYPES)}
        )
        for query, (name, each) in zip(self.queries, self.terms.items(), strict=True):
            calls.append(f"sw.evaluate([{name}], {rows})")
            try:
                found = sw.evaluate([query], table)[name].to_pylist()
            except sw.SwagError:
                if "odd" in str(each) or any(self._is_bad(row) for row in rows):
                    continue
                raise
            for at, got in enumerate(found):
                window = rows[max(0, at + 1 - self.rows) : at + 1]
                self._same(name, got, self._expected(each, window), "evaluate")

    def save(self, swapped: str | None) -> None:
        """Functions are given again; if they are others, that is found out, or the answers are those of before."""
        if self.refused:
            return
        calls.append(f"engine.save(path); sw.Engine.load(path, queries=…), u0 swapped for {swapped}")
        given = list(self.queries)
        if swapped is not None:
            given[0] = sw.Query(made(swapped), sw.Rows(self.rows), "u0")
        with tempfile.TemporaryDirectory() as folder:
            self.engine.save(Path(folder) / "snapshot")
            try:
                engine = sw.Engine.load(Path(folder) / "snapshot", queries=given)
            except sw.SwagError:
                if swapped is None:
                    raise
                return
        if swapped in (None, self.terms["u0"]):
            self.engine = engine
            self.same()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _is_refused(self, step: Callable[[], Any]) -> bool:
        """An aggregate that gives no number, or refuses a value, is told with an error of ours."""
        try:
            step()
        except sw.SwagError:
            if not {"odd", "small"} & set(map(str, self.terms.values())):
                raise
            return True
        return False

    def _is_bad(self, row: dict[str, Any]) -> bool:
        return "small" in self.terms.values() and row["y"] is not None and row["y"] > 4

    def _expected(self, names: Any, window: list[dict[str, Any]]) -> Any:
        return folded(names, window)

    def _same(self, name: str, found: Any, want: Any, by: str) -> None:
        if found != want or (found is None) != (want is None):
            raise wrong(f"own: {by}, {self.terms[name]}", f"{name}: {found!r}, expected {want!r}")

    def _tick(self, gap: int) -> int:
        self.time += gap
        return self.time


def target() -> Target:
    return plain("own", CASES, check, lambda case: len(case["batches"]), examples=30)
