"""Part of dcape-manager: what tiers of managers are for (section 4.2). The thesis draws them and measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from towpath.lab.reproduce.dcape.meter import Meter, Metered, rate
from towpath.lab.reproduce.report import Cell, ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.lab.sim import Profile, simulate
from towpath.placement.problem import Placement, Problem
from towpath.policies import dcape as policy
from towpath.policies.dcape.manager import Manager
from towpath.problems.generate.dcape import Dcape, dcape
from towpath.runtime.actors import Actors

NODES: Mapping[Scale, tuple[int, ...]] = {"tiny": (4, 16), "default": (4, 16, 64), "full": (4, 16, 64, 256)}
SECONDS: Mapping[Scale, float] = {"tiny": 60.0, "default": 200.0, "full": 600.0}
GROUP = 4  # processors below a manager
GROUPS = 4  # of the run that begins with all load in one of them
QUERIES = 1.5  # for each node, of four operators each
OPTIONS = policy.Options(
    cost="operator_costs", redistribution="balance", percent_difference=0.25, every=20.0, at_once=8
)
NO_FIGURE = "section 4.2, no figure"


@dataclass(frozen=True)
class TiersCase:
    nodes: int
    fan_out: int | None  # 0: one manager for all, None: nobody decides
    in_one_group: bool  # where everything begins; else dealt over all nodes
    seconds: float
    seed: int


@dataclass(frozen=True)
class TiersSeen:
    received: float  # bytes per second, by the manager that gets most
    sent: float
    messages: float  # per second, of the manager that has most
    results: int
    deviation: float  # of the nodes' load in the last window
    deviation_before: float  # in the first


def measure(case: TiersCase) -> TiersSeen:
    problem = dcape(
        Dcape(processors=case.nodes, operators=4, streams=2, depth=3, queries=round(QUERIES * case.nodes), window=2.0)
    )
    placement = _begin(problem, GROUP if case.in_one_group else case.nodes)
    meters: dict[str, Meter] = {}
    actors = None if case.fan_out is None else _metered(problem, placement, case.fan_out, meters)
    outcome = simulate(
        problem,
        placement,
        case.seconds,
        seed=case.seed,
        profile=Profile("poisson"),
        actors=actors,
        record=case.seconds / 10,
    )

    def busiest(kind: str) -> float:
        return max((rate(getattr(meter, kind), case.seconds) for meter in meters.values()), default=0.0)

    deviation = outcome.windows["load_stdev"]
    return TiersSeen(
        busiest("received"),
        busiest("sent"),
        busiest("messages"),
        int(outcome.windows["results"].sum()),
        float(deviation.iloc[-1]),
        float(deviation.iloc[0]),
    )


def _begin(problem: Problem, nodes: int) -> Placement:
    """Dealt over so many of the nodes."""
    names = [node.name for node in problem.cluster.nodes if node.cpu > 0][:nodes]
    return Placement.single({f.name: names[n % len(names)] for n, f in enumerate(problem.fragments)})


def _metered(problem: Problem, placement: Placement, fan_out: int, meters: dict[str, Meter]) -> Actors:
    made = policy.actors(problem, placement, replace(OPTIONS, fan_out=fan_out))
    return replace(
        made,
        actors=tuple(
            Metered(actor, meters.setdefault(actor.address, Meter())) if isinstance(actor, Manager) else actor
            for actor in made.actors
        ),
    )


def tiered(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """One manager against tiers of them."""
    seconds, sizes = SECONDS[scale], NODES[scale]
    wider = [TiersCase(n, fan_out, False, seconds, seed) for n in sizes for fan_out in (0, GROUP) for seed in seeds]
    unequal = [
        TiersCase(GROUP * GROUPS, fan_out, True, seconds, seed) for fan_out in (None, 0, GROUP) for seed in seeds
    ]
    seen = dict(zip([*wider, *unequal], run_all(measure, [*wider, *unequal], progress), strict=True))
    return ExperimentReport(
        statements=(*_bounded(seen, sizes, seeds, seconds), *_spread(seen, seeds, seconds)),
        tables=(_traffic(seen, sizes, seeds, seconds), _evened(seen, seeds, seconds)),
        plots=(_plot(seen, sizes, seeds, seconds),),
        assumed=(
            f"Tiers are our own experiment: the thesis states what they are for and measures nothing. {QUERIES:g} "
            f"queries of four operators for each node; a manager has {GROUP} processors, which are nodes or managers; "
            f"load is operator costs, the policy balance, decided every {OPTIONS.every:.0f} s and reported every "
            f"{OPTIONS.window:.0f} s; {seconds:.0f} simulated seconds.",
            f"A manager reports to the one above its sums and what the {OPTIONS.offers} costliest of its fragments "
            "cost; of operators it reports nothing.",
        ),
    )


def _of(seen: Mapping[TiersCase, TiersSeen], seeds: Sequence[int], case: TiersCase) -> list[TiersSeen]:
    return [seen[replace(case, seed=seed)] for seed in seeds]


# --- how the traffic of a manager grows -------------------------------------------------------------------------------


def _bounded(
    seen: Mapping[TiersCase, TiersSeen], sizes: Sequence[int], seeds: Sequence[int], seconds: float
) -> tuple[Statement, ...]:
    before, after = sizes[-2:]

    def growth(fan_out: int) -> list[float]:
        pairs = zip(*(_of(seen, seeds, TiersCase(n, fan_out, False, seconds, 0)) for n in (before, after)), strict=True)
        return [large.received / small.received for small, large in pairs]

    grown = f"bytes received per second by the one that gets most, {after} nodes against {before}"
    return (
        Statement.over(
            f"Tiers keep what a manager has to take in bounded: {grown} (at most 1.5 counts)",
            NO_FIGURE,
            growth(GROUP),
            lambda ratio: ratio <= 1.5,
        ),
        Statement.over(
            f"One manager for all has no such bound: {grown} (at least 2 counts)",
            NO_FIGURE,
            growth(0),
            lambda ratio: ratio >= 2,
        ),
    )


def _traffic(seen: Mapping[TiersCase, TiersSeen], sizes: Sequence[int], seeds: Sequence[int], seconds: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for n in sizes:
        for fan_out, name in ((0, "one manager"), (GROUP, "tiers")):
            found = _of(seen, seeds, TiersCase(n, fan_out, False, seconds, 0))
            means = (fmean(getattr(s, kind) for s in found) for kind in ("received", "sent", "messages"))
            rows.append((n, name, *means))
    heads = ("nodes", "", "received, bytes/s", "sent, bytes/s", "messages/s")
    return Table("Tiers: what the busiest manager sends and receives (means)", heads, tuple(rows))


def _plot(seen: Mapping[TiersCase, TiersSeen], sizes: Sequence[int], seeds: Sequence[int], seconds: float) -> Lines:
    series = tuple(
        Series(
            name,
            tuple(fmean(s.received for s in _of(seen, seeds, TiersCase(n, fan_out, False, seconds, 0))) for n in sizes),
            tuple(map(float, sizes)),
        )
        for fan_out, name in ((0, "one manager"), (GROUP, f"tiers of {GROUP}"))
    )
    return Lines("Received by the busiest manager (own experiment)", "nodes", "bytes per second", series, log_y=True)


# --- that load gets everywhere all the same ---------------------------------------------------------------------------


def _spread(seen: Mapping[TiersCase, TiersSeen], seeds: Sequence[int], seconds: float) -> tuple[Statement, ...]:
    case = TiersCase(GROUP * GROUPS, GROUP, True, seconds, 0)
    found, still = _of(seen, seeds, case), _of(seen, seeds, replace(case, fan_out=None))
    return (
        Statement.over(
            f"Plans can go to any processor: deviation of the load of {case.nodes} nodes when all began in one of "
            f"{GROUPS} groups, at the end against the start (at most 0.25 counts)",
            NO_FIGURE,
            [s.deviation / s.deviation_before for s in found],
            lambda share: share <= 0.25,
        ),
        Statement.over(
            "Nothing is lost or doubled on the way between groups: results against a run in which nobody moves "
            "anything (within 0.1% counts: some are on their way when a run ends)",
            "lossless",
            [moved.results / stayed.results for moved, stayed in zip(found, still, strict=True)],
            lambda ratio: abs(ratio - 1) <= 0.001,
        ),
    )


def _evened(seen: Mapping[TiersCase, TiersSeen], seeds: Sequence[int], seconds: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for fan_out, name in ((None, "nobody"), (0, "one manager"), (GROUP, "tiers")):
        found = _of(seen, seeds, TiersCase(GROUP * GROUPS, fan_out, True, seconds, 0))
        kinds = ("deviation_before", "deviation", "results", "received", "messages")
        rows.append((name, *(fmean(getattr(s, kind) for s in found) for kind in kinds)))
    heads = ("who decides", "deviation of load, at first", "in the end", "results", "received, bytes/s", "messages/s")
    return Table("Tiers: all load begins in one group of four (means)", heads, tuple(rows))
