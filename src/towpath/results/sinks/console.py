"""The terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TextIO

import pyarrow as pa

from towpath.results.render import render
from towpath.results.sinks.base import Sink, SinkDef, SinkStep


@dataclass(frozen=True)
class ConsoleSink:
    """Prints. A step that a crash interrupted is printed again: nobody can know what was seen of it."""

    stream: TextIO | None = None  # standard output

    def write(self, table: pa.Table, step: SinkStep) -> None:
        render(table, "table", stream=self.stream)


class ConsoleSinkDef(SinkDef):
    type: Literal["console"]

    @classmethod
    def open(cls, record: Mapping[str, str]) -> Sink:
        return ConsoleSink()
