"""Streams for the studies: real ones from a Parquet file, or generated ones of the same shape.

traffic   speed at a detector, every 20 s, with rush hours       (or: detector, ts, speed)
casts     a probe towed up and down, 24 Hz, with plumes of dye   (or: cast, scan, pressure, temperature, fluorescence)
players   positions on a pitch of 68 x 105 m                     (generated only)
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def traffic(path: Path | None, quick: bool) -> dict[str, pa.Table]:
    """ts in seconds, speed; by name of the detector."""
    if path is None:
        return {"generated": _speeds(4 if quick else 31)}
    table = pq.read_table(path).sort_by("ts")
    out = {}
    for name in pc.unique(table["detector"]).to_pylist():
        own = table.filter(pc.equal(table["detector"], name))
        out[name] = pa.table(
            {"ts": own["ts"].cast(pa.timestamp("s"), safe=False).cast(pa.int64()), "speed": own["speed"]}
        )
    return out


def _speeds(days: int) -> pa.Table:
    rng = np.random.default_rng(12)
    ts = np.arange(0, days * 86_400, 20)
    hour = ts / 3600 % 24
    dip = sum(depth * np.exp(-(((hour - at) / wide) ** 2)) for depth, at, wide in ((26, 7.8, 0.9), (30, 17.2, 1.3)))
    weekday = (ts // 86_400 % 7 < 5) * rng.uniform(0.5, 1.1, days)[ts // 86_400]
    slow = np.convolve(rng.normal(size=ts.size), np.ones(30) / 30, "same") * 18
    return pa.table({"ts": ts, "speed": np.clip(60 - dip * weekday + slow + rng.normal(0, 3, ts.size), 3, 80)})


def casts(path: Path | None, quick: bool) -> dict[str, pa.Table]:
    """ts (the scan), depth, dye, temperature; by name of the cast. Real ones: fluorescence, pressure."""
    if path is None:
        return {"generated": _tow(40_000 if quick else 400_000)}
    table = pq.read_table(path)
    out = {}
    for name in pc.unique(table["cast"]).to_pylist():
        own = table.filter(pc.equal(table["cast"], name)).sort_by("scan")
        # Spikes that no probe measures (temperature +-99, pressure -26,730) are left out; nothing else is touched.
        good = pc.and_(pc.greater(own["pressure"], -5), pc.less(pc.abs(own["temperature"]), 40))
        own = own.filter(good)
        out[name] = pa.table(
            {"ts": own["scan"], "depth": own["pressure"], "dye": own["fluorescence"], "temperature": own["temperature"]}
        )
    return out


def _tow(size: int) -> pa.Table:
    rng = np.random.default_rng(13)
    at = np.arange(size)
    speed = np.repeat(rng.gamma(0.6, 1 / 0.6, size // 300 + 1), 300)[:size]  # a winch that stops and hurries
    depth = 20 + 18 * np.sin(np.cumsum(speed) / 900) + rng.normal(0, 0.002, size)
    dye = np.zeros(size)
    for centre in rng.integers(0, size, size // 4000):
        layer, length = rng.uniform(5, 35), rng.integers(800, 6000)
        part = slice(max(centre - 3 * length, 0), centre + 3 * length)
        dye[part] += rng.gamma(2, 0.5) * np.exp(
            -(((at[part] - centre) / length) ** 2) - ((depth[part] - layer) / 3) ** 2
        )
    patchy = np.repeat(rng.gamma(6, 1 / 6, size // 24 + 1), 24)[:size]  # a second of the probe at a time
    dye = np.maximum(dye * patchy * rng.normal(1, 0.02, size) + rng.normal(0.02, 0.004, size), 0)
    return pa.table(
        {"ts": at, "depth": depth, "dye": dye, "temperature": 18 - 0.25 * depth + rng.normal(0, 0.004, size)}
    )


def trades(path: Path | None) -> dict[str, pa.Table]:
    """ts in milliseconds, price; by symbol."""
    if path is None:
        return {}
    table = pq.read_table(path)
    out = {}
    for name in pc.unique(table["symbol"]).to_pylist():
        own = table.filter(pc.equal(table["symbol"], name))
        out[name] = pa.table({"ts": own["ts"].cast(pa.int64()), "price": own["price"]})
    return out


def players(count: int, seconds: int, rate: int = 50) -> pa.Table:
    """Players that run from one point of the pitch to another, again and again; ts in milliseconds."""
    rng = np.random.default_rng(14)
    size, step = seconds * rate, 1000 // rate
    tables = []
    for player in range(count):
        legs = rng.integers(2 * rate, 12 * rate, size // (4 * rate) + 2)
        knots = np.minimum(np.concatenate([[0], np.cumsum(legs)]), size * 4)
        x = np.interp(np.arange(size), knots, rng.uniform(2, 66, knots.size)) + rng.normal(0, 0.05, size)
        y = np.interp(np.arange(size), knots, rng.uniform(2, 103, knots.size)) + rng.normal(0, 0.05, size)
        tables.append(
            pa.table(
                {
                    "ts": np.arange(size) * step,
                    "player": np.full(size, player),
                    "x": np.clip(x, 0.01, 68),
                    "y": np.clip(y, 0.01, 105),
                }
            )
        )
    return pa.concat_tables(tables).sort_by("ts").combine_chunks()
