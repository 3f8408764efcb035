"""dcape-fig5-live: throughput over several Spark nodes, round robin against grouping (Figures 5.4 to 5.16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from towpath.api.running import start
from towpath.lab.reproduce.live.driving import LiveDriver
from towpath.lab.reproduce.live.nodes import CAPPED, Machines, machines
from towpath.lab.reproduce.live.plans import LivePlan, LiveSource, job, units
from towpath.lab.reproduce.report import Cell, ExperimentReport, Lines, Progress, Scale, Series, Statement, Table

PLANNERS = ("round_robin", "grouping")
PLANS: Mapping[Scale, LivePlan] = {
    "tiny": LivePlan(groups=2, queries=2, rate=20, chunk_s=5),
    "default": LivePlan(groups=3, queries=4, rate=500, chunk_s=5),
    "full": LivePlan(groups=12, queries=6, rate=1000),
}
NODES: Mapping[Scale, tuple[int, ...]] = {"tiny": (1, 2), "default": (1, 2, 3), "full": (1, 2, 3, 4, 5)}
SHARES: Mapping[Scale, float] = {"tiny": 0.9, "default": 0.5, "full": 0.3}  # of a core, each
TRIGGER_MS = 200
WARM_CHUNKS = 2  # until the code that Spark generates is compiled
EVEN = 0.95  # two chunks differ by as much

Found = dict[tuple[int, str], list[float]]  # nodes, planner -> tuples per second, by chunk


def throughput(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """On Spark nodes: throughput over 1 to 3, each with a share of a core, round robin against grouping."""
    plan, share, counts = PLANS[scale], SHARES[scale], NODES[scale]
    # On one node all planners are equal.
    cases = [(n, planner) for n in counts for planner in (PLANNERS if n > 1 else PLANNERS[:1])]
    found: Found = {}
    with machines(max(counts), progress) as place:
        for number, (n, planner) in enumerate(cases):
            progress(f"{n} nodes, {planner.replace('_', ' ')}", number / len(cases))
            found[n, planner] = measure(place, plan, place.names[:n], planner, share, seeds)
    for planner in PLANNERS:
        found[1, planner] = found[1, PLANNERS[0]]
    return report(found, plan, counts, share, len(seeds))


def measure(
    place: Machines, plan: LivePlan, names: Sequence[str], planner: str, share: float, seeds: Sequence[int]
) -> list[float]:
    """Tuples per second, for as many chunks as there are seeds."""
    folder = place.folder / f"{len(names)}-{planner}"
    running = start(job(plan, folder, place.definitions(names), units(plan, names, planner), TRIGGER_MS))
    with running:
        driver = LiveDriver(running, LiveSource(plan, folder, seeds[0]))
        for _ in range(WARM_CHUNKS):
            driver.chunk()
        with place.capped(names, share):
            driver.chunk()
            return [plan.chunk_rows / driver.chunk() for _ in seeds]


# --- the report -------------------------------------------------------------------------------------------------------


def report(found: Found, plan: LivePlan, counts: Sequence[int], share: float, repetitions: int) -> ExperimentReport:
    return ExperimentReport(
        statements=_statements(found, counts),
        tables=(_table(found, counts),),
        plots=(_plot(found, counts),),
        scaled_down=(
            f"{plan.groups * plan.queries} queries over {plan.groups} joins of two streams each instead of plans "
            f"of up to 80 operators, and {counts[-1]} nodes with {share:g} of a core each; {repetitions} chunks of "
            f"{plan.chunk_rows:,} tuples are measured instead of 30 minutes.",
            CAPPED,
        ),
        assumed=(
            f"Windows of {plan.window_s} s and {plan.matches:g} pairs per tuple, as in the thesis. Throughput is "
            "what nodes read at most: a chunk arrives when all queries have read the one before.",
            "The unit of placement is a whole query. Grouping sees that queries of one group share a join, and "
            "keeps them together; round robin deals them out one by one.",
            "Queries are selective: at most a tenth of the pairs pass, else writing results would be most of the work.",
        ),
        explained=(
            "On Spark, queries on one node share their join and its state, however many they are. Round robin brings "
            "queries of every group to every node, so each node reads all streams and runs all joins; only filters and "
            "results are divided. Grouping divides the streams and the joins too.",
            "The micro-batch of every carrier has a fixed price, which round robin pays on each node for every "
            "group. So round robin over several nodes may be slower than one node.",
        ),
    )


def _statements(found: Found, counts: Sequence[int]) -> tuple[Statement, ...]:
    several = [n for n in counts if n > 1]
    one = fmean(found[1, "grouping"])
    chunks = range(len(found[1, "grouping"]))

    def over_one(planner: str, n: int) -> list[float]:
        return [tuples / one for tuples in found[n, planner]]

    def worst(planner: str) -> list[float]:
        return min((over_one(planner, n) for n in several), key=fmean)

    against = {n: [found[n, "grouping"][c] / found[n, "round_robin"][c] for c in chunks] for n in several}
    return (
        Statement.over(
            "Distribution by grouping never loses: throughput against one node, worst",
            ">= 1",
            worst("grouping"),
            lambda mean: mean >= EVEN,
        ),
        Statement.over(
            "Distribution by round robin never loses: throughput against one node, worst",
            ">= 1",
            worst("round_robin"),
            lambda mean: mean >= EVEN,
        ),
        Statement.over(
            "Grouping wins: its throughput against round robin's, worst",
            ">= 1",
            min(against.values(), key=fmean),
            lambda mean: mean >= EVEN,
        ),
        Statement.over(
            "Grouping wins by up to 100%: best case (1.5 and more counts)",
            "2",
            max(against.values(), key=fmean),
            lambda mean: mean >= 1.5,
        ),
    )


def _table(found: Found, counts: Sequence[int]) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (planner.replace("_", " "), *(fmean(found[n, planner]) for n in counts)) for planner in PLANNERS
    )
    heads = ("distribution", *(f"{n} nodes" if n > 1 else "1 node" for n in counts))
    return Table("Tuples read per second", heads, rows)


def _plot(found: Found, counts: Sequence[int]) -> Lines:
    def series(planner: str) -> Series:
        values = [found[n, planner] for n in counts]
        spread = tuple(stdev(chunks) if len(chunks) > 1 else 0.0 for chunks in values)
        return Series(planner.replace("_", " "), tuple(map(fmean, values)), tuple(map(float, counts)), spread)

    title = "Throughput over Spark nodes with a share of a core each"
    return Lines(title, "nodes", "tuples read per second", tuple(map(series, PLANNERS)))
