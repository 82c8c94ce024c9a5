"""Damages the state of a stream: it has the same variables, and turns one bit of each shard's oldest segment."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from swag.spark.streams.log import Header, Pieces
from swag.spark.streams.shard import Shards


class Vandal(Shards):
    def _step(self, shard: int, fresh: Any, came: str, watermark: int, expired: Any) -> Iterator[pd.DataFrame]:
        number = Header.of(Pieces(self._store, "")).entries[0].number
        content = bytearray(self._store.getValue((number,))[0])
        content[-40] ^= 4
        self._store.updateValue((number,), (bytes(content),))
        return iter([])
