"""Statements with words and characters changed: queries, or an error that says where. What is read is written back the
same, and queries that are read answer over events, or say why not."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.fuzz.target import Target, calls, plain, wrong
from tests.sql.test_any_text import WORDS

STATEMENTS = [
    "SELECT AVG(x) FROM t [ROWS 10]",
    "SELECT AVG(x) FROM t [RANGE BETWEEN 20 AND 10 PRECEDING]",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM t [RANGE 300 UNTIL 5 CLOSED LEFT] WHERE x > 2 AND s LIKE 'b%'",
    "SELECT k, SUM(i) FROM t [RANGE 300] GROUP BY k HAVING SUM(i) > 10",
    "SELECT k, COUNT(*) FROM t [RANGE 20, FREQUENCY 3 TUPLES] WHERE i < 30 GROUP BY k",
    "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM t [ROWS 20, FREQUENCY 2 TUPLES] WHERE i < 3) [RANGE 9, FREQUENCY 9]",
    "SELECT k, SUM(i) FROM t [RANGE 300, FREQUENCY 10 TUPLES PARTITIONED BY k] GROUP BY k",
    "SELECT k FROM t GROUP BY k HAVING LAST(x) OVER [RANGE 20] < 0.98 * FIRST(x) OVER [RANGE 20] AND "
    "SUM(i) FILTER (WHERE s = 'ask') OVER [RANGE 2] >= 0.7 * SUM(i) OVER [RANGE 2]",
    "SELECT (MAX(x) - MIN(x)) / NULLIF(LAST(x), 0) FROM t [ROWS 5]",
    "SELECT ABS(-SUM(i)) + COALESCE(MIN(x), 0) AS a FROM t [ROWS 5] HAVING a BETWEEN 1 AND 5 OR NOT (MAX(i) IS NULL)",
    "SELECT QUANTILE(x, 0.9), MEDIAN(i), STDDEV_POP(x), VAR_SAMP(i), CORR(x, i), WMEAN(x, i) FROM t [ROWS 5]",
    "SELECT COUNT(*) FROM (SELECT * FROM t WHERE s = 'ask' OR i IN (1, 2)) [ROWS 3, FREQUENCY 2 TUPLES]",
    "SELECT /*+ NO_INDEX */ k, MAX(x) FROM t [RANGE 9] GROUP BY k HAVING MAX(x) >= 1e3",
    "SELECT AVG(x) FROM t [RANGE 5 MINUTES, FREQUENCY 1 HOUR ANCHOR TUPLE]",
    "SELECT k, AVG(x) FROM t [FRAME WHERE x > 0.3 FOR 2 AND 3 TUPLES PARTITION] GROUP BY k",
    "SELECT AVG(x) FROM t [FRAME UNTIL SUM(i) >= 25]",
    "SELECT AVG(x), COUNT(*) FROM t [FRAME WHILE MAX(i) < 5] WHERE i > 0",
    "SELECT AVG(x) FROM t [FRAME DELTA x 0.05, i 2]",
    "SELECT k, COUNT(*) FROM t [FRAME GRID x 4.25, i 4] GROUP BY k",
    'SELECT SUM("x") AS "a b" FROM "t" [ROWS 3]; SELECT LAST(s) FROM t [ROWS 2]',
]
TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|/\*.*?\*/|[\w.]+|<>|[<>]=|\S")
VOCABULARY = sorted({*WORDS, *(word for text in STATEMENTS for word in TOKEN.findall(text)), "1e308", "9" * 30, "NULL"})
CHANGE = st.one_of(
    st.tuples(st.just("leave out"), st.integers(0, 40), st.integers(1, 3)),
    st.tuples(st.just("put in"), st.integers(0, 40), st.sampled_from(VOCABULARY)),
    st.tuples(st.just("replace"), st.integers(0, 40), st.sampled_from(VOCABULARY)),
    st.tuples(st.just("swap"), st.integers(0, 40), st.integers(0, 40)),
    st.tuples(st.just("character"), st.integers(0, 200), st.text(max_size=2)),
    st.tuples(st.just("character"), st.integers(0, 200), st.sampled_from(list("()[]'\",;.*-+/<>=0123456789"))),
)
CASES = st.fixed_dictionaries(
    {
        "statement": st.sampled_from(STATEMENTS),
        "other": st.sampled_from(STATEMENTS),  # spliced in
        "splice": st.none() | st.tuples(st.integers(0, 30), st.integers(0, 30)),
        "changes": st.lists(CHANGE, max_size=4),
    }
)
EVENTS = {
    "ts": [1, 2, 2, 5, 9, 30], "k": list("abaabb"), "x": [1.0, 2.5, None, -1.0, 7.0, 0.5],
    "i": [1, None, 3, 4, -5, 6], "s": ["ask", "bid", None, "ask", "", "buy"],
}  # fmt: skip


def check(case: dict[str, Any]) -> None:
    text = changed(case)
    calls.append(f"queries = sw.sql({text!r})")
    try:
        queries = sw.sql(text)
    except sw.BadSQL as why:
        if not str(why).startswith("line "):
            raise wrong("sql: an error does not say where", f"{text!r}: {why}") from why
        return
    for each in queries:
        again = sw.sql(str(each))
        if again != [each]:
            raise wrong("sql: what is written reads otherwise", f"{each} reads as {again}")
    run(queries)


def changed(case: dict[str, Any]) -> str:
    words = TOKEN.findall(case["statement"])
    if case["splice"] is not None:
        head, tail = case["splice"]
        words = words[:head] + TOKEN.findall(case["other"])[tail:]
    for what, at, *rest in [c for c in case["changes"] if c[0] != "character"]:
        at = at % (len(words) or 1)
        if what == "leave out":
            del words[at : at + rest[0]]
        elif what == "swap":
            other = rest[0] % (len(words) or 1)
            words[at : at + 1], words[other : other + 1] = words[other : other + 1], words[at : at + 1]
        else:
            words[at : at + (what == "replace")] = rest
    text = " ".join(words)
    for _, at, character in [c for c in case["changes"] if c[0] == "character"]:
        at = at % (len(text) + 1)
        text = text[:at] + character + text[at + 1 :]
    return text


def run(queries: list[Any]) -> None:
    """Answers, or errors of ours."""
    for key in (None, "k"):
        calls.append(f"sw.evaluate(queries, {EVENTS}, key={key!r})")
        with contextlib.suppress(sw.SwagError):
            sw.evaluate(queries, EVENTS, key=key)
        if not any(isinstance(each, fr.FrameQuery) for each in queries):
            engine(queries, key)


def engine(queries: list[sw.Query], key: str | None) -> None:
    calls.append(f"engine = sw.Engine(key={key!r}); engine.register(queries); engine.append(…)")
    one = sw.Engine(key=key)
    with contextlib.suppress(sw.SwagError):
        one.register(queries)
        one.append(EVENTS)
        one.advance(100)
        one.explain()
        one.lookup_all()
        one.filters() if key else None
        one.emitted()
        with tempfile.TemporaryDirectory() as folder:
            one.save(Path(folder) / "snapshot")
            sw.Engine.load(Path(folder) / "snapshot").explain()


def target() -> Target:
    return plain("sql", CASES, check, lambda case: len(case["changes"]), examples=300)
