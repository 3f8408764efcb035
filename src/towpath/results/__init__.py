"""Results of all queries: one log per carrier on disk, read by query."""

from __future__ import annotations

from towpath.results.compact import Report, compact, retain
from towpath.results.kafka import KafkaSink
from towpath.results.log import Part, Position, committed
from towpath.results.look import Look
from towpath.results.read import Chunk, batches, end, follow, look_at, read
from towpath.results.render import FORMATS, render
from towpath.results.sinks import ConsoleSink, MemorySink, ParquetSink, Sink, SinkFeeder, Step

__all__ = [
    "FORMATS",
    "Chunk",
    "ConsoleSink",
    "KafkaSink",
    "Look",
    "MemorySink",
    "ParquetSink",
    "Part",
    "Position",
    "Report",
    "Sink",
    "SinkFeeder",
    "Step",
    "batches",
    "committed",
    "compact",
    "end",
    "follow",
    "look_at",
    "read",
    "render",
    "retain",
]
