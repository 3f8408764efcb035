"""Benchmarks: what sharing brings. Their method is in docs/design/sharing-benchmark.md."""

from __future__ import annotations

# Here and not only in workloads.py, so that they can be named without importing Spark.
KIND_NAMES = ("alerts", "windows", "joins")
