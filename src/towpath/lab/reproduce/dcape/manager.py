"""dcape-manager: what the distribution manager itself takes (Figures 4.8 to 4.10)."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from towpath import planners
from towpath.lab.reproduce.dcape import tiers
from towpath.lab.reproduce.dcape.meter import CONFIGURING, Meter, Metered, at_first, most, rate
from towpath.lab.reproduce.dcape.setting import ASSUMED, plan, run
from towpath.lab.reproduce.report import ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
from towpath.policies import dcape

SECONDS: Mapping[Scale, float] = {"tiny": 30.0, "default": 600.0, "full": 1800.0}
WINDOW = 10.0  # of plan 3, seconds
KILOBYTE, MEGABYTE = 1000.0, 1e6


def manager(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """The manager's own CPU, traffic and memory stay small; tiers of managers keep them so."""
    seconds = SECONDS[scale]
    meters = []
    for n, seed in enumerate(seeds, start=1):
        meters.append(_metered(seconds, seed))
        progress(f"seed {seed}", n / len(seeds) / 2)
    tiered = tiers.tiered(scale, seeds, lambda text, done: progress(text, (1 + done) / 2))
    return ExperimentReport(
        statements=(*statements(meters, seconds), *tiered.statements),
        tables=(_table(meters, seconds), *tiered.tables),
        plots=(_plot(meters[0], seconds), *tiered.plots),
        scaled_down=() if scale == "full" else (f"{seconds:.0f} simulated seconds instead of 30 minutes.",),
        assumed=(
            *ASSUMED,
            "Plan 3 over five processors, dealt round robin, with the degradation policy over tuples in memory; "
            "reports every 10 s, decisions every 60 s.",
            "CPU is the time that the manager's code takes on this machine per simulated second; memory is what is "
            "freed when the manager goes at the end of the run, without the Python interpreter under it.",
            f"The first {CONFIGURING:.0f} s, when plans and configuration are sent, are left out of the traffic: the "
            "thesis names them apart.",
            *tiered.assumed,
        ),
    )


def _metered(seconds: float, seed: int) -> Meter:
    problem = plan("3", 5)
    placement = planners.run("round_robin", problem)
    meter = Meter()
    tracemalloc.start()
    try:
        made = dcape.actors(problem, placement, dcape.Options(cost="tuples_in_memory"))
        actors = [Metered(actor, meter) if actor.address == dcape.ROOT else actor for actor in made.actors]
        manager = next(actor for actor in made.actors if actor.address == dcape.ROOT)
        run(problem, "round_robin", seconds, seed, WINDOW, replace(made, actors=tuple(actors)))
        del made, actors
        gc.collect()
        with_manager, _ = tracemalloc.get_traced_memory()
        del manager
        gc.collect()
        meter.memory = with_manager - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return meter


def statements(meters: Sequence[Meter], seconds: float) -> tuple[Statement, ...]:
    return (
        Statement.over(
            "The manager rarely uses the CPU: share of a core (less than 0.05 counts)",
            "rarely used",
            [m.cpu / seconds for m in meters],
            lambda share: share < 0.05,
        ),
        Statement.over(
            "It receives little: bytes per second on average",
            "400",
            [rate(m.received, seconds) for m in meters],
            lambda rate: rate <= 400,
        ),
        Statement.over(
            "It never sends more than 1 KB in a second: most bytes in one",
            "< 1000",
            [most(m.sent) for m in meters],
            lambda most: most < KILOBYTE,
        ),
        Statement.over(
            "It takes little memory: MB",
            "< 20",
            [m.memory / MEGABYTE for m in meters],
            lambda megabytes: megabytes < 20,
        ),
    )


def _table(meters: Sequence[Meter], seconds: float) -> Table:
    rows = (
        ("CPU, ms per second", fmean(m.cpu for m in meters) / seconds * 1e3),
        ("received, bytes per second", fmean(rate(m.received, seconds) for m in meters)),
        ("received, most bytes in a second", fmean(most(m.received) for m in meters)),
        ("sent, bytes per second", fmean(rate(m.sent, seconds) for m in meters)),
        ("sent, most bytes in a second", fmean(most(m.sent) for m in meters)),
        ("sent while configuring, bytes", fmean(at_first(m.sent) for m in meters)),
        ("memory, MB", fmean(m.memory for m in meters) / MEGABYTE),
    )
    return Table("What the manager takes (means)", ("", "ours"), rows)


def _plot(meter: Meter, seconds: float) -> Lines:
    at = range(int(CONFIGURING), int(seconds))
    series = tuple(
        Series(name, tuple(float(counted[s]) for s in at), tuple(map(float, at)))
        for name, counted in (("received", meter.received), ("sent", meter.sent))
    )
    return Lines("Traffic of the manager (Fig. 4.9)", "seconds", "bytes in a second", series)
