"""Damages the state of a stream: it has the same variables, and turns one bit of each shard's oldest segment."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from swag.spark.shard import Shards
from swag.spark.state import Header


class Vandal(Shards):
    def _step(self, shard: int, fresh: Any, watermark: int, expired: Any) -> Iterator[pd.DataFrame]:
        header = Header.from_bytes(self._header.get()[0], "")
        number = header.entries[0].number
        content = bytearray(self._segments.getValue((number,))[0])
        content[-40] ^= 4
        self._segments.updateValue((number,), (bytes(content),))
        return iter([])
