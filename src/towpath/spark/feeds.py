"""A feed as a streaming data source in Python. Imported by Spark's Python workers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from towpath.schema import STREAM, internal
from towpath.spark.slices import SliceReader, SliceSource
from towpath.streams.feed import Feed, FeedPosition, FeedSlice

FEED = "towpath_feed"
MORE = "more"  # of an offset that is reported: whether rows that may be released were left for later


class FeedWork(InputPartition):
    def __init__(self, slices: list[FeedSlice]) -> None:
        self.slices = slices


class FeedReader(SliceReader[Feed]):
    def open(self, spec: dict[str, Any]) -> Feed:
        return Feed(spec)

    def position(self, offset: dict[str, Any]) -> FeedPosition:
        return FeedPosition.from_json(offset)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        found = super().latestOffset(start, limit)
        if found != start:
            time.sleep(self._spec.get("away", 0.0))  # as far as where the streams enter is to be
        return found

    def reportLatestOffset(self) -> dict[str, int] | None:
        known = self.feed.known
        return None if known is None else {**known.to_json(), MORE: int(self.feed.more)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        slices = self.feed.slices(self.position(start), self.position(end))
        return [FeedWork(share) for share in self.dealt(slices)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FeedWork)
        for batch in self.feed.read(partition.slices):
            yield batch.rename_columns([STREAM, *map(internal, batch.schema.names[1:])])


class FeedSource(SliceSource):
    reads_with = FeedReader

    @classmethod
    def name(cls) -> str:
        return FEED
