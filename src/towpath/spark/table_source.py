"""A reference table as Spark reads it: the version that the micro-batch has.

Imported by Spark's Python workers in every micro-batch, so it imports next to nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from towpath.spark.cuts import newest_batch
from towpath.tables import versions

FORMAT = "towpath_table"


class TableReader(DataSourceReader):
    def __init__(self, folder: str, pins: str, offsets: str, columns: Sequence[str]) -> None:
        self._folder = Path(folder)
        self._pins = Path(pins)
        self._offsets = offsets
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = newest_batch(self._offsets)
        assert batch is not None, "Spark writes the offsets of a micro-batch before it begins"
        version = versions.pinned(self._pins, batch, lambda: self._now(batch))
        rows = versions.load(self._folder, version).select(self._columns)
        yield from rows.rename_columns([f"c{n}" for n in range(len(self._columns))]).to_batches()

    def _now(self, batch: int) -> versions.Note:
        """A micro-batch begins where the one before ends."""
        before = Path(self._offsets) / str(batch - 1)
        return versions.Note(versions.current(self._folder), before.read_text() if before.exists() else "")


class TableSource(DataSource):
    """Options: path (the table's folder), pins, offsets (of the carrier's epoch), columns, schema (theirs)."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return self.options["schema"]

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self.options
        return TableReader(options["path"], options["pins"], options["offsets"], json.loads(options["columns"]))
