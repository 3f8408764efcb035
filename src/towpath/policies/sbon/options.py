"""What can be set of the policy. Where the paper gives a number, it is the default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    every: float = 60.0  # seconds between two evaluations of what a node runs
    sample: float = 10.0  # seconds between two latencies that a node measures
    neighbours: int = 16  # random other nodes to which a node measures latencies, one at a time
    window: float = 10.0  # seconds between two measurements of loads and rates
    settle: float = 0.0  # seconds before the first evaluation, for coordinates to settle
    rounds: int = 400  # of measurements for the coordinates to begin with, from the latencies the problem states
    step: float = 0.1  # delta
    force: float = 1.0  # F_t, in kB/s * ms
    nearest: int = 10  # k
    load_scale: float = 0.1  # seconds of distance that a fully loaded node is moved away by
    most_load: float = 0.9  # a node that would have more takes nothing in
    displacement: float = 0.005  # seconds: an operator that is drawn less far is not mapped again
    gain: float = 0.1  # the share of an operator's network usage that a migration must save
    percentile: float = 20.0  # of the last `history` latencies to a node: what counts
    history: int = 10
    smoothing: float = 0.1  # the weight of the newest window in rates and loads
    seed: int = 0
