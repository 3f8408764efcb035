"""Links as a streaming data source in Python. Imported by Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from towpath.results.links import LinkFeed, Position, Slice

LINKS = "towpath_links"


class Work(InputPartition):
    def __init__(self, slices: list[Slice], tick_us: int | None) -> None:
        self.slices = slices
        self.tick_us = tick_us


class LinkReader(DataSourceStreamReader):
    def __init__(self, spec: dict[str, Any], parallelism: int) -> None:
        self._spec = spec
        self._parallelism = parallelism
        self._feed: LinkFeed | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_feed": None}  # a worker opens its own

    @property
    def feed(self) -> LinkFeed:
        if self._feed is None:
            self._feed = LinkFeed(self._spec)
        return self._feed

    def initialOffset(self) -> dict[str, int]:
        return Position().to_json()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return self.feed.advance(Position.from_json(start)).to_json()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        since, until = Position.from_json(start), Position.from_json(end)
        if until.released_us == since.released_us:
            return []  # Spark's first micro-batch comes before there is anything
        slices = self.feed.slices(since, until)
        shares: list[list[Slice]] = [[] for _ in range(max(1, min(self._parallelism, len(slices))))]
        for piece in sorted(slices, key=lambda s: -s.rows):
            min(shares, key=lambda share: sum(s.rows for s in share)).append(piece)
        return [Work(share, until.released_us if n == 0 else None) for n, share in enumerate(shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Work)
        for piece in partition.slices:
            yield from self.feed.read(piece)
        if partition.tick_us is not None:
            yield self.feed.tick(partition.tick_us)


class LinkSource(DataSource):
    """Options: spec (JSON, see `inputs.py`), schema (DDL), parallelism."""

    @classmethod
    def name(cls) -> str:
        return LINKS

    def schema(self) -> str:
        return self.options["schema"]

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LinkReader(json.loads(self.options["spec"]), int(self.options["parallelism"]))
