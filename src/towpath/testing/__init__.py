"""Random workloads for tests of anything that runs queries: by seed, or as Hypothesis strategies."""

from __future__ import annotations

from towpath.testing.drawing import example_workload
from towpath.testing.recording import Recording
from towpath.testing.strategies import queries, streams, workloads
from towpath.testing.workload import Submission, Workload

__all__ = ["Recording", "Submission", "Workload", "example_workload", "queries", "streams", "workloads"]
