"""Away from processors that became worse: first what removes a connection, then what costs most (section 6.3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from towpath.policies.dcape.connections import gained
from towpath.policies.dcape.known import CostTable, Known, ProcessorLimits, Suggestion


def suggest(
    costs: CostTable, before: Mapping[str, float], known: Known, limits: ProcessorLimits
) -> Iterator[Suggestion]:
    worse = {i: costs.degradation(i, before.get(i, 0.0)) for i in costs.processors}
    degraded = [i for i in sorted(worse, key=lambda i: -worse[i]) if worse[i] > limits.options.degraded]
    targets = limits.processors(known)  # "other query processors": all can be degraded at once
    for processor in degraded:
        reason = f"{processor} is {worse[processor]:.0%} worse than when it was last given something"
        for fragment, target in _moves(processor, targets, costs, known, limits):
            yield Suggestion(fragment, processor, target, reason)


def _moves(
    processor: str, targets: list[str], costs: CostTable, known: Known, limits: ProcessorLimits
) -> Iterator[tuple[str, str]]:
    """The fragments of a processor with the best target of each, best first."""
    found = []
    for fragment in limits.fragments(known, processor):
        gains = {t: gained(known.wiring, known.table, fragment, t) for t in targets if t != processor}
        if gains:
            # Of targets that remove equally many connections, the one with the least to do.
            target = max(gains, key=lambda t: (gains[t], -len(known.on(t))))
            found.append((gains[target], costs.fragments[fragment], fragment, target))
    for _, _, fragment, target in sorted(found, key=lambda move: (-move[0], -move[1])):
        yield fragment, target
