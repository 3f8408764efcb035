"""Benchmarks: what sharing brings, what moves cost. Methods: docs/design/sharing-benchmark.md and moving.md there."""

from __future__ import annotations

# Here and not only in workloads.py, so that they can be named without importing Spark.
KIND_NAMES = ("alerts", "windows", "joins")
MIXED_KINDS = ("filters", "windows", "joins")
