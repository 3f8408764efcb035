"""Experiments of the papers on real Spark: every node is a Spark Connect server of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.reproduce.live.buffers import buffers
from towpath.reproduce.live.redistribution import redistribution
from towpath.reproduce.live.throughput import throughput
from towpath.reproduce.report import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    "dcape-fig5-live": throughput,
    "dcape-fig6-live": redistribution,
    "hummer-fig5": buffers,
}
