"""The memory of the process, for the Python API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pyarrow as pa

from towpath.results.sinks.base import Sink, SinkDef, SinkStep


@dataclass(frozen=True)
class MemorySink:
    tables: list[pa.Table] = field(default_factory=list)

    def write(self, table: pa.Table, step: SinkStep) -> None:
        self.tables.append(table)

    def table(self) -> pa.Table:
        return pa.concat_tables(self.tables, promote_options="permissive") if self.tables else pa.table({})


class MemorySinkDef(SinkDef):
    type: Literal["memory"]
    lasting: ClassVar[bool] = False

    @classmethod
    def open(cls, record: Mapping[str, str]) -> Sink:
        return MemorySink()
