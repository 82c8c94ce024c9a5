"""How many events per second an engine takes in, over many keys, with windows registered."""

import numpy as np
import pyarrow as pa

import swag as sw
from bench import data
from bench.data import HOUR, MINUTE
from bench.report import Finding, Report
from bench.timing import cpu_clock, elapsed

KINDS = (sw.sum, sw.mean, sw.max, lambda column: sw.count())


def run(quick: bool) -> Report:
    events, keys, batch = (200_000, 2_000, 20_000) if quick else (10_000_000, 100_000, 100_000)
    report = Report(
        f"keyed engine: {events:,} events over {keys:,} keys in batches of {batch:,}, 20 windows registered"
    )
    for label, names in (("integer keys", None), ("string keys", pa.array([f"S{k:06d}" for k in range(keys)]))):
        seconds, kept = _append_all(events, keys, batch, names)
        reach = 3 if names is None else None
        report.findings.append(
            Finding(
                f"appended, {label}",
                f"sum, mean, max, count of 1 min - 1 h; {kept:,} kept at the end",
                events / seconds / 1e6,
                "M events/s",
                reach,
            )
        )
    report.notes.append(
        "CPU time of all threads, from the first event on an empty engine: new keys, growing rings and expiry are "
        "in it; making the batches is not."
    )
    return report


def _append_all(events: int, keys: int, batch: int, names: pa.Array | None) -> tuple[float, int]:
    engine = sw.Engine(ts="ts", key="key")
    for i, width in enumerate(data.widths(20, MINUTE, HOUR)):
        engine.register(sw.Query(KINDS[i % 4]("x"), sw.Range(f"{width}ms"), name=f"w{i}"))
    rng, seconds = np.random.default_rng(5), 0.0
    for b in range(events // batch):
        ts = (data.EPOCH + (b * batch + np.arange(batch)) * 2).astype("datetime64[ms]")  # 500 events per second
        ids = rng.integers(0, keys, batch)
        key = pa.array(ids) if names is None else names.take(pa.array(ids))
        table = pa.table({"ts": ts, "key": key, "x": rng.normal(size=batch)})
        seconds += elapsed(lambda table=table: engine.append(table), cpu_clock)
    return seconds, engine.stats()["kept"]
