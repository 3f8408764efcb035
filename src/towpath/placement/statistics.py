"""What is known of a running system. Estimates, the simulator and Spark fill the same type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OperatorStatistics:
    rate: float  # tuples in per second, over all inputs
    selectivity: float  # tuples out per tuple in
    cost: float  # seconds per input tuple on a node of cpu 1.0
    state_bytes: float = 0.0
    state_tuples: float = 0.0


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    load: float  # share of the time that it was busy
    queued: float = 0.0  # tuples that wait for it
    memory: float = 0.0  # bytes of state and queue
    bytes_in: float = 0.0  # per second, from other nodes
    bytes_out: float = 0.0


@dataclass(frozen=True)
class Statistics:
    """Over the `seconds` before `at`. What was not measured is missing."""

    at: float
    seconds: float
    streams: Mapping[str, float] = field(default_factory=dict)  # tuples per second
    operators: Mapping[str, OperatorStatistics] = field(default_factory=dict)
    nodes: Mapping[str, NodeStatistics] = field(default_factory=dict)
