"""Any argument where another was meant: what can not be meant is refused by an error of ours, and changes nothing."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import swag as sw
from tests.fuzz.target import Target, calls, plain, wrong

NAMESPACE = """\
import datetime as dt, decimal, numpy as np, pyarrow as pa
import frames as fr, swag as sw
inf, nan = float("inf"), float("nan")
events = {"ts": [1, 2, 3], "k": ["a", "b", "a"], "x": [1.0, 2.5, None], "i": [1, 2, 3]}
query = sw.Query(sw.count(), sw.Range(5), "q")
def engine():
    engine = sw.Engine(key="k")
    engine.register([query, sw.Query(sw.sum("i"), sw.Range(5), "h", having=(">", 1))])
    engine.append(events)
    return engine
"""
VALUES = [
    "None", "True", "0", "1", "-1", "2**70", "-2**63", "10**30", "1.5", "nan", "inf", "''", "'x'", "'ts'", "'k'",
    "'5m'", "'5 parsecs'", "b'x'", "[]", "[1]", "{}", "{'a': 1}", "()", "(1, 2)", "('>', 1)", "('>', 'a')",
    "('between', 2)", "('like', 1)", "('>', nan)", "('>', None)", "object()", "('>', np.array([1, 2]))",
    "('>', np.int64(1))", "('<', dt.date(2020, 1, 1))", "np.int64(3)", "np.float64('nan')", "np.timedelta64('NaT')",
    "np.timedelta64(5, 's')", "np.datetime64('NaT')", "np.datetime64('2020-01-01')", "dt.date(2020, 1, 1)",
    "dt.datetime(2020, 1, 1)", "dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)", "dt.timedelta(minutes=5)",
    "dt.timedelta(-1)", "decimal.Decimal('1.5')", "pa.scalar(3)", "pa.array([1])", "pa.table({})", "sw.count()",
    "sw.Rows(3)", "sw.Range(3)", "sw.Every(3)", "query", "events", "sw.count() > 1", "fr.Threshold('x', '>', 1)",
    "'SELECT SUM(x) FROM t [ROWS 3]'", "'SELECT'", "'x > 1'", "'x >'", "(lambda x: x)", "{'ts': [1], 'x': 5}",
    "{'ts': None}", "{1: [1]}", "{'ts': [2**70]}", "{'ts': [1, None], 'k': ['a', 'b'], 'i': [1, 1]}",
    "{'ts': [1, 2], 'k': ['a']}", "{'ts': [1.5], 'k': ['a'], 'i': [1]}", "[{'ts': 5, 'k': 'a', 'i': 1}]",
    "{'ts': ['now'], 'k': ['a'], 'i': [1]}", "{'ts': [9], 'k': [None], 'i': [1]}",
    "{'ts': [9], 'k': ['a'], 'i': ['b']}",
]  # fmt: skip
CALLS = [
    "sw.Rows({0})", "sw.Rows({0}, {1})", "sw.Range({0})", "sw.Range({0}, {1})", "sw.Range(5, closed={0})",
    "sw.Every({0})", "sw.Every(time={0})", "sw.Every(3, anchor={0}, per_key={1})", "sw.sum({0})", "sw.count({0})",
    "sw.quantile('x', {0}, method={1})", "sw.quantile({0}, 0.5)", "sw.var('x', ddof={0})", "sw.corr({0}, {1})",
    "sw.sum('x').over({0})", "sw.sum('x').filter({0})", "sw.sum('x') + {0}", "sw.sum('x') > {0}",
    "sw.sum('x').isin({0})", "sw.sum('x').between({0}, {1})", "sw.aggregate('x', {0}, {1}, lambda a: a, 0.0)",
    "sw.aggregate('x', lambda x: x, lambda a, b: a + b, lambda a: a, {0})", "sw.Query({0}, {1})",
    "sw.Query(sw.count(), sw.Rows(3), {0})", "sw.Query(sw.count(), sw.Rows(3), where={0})",
    "sw.Query(sw.count(), sw.Rows(3), having={0})", "sw.Query(sw.count(), sw.Rows(3), every={0}, source={1})",
    "sw.Query(sw.count(), sw.Rows(3), index={0})", "sw.Events({0}, {1})", "sw.sql({0})", "sw.Engine(ts={0})",
    "sw.Engine(key={0})", "sw.Engine(lateness={0})", "sw.Engine(epsilon={0})", "sw.Engine(algorithm={0})",
    "engine().register({0})", "engine().register(sw.Query(sw.sum('x'), sw.Range(9), 'n', having={0}))",
    "engine().unregister({0})", "engine().append({0})", "engine().advance({0})", "engine().lookup({0})",
    "engine().lookup('q', key={0})", "engine().lookup('q', at={0})", "engine().lookup('h', at={0}, exact={1})",
    "engine().lookup_all(at={0})", "engine().filters(at={0})", "sw.Engine().advance({0})", "sw.evaluate({0}, events)",
    "sw.evaluate([query], {0})", "sw.evaluate([query], events, at={0})", "sw.evaluate([query], events, ts={0})",
    "sw.evaluate([query], events, key={0})",
    "sw.evaluate([sw.Query(sw.sum('x'), sw.Range({0}), 's', having={1})], events, key='k')",
    "fr.Threshold({0}, '>', 1)", "fr.Threshold('x', {0}, {1})",
    "fr.Threshold('x', '>', 1, min_rows={0}, min_duration={1})", "fr.Boundary({0}, {1})",
    "fr.Boundary('x', breaks={0})", "fr.Boundary({{'x': {0}}})", "fr.Delta({0}, {1})",
    "fr.Delta('x', {0}, measure={1})", "fr.Aggregate({0}, '>', {1})", "fr.Aggregate(sw.count(), {0}, 1)",
    "fr.detect({0}, events)", "fr.detect(fr.Threshold('x', '>', 1), {0})",
    "fr.detect(fr.Threshold('x', '>', 1), events, ts={0}, key={1})",
    "fr.fill(fr.detect(fr.Threshold('x', '>', 1), events), {0})",
    "fr.fill(fr.detect(fr.Threshold('x', '>', 1), events), events, before={0}, after={1})", "fr.fill({0}, events)",
    "fr.summarize(fr.detect(fr.Threshold('x', '>', 1), events), events, {0})", "fr.Detector({0})",
    "fr.Detector(fr.Threshold('x', '>', 1), key={0}).push(events)",
    "fr.Detector(fr.Threshold('x', '>', 1)).push({0})", "fr.Detector(fr.Threshold('x', '>', 1)).punctuate({0})",
    "fr.Filler(before={0}, after={1}).push_events(events)", "fr.Filler().push_frames({0})",
    "fr.Filler().punctuate_frames({0})", "fr.Filler().punctuate_events({0})",
]  # fmt: skip
CASES = st.tuples(st.sampled_from(CALLS), st.sampled_from(VALUES), st.sampled_from(VALUES))


def check(case: tuple[str, str, str]) -> None:
    call, *values = case
    text = call.format(*values)
    calls.append(text)
    space: dict[str, Any] = {}
    exec(NAMESPACE, space)
    engine = space["engine"]()
    space["engine"] = lambda: engine
    before = answers(engine)
    with contextlib.suppress(sw.SwagError):
        try:
            eval(text, space)
        except sw.SwagError:
            if answers(engine) != before:
                raise wrong(
                    "misuse: an error changes the engine", f"{text}: {answers(engine)}, before {before}"
                ) from None
            raise
        engine.append({"ts": [9], "k": ["a"], "x": [1.0], "i": [1]})
        with tempfile.TemporaryDirectory() as folder:
            engine.save(Path(folder) / "snapshot")
            sw.Engine.load(Path(folder) / "snapshot")
        answers(engine)


def answers(engine: sw.Engine) -> Any:
    stats = engine.stats()
    return [engine.lookup_all().to_pylist(), engine.filters().to_pylist(), stats["events"], stats["complete_since"]]


def target() -> Target:
    return plain("misuse", CASES, check, lambda case: 1, examples=500)
