"""The experiments of Pietzuch et al. (SBON), section 4."""

from __future__ import annotations

from towpath.lab.reproduce.report import Experiment
from towpath.lab.reproduce.sbon.borealis import borealis
from towpath.lab.reproduce.sbon.migration import migration
from towpath.lab.reproduce.sbon.reuse import reuse
from towpath.lab.reproduce.sbon.table1 import table1

EXPERIMENTS: dict[str, Experiment] = {
    "sbon-table1": table1,
    "sbon-migration": migration,
    "sbon-reuse": reuse,
    "sbon-borealis": borealis,
}
