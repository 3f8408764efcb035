"""The least F of the paper's setting, proven: what variable neighbourhood search is held against.

Nodes are alike, and so are inputs of one source and role. So a program need only choose how many of them each node
has: first inputs, second inputs (which wait for a first one of the source before), and others. Its bound is weak as
long as duplication and the least load are open. Both take few values, so there is one program for each pair of values
that could be better than what is known, with T alone to be minimised; most have no solution, and that is soon proven.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from towpath.placement.costs.hummer import KB
from towpath.placement.index import Ints
from towpath.problems.generate.hummer import Hummer
from towpath.reuse.solver import IntegerProgram

ROUNDING = 1e-6


@dataclass(frozen=True)
class Optimum:
    cost: float  # the best that is known
    bound: float  # nothing is better than that; less than `cost` if the time was up before the proof
    seconds: float  # of the processor


def optimum(setting: Hummer, known: float = math.inf, seconds: float = 0.0) -> Optimum:
    """Of L + T + D, nodes having room for everything. `known`: F of a solution that exists, if it is better than all.

    `seconds`: of the processor, for each program; 0: as long as it takes.
    """
    counts = _counts(setting)
    rate = setting.rate * setting.event_bytes / KB
    total, of_source = int(counts.sum()), counts.sum(axis=0)
    used = int((of_source > 0).sum())
    best, bound, took = known, math.inf, 0.0
    for least in range(total // setting.nodes, -1, -1):
        each = math.ceil(least / of_source.max())  # the buffers that a node has at least
        for duplicates in range(max(0, setting.nodes * each - used), (setting.nodes - 1) * used + 1):
            fixed = rate * (total - setting.nodes * least) + duplicates
            better = math.inf if best == math.inf else math.ceil((best - fixed) / rate - ROUNDING) - 1
            cuts = min(better, counts[0].sum())
            if cuts < 0:
                break  # with more buffers it is no better
            program = _program(counts, setting.nodes, least, each, used + duplicates, cuts)
            found = program.solve(seconds, gap=ROUNDING)
            took += found.seconds
            if found.values is not None:
                best = fixed + rate * round(found.objective)
            if found.status in ("feasible", "out of time"):
                bound = min(bound, fixed + rate * max(math.ceil(found.bound - ROUNDING), 0))
    return Optimum(best, min(bound, best), took)


def _counts(setting: Hummer) -> Ints:
    """Inputs by role (first, second, other) and source."""
    found = np.zeros((3, setting.sources), np.int64)
    for query in range(setting.queries):
        for n in range(setting.inputs):
            found[min(n, 2), (query * setting.inputs + n) % setting.sources] += 1
    return found


def _program(counts: Ints, nodes: int, least: int, each: int, buffers: int, most_cuts: float) -> IntegerProgram:
    """Minimises the dependencies that are cut."""
    program, sources = IntegerProgram(), counts.shape[1]
    x = program.columns(0.0, upper=np.repeat(counts[:, :, None], nodes, axis=2), shape=(3, sources, nodes))
    buffered = program.columns(0.0, shape=(sources, nodes))
    cut = program.columns(1.0, upper=float(counts.max()), whole=False, shape=(sources, nodes))
    for s in range(sources):
        for role in range(3):
            count = float(counts[role, s])
            program.row([(x[role, s], 1.0)], count, count)
            program.rows([(buffered[s], count), (x[role, s], -1.0)], 0.0)
        # Of alike queries it does not matter which: as many wait for a local one as there are of both.
        program.rows([(cut[s], 1.0), (x[1, (s + 1) % sources], -1.0), (x[0, s], 1.0)], 0.0)
    for a in range(nodes):
        program.row([(x[:, :, a], 1.0)], least)
        program.row([(buffered[:, a], 1.0)], each)
    program.row([(buffered, 1.0)], buffers, buffers)
    program.row([(cut, 1.0)], most=most_cuts)
    order = 2.0 ** np.arange(sources)
    for a in range(nodes - 1):  # nodes are alike: one order of them will do
        program.row([(buffered[:, a], order), (buffered[:, a + 1], -order)], 0.0)
    return program
