"""The assignment table as Spark reads it.

Imported by Spark's Python workers in every micro-batch, so it imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

FORMAT = "towpath_assignments"


class AssignmentReader(DataSourceReader):
    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self._path) as file:
            yield from pa.ipc.open_file(file).read_all().combine_chunks().to_batches()


class AssignmentSource(DataSource):
    """Options: path (the table's file), schema (its columns as DDL)."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return self.options["schema"]

    def reader(self, schema: StructType) -> DataSourceReader:
        return AssignmentReader(self.options["path"])
