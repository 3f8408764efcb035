"""From which event time on a tuple is in time for the micro-batch that runs now, as Spark reads it.

Spark writes the watermark of a micro-batch into the checkpoint before the batch begins, and a batch that is repeated
finds the same. Imported by Spark's Python workers in every micro-batch, so it imports next to nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

FORMAT = "towpath_cut"


def newest_batch(offsets: str) -> int | None:
    """The micro-batch that runs now, or ran last."""
    return max((int(name) for name in os.listdir(offsets) if name.isdigit()), default=None)


def watermark_ms(offsets: str) -> int:
    """Of the newest micro-batch in a folder of a checkpoint; 0 if there is none yet."""
    newest = newest_batch(offsets)
    if newest is None:
        return 0
    with open(os.path.join(offsets, str(newest))) as file:
        return int(json.loads(file.read().partition("\n")[2].partition("\n")[0])["batchWatermarkMs"])


class CutReader(DataSourceReader):
    def __init__(self, offsets: str) -> None:
        self._offsets = offsets

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (watermark_ms(self._offsets),)


class CutSource(DataSource):
    """Options: path (where a checkpoint keeps its offsets)."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "watermark_ms bigint"

    def reader(self, schema: StructType) -> DataSourceReader:
        return CutReader(self.options["path"])
