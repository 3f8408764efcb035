"""Links as a streaming data source in Python. Imported by Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from towpath.results.links import LinkFeed, LinkPosition, LinkSlice
from towpath.spark.slices import SliceReader, SliceSource

LINKS = "towpath_links"


class LinkWork(InputPartition):
    def __init__(self, slices: list[LinkSlice], tick_us: int | None) -> None:
        self.slices = slices
        self.tick_us = tick_us


class LinkReader(SliceReader[LinkFeed]):
    def open(self, spec: dict[str, Any]) -> LinkFeed:
        return LinkFeed(spec)

    def position(self, offset: dict[str, Any]) -> LinkPosition:
        return LinkPosition.from_json(offset)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        since, until = self.position(start), self.position(end)
        if until.released_us == since.released_us:
            return []  # Spark's first micro-batch comes before there is anything
        shares = self.dealt(self.feed.slices(since, until)) or [[]]  # the tick comes without rows, too
        return [LinkWork(share, until.released_us if n == 0 else None) for n, share in enumerate(shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LinkWork)
        for piece in partition.slices:
            yield from self.feed.read(piece)
        if partition.tick_us is not None:
            yield self.feed.tick(partition.tick_us)


class LinkSource(SliceSource):
    reads_with = LinkReader

    @classmethod
    def name(cls) -> str:
        return LINKS
