"""Every fragment on a node drawn at random: a baseline that knows nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from towpath.placement.copies import with_copies
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    seed: int = 0


def plan(problem: Problem, options: Options) -> Placement:
    # A node without cpu only receives results.
    nodes = [node.name for node in problem.cluster.nodes if node.cpu > 0] or list(problem.cluster.position)
    drawn = np.random.default_rng(options.seed).integers(len(nodes), size=len(problem.fragments)).tolist()
    return with_copies(problem, {f.name: nodes[n] for f, n in zip(problem.fragments, drawn, strict=True)})
