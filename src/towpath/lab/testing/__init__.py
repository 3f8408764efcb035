"""Random workloads for tests of anything that runs queries: by seed, or as Hypothesis strategies."""

from __future__ import annotations

from towpath.lab.testing.drawing import example_workload
from towpath.lab.testing.recording import Recording
from towpath.lab.testing.strategies import queries, streams, workloads
from towpath.lab.testing.workload import DrawnQuery, Workload

__all__ = ["DrawnQuery", "Recording", "Workload", "example_workload", "queries", "streams", "workloads"]
