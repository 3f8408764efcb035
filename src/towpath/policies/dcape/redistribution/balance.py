"""From the heaviest processor to the lightest, until nothing makes them more even (section 6.3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from towpath.policies.dcape.known import CostTable, Known, ProcessorLimits, Suggestion


def suggest(
    costs: CostTable, before: Mapping[str, float], known: Known, limits: ProcessorLimits
) -> Iterator[Suggestion]:
    targets = limits.processors(known)
    weight = dict(costs.processors)
    there = {processor: limits.fragments(known, processor) for processor in weight}
    while weight and targets:
        heaviest = max(weight, key=weight.__getitem__)
        lightest = min(targets, key=weight.__getitem__)
        gap = weight[heaviest] - weight[lightest]
        # A fragment of half the gap makes both equal; one as large as the gap only changes their roles.
        fitting = [f for f in there[heaviest] if 0 < costs.fragments[f] < gap]
        if not fitting or gap <= limits.options.percent_difference * weight[heaviest]:
            return
        best = min(fitting, key=lambda f: abs(costs.fragments[f] - gap / 2))
        there[heaviest].remove(best)  # it moves once
        weight[heaviest] -= costs.fragments[best]
        weight[lightest] += costs.fragments[best]
        yield Suggestion(best, heaviest, lightest, f"{heaviest} has {gap:.3g} more than {lightest}")
