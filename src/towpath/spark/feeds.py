"""A feed as a streaming data source in Python. Imported by Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from towpath.streams.feed import Feed, Position, Slice

FEED = "towpath_feed"


class Work(InputPartition):
    def __init__(self, slices: list[Slice]) -> None:
        self.slices = slices


class FeedReader(DataSourceStreamReader):
    def __init__(self, spec: dict[str, Any], parallelism: int) -> None:
        self._spec = spec
        self._parallelism = parallelism
        self._feed: Feed | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_feed": None}  # a worker opens its own

    @property
    def feed(self) -> Feed:
        if self._feed is None:
            self._feed = Feed(self._spec)
        return self._feed

    def initialOffset(self) -> dict[str, int]:
        return Position().to_json()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return self.feed.advance(Position.from_json(start)).to_json()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        slices = self.feed.slices(Position.from_json(start), Position.from_json(end))
        shares: list[list[Slice]] = [[] for _ in range(min(self._parallelism, len(slices)))]
        for piece in sorted(slices, key=lambda s: -s.rows):
            min(shares, key=lambda share: sum(s.rows for s in share)).append(piece)
        return [Work(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Work)
        yield from self.feed.read(partition.slices)


class FeedSource(DataSource):
    """Options: spec (JSON, see `inputs.py`), schema (DDL), parallelism."""

    @classmethod
    def name(cls) -> str:
        return FEED

    def schema(self) -> str:
        return self.options["schema"]

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return FeedReader(json.loads(self.options["spec"]), int(self.options["parallelism"]))
