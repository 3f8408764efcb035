"""dcape-manager: what the distribution manager itself takes (Figures 4.8 to 4.10)."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from towpath import planners
from towpath.policies import dcape
from towpath.policies.dcape.messages import Message, size
from towpath.reproduce.dcape.setting import ASSUMED, plan, run
from towpath.reproduce.report import Lines, Progress, Report, Scale, Series, Statement, Table
from towpath.runtime.moves import Actor, Arrived, Event, Instruction, Send

SECONDS: Mapping[Scale, float] = {"tiny": 30.0, "default": 600.0, "full": 1800.0}
CONFIGURING = 6.0  # seconds at the start, in which plans and configuration are sent
KILOBYTE, MEGABYTE = 1000.0, 1e6


@dataclass
class Meter:
    cpu: float = 0.0  # seconds
    memory: int = 0  # bytes, at the end
    received: Counter[int] = field(default_factory=Counter)  # bytes by second
    sent: Counter[int] = field(default_factory=Counter)


class Metered:
    """An actor with a meter on it."""

    def __init__(self, actor: Actor, meter: Meter) -> None:
        self.address = actor.address
        self._actor = actor
        self._meter = meter

    def handle(self, event: Event) -> Sequence[Instruction]:
        meter, second = self._meter, int(event.at)
        if isinstance(event, Arrived):
            meter.received[second] += _size(event.message)
        begin = time.process_time()
        instructions = self._actor.handle(event)
        meter.cpu += time.process_time() - begin
        meter.sent[second] += sum(i.size for i in instructions if isinstance(i, Send))
        return instructions


def _size(message: object) -> int:
    assert isinstance(message, Message)
    return size(message)


def manager(scale: Scale, seeds: Sequence[int], progress: Progress) -> Report:
    """The manager's own CPU, traffic and memory stay small."""
    seconds = SECONDS[scale]
    meters = []
    for n, seed in enumerate(seeds, start=1):
        meters.append(_metered(seconds, seed))
        progress(f"seed {seed}", n / len(seeds))
    return Report(
        statements=_statements(meters, seconds),
        tables=(_table(meters, seconds),),
        plots=(_plot(meters[0], seconds),),
        scaled_down=() if scale == "full" else (f"{seconds:.0f} simulated seconds instead of 30 minutes.",),
        assumed=(
            *ASSUMED,
            "Plan 3 over five processors, dealt round robin, with the degradation policy over tuples in memory; "
            "reports every 10 s, decisions every 60 s.",
            "CPU is the time that the manager's code takes on this machine per simulated second; memory is what is "
            "freed when the manager goes at the end of the run, without the Python interpreter under it.",
            f"The first {CONFIGURING:.0f} s, when plans and configuration are sent, are left out of the traffic: the "
            "thesis names them apart.",
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
        run(problem, "round_robin", seconds, seed, replace(made, actors=tuple(actors)))
        del made, actors
        gc.collect()
        with_manager, _ = tracemalloc.get_traced_memory()
        del manager
        gc.collect()
        meter.memory = with_manager - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return meter


def _rate(counted: Counter[int], seconds: float) -> float:
    return sum(n for second, n in counted.items() if second >= CONFIGURING) / (seconds - CONFIGURING)


def _most(counted: Counter[int]) -> float:
    return max((n for second, n in counted.items() if second >= CONFIGURING), default=0)


def _at_first(counted: Counter[int]) -> float:
    return sum(n for second, n in counted.items() if second < CONFIGURING)


def _statements(meters: Sequence[Meter], seconds: float) -> tuple[Statement, ...]:
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
            [_rate(m.received, seconds) for m in meters],
            lambda rate: rate <= 400,
        ),
        Statement.over(
            "It never sends more than 1 KB in a second: most bytes in one",
            "< 1000",
            [_most(m.sent) for m in meters],
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
        ("received, bytes per second", fmean(_rate(m.received, seconds) for m in meters)),
        ("received, most bytes in a second", fmean(_most(m.received) for m in meters)),
        ("sent, bytes per second", fmean(_rate(m.sent, seconds) for m in meters)),
        ("sent, most bytes in a second", fmean(_most(m.sent) for m in meters)),
        ("sent while configuring, bytes", fmean(_at_first(m.sent) for m in meters)),
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
