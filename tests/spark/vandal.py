"""Damages the state of a stream: it has the same variables, and turns one bit of each shard's oldest segment."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from swag.spark.streams.log import HEADER_AT, Header
from swag.spark.streams.shard import Shards


class Vandal(Shards):
    def _step(self, shard: int, fresh: Any, came: str, watermark: int, expired: Any) -> Iterator[pd.DataFrame]:
        header = Header.from_bytes(self._get(HEADER_AT), "")
        number = header.entries[0].number
        content = bytearray(self._get(number))
        content[-40] ^= 4
        self._put(number, bytes(content))
        return iter([])
