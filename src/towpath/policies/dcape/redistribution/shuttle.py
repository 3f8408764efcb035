"""The first eligible operator to the next processor, every time: what moving costs by itself (section 6.3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from towpath.policies.dcape.known import CostTable, Known, ProcessorLimits, Suggestion


def suggest(
    costs: CostTable, before: Mapping[str, float], known: Known, limits: ProcessorLimits
) -> Iterator[Suggestion]:
    targets = limits.processors(known)
    for source in known.alive:
        for fragment in limits.fragments(known, source):
            after = targets.index(source) + 1 if source in targets else 0
            target = targets[after % len(targets)]
            if target != source:
                yield Suggestion(fragment, source, target, "it is time to move it again")
            return
