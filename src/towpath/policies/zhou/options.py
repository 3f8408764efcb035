"""What can be set. Values that the paper states are the defaults; the others are explained in docs/design/zhou.md."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from towpath.policies.zhou.workload import lower_bound

Selection = Literal["data_flow_aware", "intermediate", "elementary"]


@dataclass(frozen=True)
class Options:
    selection: Selection = "data_flow_aware"
    max1: int = 5
    max2: int | None = None  # half of max1, rounded up
    maximum_try: int = 5  # random nodes asked after the neighbours
    refresh: float = 10.0  # seconds between two selections of partners
    tau: float = 0.1  # seconds of a window of measurement
    alpha: float | None = None  # the smallest that hides the fluctuation (m1, m2, growth)
    m1: int = 1  # windows within which a fluctuation rises
    m2: int = 1  # windows for which it then lasts
    growth: float = 2.0  # l: to how many times the workload it rises
    kappa: float = 1.2
    delta: float = 1.0  # seconds of a round
    probe_limit: int = 5  # in each round
    seed: int = 0

    @property
    def bound2(self) -> int:
        return ceil(self.max1 / 2) if self.max2 is None else self.max2

    @property
    def smoothing(self) -> float:
        return lower_bound(self.m1, self.m2, self.growth, self.kappa) if self.alpha is None else self.alpha
