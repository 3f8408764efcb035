"""Experiments of the papers on real Spark: every node is a Spark Connect server of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.lab.reproduce.live.buffers import buffers
from towpath.lab.reproduce.live.hummer import live as hummer_live
from towpath.lab.reproduce.live.redistribution import redistribution
from towpath.lab.reproduce.live.sbon import live as sbon_live
from towpath.lab.reproduce.live.sqpr import live as sqpr_live
from towpath.lab.reproduce.live.throughput import throughput
from towpath.lab.reproduce.report import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    "dcape-fig5-live": throughput,
    "dcape-fig6-live": redistribution,
    "hummer-fig5": buffers,
    "hummer-live": hummer_live,
    "sbon-live": sbon_live,
    "sqpr-live": sqpr_live,
}
