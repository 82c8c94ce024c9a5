"""A stand-in for Spark around shards: state that commits or not, timers, the watermark, workers and their caches.

It does what Spark does, without Java: for tests of many small streams. What Spark really does is tested beside it.
"""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from swag.spark.streams import shard as shard_module
from swag.spark.streams.cache import Cache
from swag.spark.streams.log import Header, Pieces
from swag.spark.streams.packing import COUNTS, Pack
from swag.spark.streams.shard import Job, Shards, counted


class Map:
    def __init__(self, store: dict, name: str) -> None:
        self.store = store.setdefault(name, {})

    def getValue(self, key: tuple) -> Any:
        return self.store.get(key)

    def updateValue(self, key: tuple, value: tuple) -> None:
        self.store[key] = value

    def removeKey(self, key: tuple) -> None:
        del self.store[key]


class Handle:
    """The state of one shard; its timers are under "timers"."""

    def __init__(self, store: dict) -> None:
        self.store = store
        self.timers: set[int] = store.setdefault("timers", set())

    def getMapState(self, name: str, key: Any, value: Any) -> Map:
        return Map(self.store, name)

    def registerTimer(self, at: int) -> None:
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.timers.remove(at)


class Times:
    def __init__(self, watermark: int) -> None:
        self.watermark = watermark

    def getCurrentWatermarkInMs(self) -> int:
        return self.watermark

    getExpiryTimeInMs = getCurrentWatermarkInMs


class Stream:
    """shard_of: a function of a key. workers: how many caches there are; each call names the one it runs on.

    held_back: by how much the watermark is earlier than this stream has it, as another one of the same query may be.
    """

    def __init__(
        self, job: Job, packers: dict[str, Pack], delay: int, shards: int = 1, workers: int = 1, held_back: int = 0
    ) -> None:
        self.job, self.packers, self.delay, self.shards = replace(job, delay=delay), packers, delay + held_back, shards
        self.stores: dict[int, dict] = {}
        self.watermark = 0
        self.latest = {kind: 0 for kind, pack in packers.items() if pack.tells_time}
        self.caches = [Cache() for _ in range(workers)]
        self.metrics: list[dict[str, int]] = []

    def trigger(
        self, rows: dict[str, pa.Table], worker: int = 0, fails: bool = False, actions: int = 1, committed: int = -1
    ) -> list[dict]:
        """A batch, at the watermark of the batches before. fails: the state is not committed, nothing comes out.

        actions: how often it is computed, each time from the state before, as by several in one foreachBatch;
        committed: which of them leaves its state behind.
        """
        packed = self._packed(rows)
        self.before = self.watermark
        before = copy.deepcopy(self.stores)
        shard_module.CACHE = self.caches[worker]
        self.metrics = []
        outcomes = []
        for _ in range(actions):
            self.stores = copy.deepcopy(before)
            outcomes.append((self._computed(packed), self.stores))
        found, self.stores = outcomes[committed]
        assert all(each == found for each, _ in outcomes)
        if fails:
            self.stores = before
            return []
        for _, kind, _, t, _ in packed:
            if t is not None:
                self.latest[kind] = max(self.latest[kind], t)
        self.watermark = max(self.watermark, min(self.latest.values()) // 1000 - self.delay)  # of the slowest stream
        return found

    def settle(self) -> None:
        """Workers have time: what goes ahead has done so before the next trigger."""
        for cache in self.caches:
            for cached in cache._kept:
                if cached.busy is not None:
                    cached.wanted.set()
                    cached.busy.result()

    def _computed(self, packed: list[tuple]) -> list[dict]:
        found: list[dict] = []
        for number in sorted({s for s, *_ in packed} | set(self.stores)):
            found += self._run(number, [piece for piece in packed if piece[0] == number])
        return found

    def _packed(self, rows: dict[str, pa.Table]) -> list[tuple]:
        found = []
        for kind, table in rows.items():
            pack = self.packers[kind]
            if table.num_rows == 0:
                continue
            keys = [0] * table.num_rows if pack.key is None else table.column(pack.key).to_pylist()
            batch = pack.packed(table, np.array([hash(k) % self.shards for k in keys], np.int32), 0)
            times = batch.column("time").cast(pa.int64()).to_pylist()
            plain = (batch.column(name).to_pylist() for name in ("shard", "kind", "place", "piece"))
            found += [(s, k, p, t, b) for (s, k, p, b), t in zip(zip(*plain, strict=True), times, strict=True)]
        return found

    def _run(self, number: int, pieces: list[tuple]) -> list[dict]:
        handle = Handle(self.stores.setdefault(number, {}))
        processor = Shards(self.job)
        processor.init(handle)
        frames = []
        if pieces:
            import pandas as pd

            rows = pd.DataFrame(
                {"kind": [p[1] for p in pieces], "place": [p[2] for p in pieces], "piece": [p[4] for p in pieces]}
            )
            frames += list(processor.handleInputRows((number,), iter([rows]), Times(self.watermark)))
        for expired in sorted(t for t in handle.timers if t <= self.watermark):
            frames += list(processor.handleExpiredTimer((number,), Times(self.watermark), Times(expired)))
            handle.timers.discard(expired)
        processor.close()
        tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames]
        return [row for table in tables for row in self._rows(table)]

    def _rows(self, table: pa.Table) -> list[dict]:
        rows = table.to_pylist()
        counts = [row[COUNTS] for row in rows if row[COUNTS] is not None]
        if counts:
            self.metrics.append(counted(counts))
        names = {f"c{i}": name for i, name in enumerate(self.job.output.names)}
        return [{name: row[ours] for ours, name in names.items()} for row in rows if row[COUNTS] is None]

    def upto(self, key: Any) -> float:
        """The time up to which the shard of a key has answered requests, and let go."""
        header = Header.of(Pieces(Map(self.stores.get(hash(key) % self.shards, {}), "pieces"), ""))
        upto = None if header is None else header.body[0]["answered"]
        return float("-inf") if upto is None else upto

    def total(self, name: str) -> int:
        return int(np.sum([each[name] for each in self.metrics]))
