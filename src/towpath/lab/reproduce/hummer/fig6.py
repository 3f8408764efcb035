"""Figure 6: who buffers what and who sends to whom, for different weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from towpath.lab.reproduce.hummer.adding import AddingCase, SearchBudget, Snapshot, add_queries, last
from towpath.lab.reproduce.hummer.setting import ASSUMED, WEIGHTS
from towpath.lab.reproduce.report import (
    ExperimentReport,
    Progress,
    Scale,
    Statement,
    Table,
    Topologies,
    TopologyPicture,
)
from towpath.lab.reproduce.runs import run_all
from towpath.problems.generate.hummer import Hummer

SETTINGS: dict[Scale, Hummer] = {"tiny": Hummer(nodes=3, sources=4), "default": Hummer(), "full": Hummer()}
STEPS: dict[Scale, tuple[int, ...]] = {"tiny": (2, 4), "default": (10, 20, 30), "full": (10, 20, 30)}
BUDGETS: dict[Scale, SearchBudget] = {
    "tiny": SearchBudget(evaluations=300),
    "default": SearchBudget(evaluations=50_000),
    "full": SearchBudget(seconds=30.0),
}
Runs = Mapping[str, Sequence[Sequence[tuple[Snapshot, Snapshot]]]]  # by weights; seed by seed, step by step


def fig6(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Topologies of 10, 20 and 30 queries before and after optimising D, L, T or all (WS-Aggregation, Figure 6)."""
    cases = [AddingCase(SETTINGS[scale], w, STEPS[scale], BUDGETS[scale], seed) for w in WEIGHTS for seed in seeds]
    seen = run_all(add_queries, cases, progress)
    runs = {w: [steps for case, steps in zip(cases, seen, strict=True) if case.weights == w] for w in WEIGHTS}
    return ExperimentReport(
        statements=_statements(runs),
        tables=(_table(runs),),
        plots=tuple(_pictures(w, of_seed[0]) for w, of_seed in runs.items()),
        scaled_down=()
        if scale == "full"
        else (f"{BUDGETS[scale].evaluations:,} solutions are priced in each step instead of 30 s of search",),
        assumed=(
            *ASSUMED,
            "with all weights 1, M counts bytes where L and T count kB/s, so no buffer is ever copied: only inputs "
            "whose source their new node buffers already move. The paper notes that the largest values decide there",
        ),
    )


def _busiest(snapshot: Snapshot) -> float:
    """Inputs of the node with most, over the mean."""
    inputs = snapshot.inputs.values()
    return max(inputs) / (sum(inputs) / len(inputs))


def _statements(runs: Runs) -> tuple[Statement, ...]:
    d, loads, t = (last(runs[w]) for w in ("D", "L", "T"))
    return (
        Statement.over(
            "D: a source is buffered so many times more than once",
            "fully achieved: 0",
            [sum(map(len, s.buffers.values())) - len(frozenset().union(*s.buffers.values())) for s in d],
            lambda mean: mean < 0.5,
        ),
        Statement.over(
            "D: few nodes handle much; inputs of the busiest over the mean",
            "few, highly loaded; read as 1.5 at least",
            [_busiest(s) for s in d],
            lambda mean: mean >= 1.5,
        ),
        Statement.over(
            "D: some traffic between nodes is left, kB/s",
            "usually some: above 0",
            [s.transfer for s in d],
            lambda mean: mean > 0,
        ),
        Statement.over(
            "L: the load is spread; inputs of the busiest node over the mean",
            "spread; read as 1.2 at most",
            [_busiest(s) for s in loads],
            lambda mean: mean <= 1.2,
        ),
        Statement.over(
            "L: a denser graph; subscriptions over those with D",
            "more dense; read as 2 at least",
            [a.subscriptions / b.subscriptions for a, b in zip(loads, d, strict=True)],
            lambda mean: mean >= 2,
        ),
        Statement.over(
            "T: a very dense graph; subscriptions over those with D",
            "very dense; read as 2 at least",
            [a.subscriptions / b.subscriptions for a, b in zip(t, d, strict=True)],
            lambda mean: mean >= 2,
        ),
        Statement.over("T: connections between nodes", "none", [len(s.between) for s in t], lambda mean: mean == 0),
    )


def _table(runs: Runs) -> Table:
    columns = ("weights", "queries", "when", "active nodes", "busiest/mean", "subscriptions", "connections", "T kB/s")
    rows = []
    for w, of_seed in runs.items():
        for step in range(len(of_seed[0])):
            for n, when in enumerate(("before", "after")):
                seen = [steps[step][n] for steps in of_seed]
                rows.append(
                    (
                        w,
                        seen[0].queries,
                        when,
                        fmean(sum(map(bool, s.inputs.values())) for s in seen),
                        fmean(map(_busiest, seen)),
                        fmean(s.subscriptions for s in seen),
                        fmean(len(s.between) for s in seen),
                        fmean(s.transfer for s in seen),
                    )
                )
    return Table("Means over the seeds", columns, tuple(rows))


def _pictures(weights: str, steps: Sequence[tuple[Snapshot, Snapshot]]) -> Topologies:
    both = [snapshot for step in steps for snapshot in step]
    most_inputs = max(max(s.inputs.values()) for s in both)
    widest = max((rate for s in both for rate in s.between.values()), default=1.0)
    titles = [f"{step[0].queries} queries, {when}" for step in steps for when in ("before", "after")]
    pictures = tuple(_picture(t, s, most_inputs, widest) for t, s in zip(titles, both, strict=True))
    return Topologies(f"Weights: {weights}", 2, pictures)


def _picture(title: str, snapshot: Snapshot, most_inputs: int, widest: float) -> TopologyPicture:
    """Nodes are as large as what they buffer, and as red as the inputs that they handle."""
    names = sorted(frozenset().union(*snapshot.buffers.values()))
    subscribed = {s: sum(s in there for there in snapshot.buffers.values()) for s in names}
    return TopologyPicture(
        title,
        tuple((s, subscribed[s] / len(snapshot.buffers)) for s in names),
        tuple(
            (node, len(there) / len(names), snapshot.inputs[node] / most_inputs)
            for node, there in snapshot.buffers.items()
        ),
        (
            *((s, node, 0.1) for node, there in snapshot.buffers.items() for s in sorted(there)),
            *((a, b, rate / widest) for (a, b), rate in snapshot.between.items()),
        ),
    )
