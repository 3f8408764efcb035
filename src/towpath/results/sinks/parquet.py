"""A folder of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from towpath.config.settings import Location
from towpath.results.sinks.base import Sink, SinkDef, SinkStep
from towpath.store import durable
from towpath.store.private import share


@dataclass(frozen=True)
class ParquetSink:
    """A file per step in a folder. What is there already was written before the crash."""

    folder: Path

    def write(self, table: pa.Table, step: SinkStep) -> None:
        final = self.folder / f"part-{step.name}.parquet"
        if final.exists():
            return
        if not self.folder.exists():
            self.folder.mkdir(parents=True)
            share(self.folder)
        with durable.writing(final) as scratch:
            pq.write_table(table, scratch)
            share(scratch)  # a sink is for others; the store is not


class ParquetSinkDef(SinkDef):
    type: Literal["parquet"]
    path: Location = Field(examples=["./out"])

    @property
    def folder(self) -> Path:
        return Path(self.path)

    @classmethod
    def open(cls, record: Mapping[str, str]) -> Sink:
        return ParquetSink(Path(record["path"]))
