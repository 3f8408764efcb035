"""What an administrator chooses, and D-CAPE's redistribution parameters (Table 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Options:
    cost: str = "network_output_rate"  # a file of costs/
    redistribution: str = "degradation"  # a file of redistribution/
    every: float = 60.0  # seconds between two decisions: time for a distribution to show what it is worth
    at_once: int = 1  # moves per decision, at most
    percent_difference: float = 0.1  # redistribute when (max - min) / max is more; 1 is never
    degraded: float = 0.1  # share by which a processor's cost must have become worse to count
    eligible_operators: tuple[str, ...] = ()  # operators or fragments that may be moved; empty is all
    eligible_processors: tuple[str, ...] = ()  # names, or property=value; empty is all
    least_state: float = 0.0  # bytes of state of a fragment that may be moved
    most_state: float = inf
    window: float = 10.0  # seconds between two reports
    tolerance: float = 0.05  # a value is reported when it has changed by more than this share
    patience: float = 5.0  # seconds after which one that does not answer is taken for dead
    fan_out: int = 0  # processors below one manager, and managers below one above; 0 is one for all
    group_by: str = ""  # a property of nodes, as site: those of equal value share a manager; empty is neighbours
    offers: int = 8  # fragments whose costs a manager reports to the one above, each; all others in sum
    history: int = 100_000  # reported values that are kept for the export
