"""The same shapes with ever more queries: what more queries cost when the shapes are no more."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from typing import Any

from towpath.lab.bench import MIXED_KINDS, mixed, shared
from towpath.lab.bench.apart import apart, new_log
from towpath.lab.bench.quiet import Company, watched
from towpath.lab.bench.sharing import RATE, ReportStep
from towpath.lab.bench.steps import Pace, Say, observe
from towpath.lab.usage import resident_bytes
from towpath.plan import CarrierKinds


@dataclass(frozen=True)
class CrowdPlan:
    kinds: tuple[str, ...] = MIXED_KINDS
    shapes: int = 40
    queries: tuple[int, ...] = (40, 400, 4_000)
    rate: int = RATE
    cores: int = 2
    pace: Pace = field(default_factory=Pace)
    carriers: CarrierKinds = CarrierKinds.AUTO
    patience_s: float = 300.0


QUICK = CrowdPlan(
    kinds=("filters", "windows"),
    shapes=5,
    queries=(5, 10),
    rate=500,
    pace=Pace(longest_trigger_s=60, warm_up_s=1, measure_s=2, least_triggers=2),
)


@dataclass(frozen=True)
class Crowd:
    """So many queries of the shapes, in a job of their own."""

    queries: int
    carriers: int
    start_s: float  # until every carrier has done a micro-batch
    median_s: float  # of triggers
    p95_s: float
    keeps_up: bool
    memory_gb: float  # of all processes

    def to_json(self) -> dict[str, Any]:
        return {name: round(v, 2) if isinstance(v, float) else v for name, v in asdict(self).items()}


@dataclass(frozen=True)
class CrowdReport:
    shapes: int
    crowds: tuple[Crowd, ...]
    company: Company

    def to_json(self) -> dict[str, Any]:
        crowds = [crowd.to_json() for crowd in self.crowds]
        return {"shapes": self.shapes, "steps": crowds, "machine": self.company.to_json()}


def run(plan: CrowdPlan, report: ReportStep) -> CrowdReport:
    log = new_log()
    with watched() as watch:
        crowds = [
            apart(measure, plan, n, log=log, say=partial(report, f"{n:,} queries", "towpath")) for n in plan.queries
        ]
    log.unlink()  # of use only when something failed
    return CrowdReport(plan.shapes, tuple(crowds), watch.company())


def measure(plan: CrowdPlan, n: int, say: Say) -> Crowd:
    requests = shared.SharedRequests(mixed.workload(plan.kinds, plan.shapes), say)
    requests.first(n)
    begin = time.monotonic()
    with shared.opened(requests, plan.rate, plan.cores, plan.carriers) as system:
        system.grow_to(n)
        shared.wait_for_all(system.running.engine, plan.patience_s)
        start_s, carriers = time.monotonic() - begin, len(system.running.engine.carriers)
        found = observe(system, n, plan.pace, say)
        seconds = median(trigger.seconds for trigger in found.triggers) if found.triggers else float("nan")
        memory_gb = resident_bytes() / 1e9
        return Crowd(n, carriers, start_s, seconds, found.p95, found.keeps_up, memory_gb)
