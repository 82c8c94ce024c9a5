"""How the engines in the files of this folder came about. They must load for ever.

Version 0.1 wrote format 2; format 3 is what `save` of an engine made here writes today. The file with parentheses is of
the time when they made a difference to what a computed column is called.
"""

import numpy as np
import pyarrow as pa

import swag as sw

NUMBER = sw.Range(40)
RECIPES = {
    "keyed": {"key": "k"},
    "late": {"key": "k", "lateness": 15},
    "stream": {},
}


def queries(keyed):
    found = [
        sw.Query(what, window, where=where)
        for what in (sw.count("n"), sw.sum("x"), sw.sum("i"), sw.max("x"), sw.var("x"), sw.median("i"), sw.last("s"))
        for window in (NUMBER, sw.Rows(7))
        for where in (None, "i > 2")
    ]
    found += [sw.Query(sw.mean("x"), NUMBER, name="ticks", every=sw.Every(10))]
    found += [sw.Query(sw.count(), sw.Rows(3), name="over", source=sw.Events("i > 4"))]
    if keyed:
        found += [
            sw.Query(sw.count(), NUMBER, name="many", having=(">=", 4)),
            sw.Query(sw.sum("i"), NUMBER, name="much", having=(">", 12)),
            sw.Query(sw.max("x"), NUMBER, name="high", having=(">", 0.5), where="i > 2"),
        ]
    return found


def batch(first, rows=50):
    ts = np.arange(first, first + rows)
    return {
        "ts": ts,
        "k": pa.array([f"k{i}" for i in ts * 7 % 5]),
        "x": (ts * 7919 % 1000) / 1000 - 0.2,
        "i": ts * 31 % 10,
        "n": pa.array(ts % 5, mask=ts % 3 == 0),
        "s": pa.array([f"word {i}" for i in ts % 6]),
    }


def make(name):
    engine = sw.Engine(**RECIPES[name])
    engine.register(queries("key" in RECIPES[name]))
    for first in range(0, 150, 50):
        engine.append(batch(first))
    for query in engine.queries:
        if query.every is None:
            engine.lookup(query.label)
    return engine


def with_parentheses():
    """Computed columns whose names are others today."""
    engine = sw.Engine(key="k", lateness=5)
    what = {
        "sum": sw.sum("(x) * (i)"), "same": sw.sum("x * i"), "max": sw.max("((x)) - 1"), "middle": sw.median("(i) % 7"),
        "mean": sw.sum("(x)*(i)") / sw.count(), "word": sw.last("UPPER((s))"), "pair": sw.wmean("(x) + 0", "(i) * 1"),
    }  # fmt: skip
    engine.register([sw.Query(each, sw.Rows(6), name=name, where="(i) > 1") for name, each in what.items()])
    engine.register(sw.Query(sw.mean("(x) - 1"), sw.Unbounded(), name="ever"))
    engine.register(sw.Query(sw.sum("(x) * (i)"), NUMBER, name="ticks", every=sw.Every(4)))
    engine.register(sw.Query(sw.max("(x) * (i)"), NUMBER, name="much", having=(">", 2)))
    for first in range(0, 60, 20):
        engine.append(batch(first, 20))
    return engine
