"""The sinks that a query can name: one file each, with its keys in a job file and how it is written.

A new kind is a file here, and a member of `SinkOfQuery` below (docs/how_to_add.md).
"""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from towpath.results.sinks.base import SinkDef
from towpath.results.sinks.console import ConsoleSinkDef
from towpath.results.sinks.kafka import KafkaSinkDef
from towpath.results.sinks.memory import MemorySinkDef
from towpath.results.sinks.parquet import ParquetSinkDef
from towpath.results.sinks.webhook import WebhookSinkDef

SinkOfQuery = Annotated[
    ParquetSinkDef | KafkaSinkDef | WebhookSinkDef | ConsoleSinkDef | MemorySinkDef,
    Field(discriminator="type"),
]
SINKS: dict[str, type[SinkDef]] = {
    get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(get_args(SinkOfQuery)[0])
}
