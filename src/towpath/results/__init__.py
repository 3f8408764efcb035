"""Results of all queries: one log per carrier on disk, read by query."""

from __future__ import annotations

from towpath.results.compact import CompactionReport, compact, retain
from towpath.results.feeding import SinkFeeder
from towpath.results.log import Part, Position, committed
from towpath.results.look import Look
from towpath.results.read import Chunk, Relation, batches, end, follow, look_at, read, relation
from towpath.results.render import FORMATS, render
from towpath.results.sinks.base import Sink, SinkStep
from towpath.results.sinks.console import ConsoleSink
from towpath.results.sinks.kafka import KafkaSink
from towpath.results.sinks.memory import MemorySink
from towpath.results.sinks.parquet import ParquetSink

__all__ = [
    "FORMATS",
    "Chunk",
    "CompactionReport",
    "ConsoleSink",
    "KafkaSink",
    "Look",
    "MemorySink",
    "ParquetSink",
    "Part",
    "Position",
    "Relation",
    "Sink",
    "SinkFeeder",
    "SinkStep",
    "batches",
    "committed",
    "compact",
    "end",
    "follow",
    "look_at",
    "read",
    "relation",
    "render",
    "retain",
]
