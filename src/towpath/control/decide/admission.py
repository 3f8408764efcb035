"""Admission: a query is taken in only where there is room for it. Decides from what was measured; does nothing.

What a query will take is not known before it runs: it is estimated from the fragments of its kind that run already, and
a kind that nobody has measured is let in. What an equal fragment answers already takes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from towpath.control.decide.controller import Submission
from towpath.control.observe.situation import Situation
from towpath.errors import AdmissionRefused
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import template_of


@dataclass(frozen=True)
class Room:
    most_load: float = 0.9  # of a node's cores, with the new query


def refuse_without_room(situation: Situation, room: Room, submissions: Sequence[Submission]) -> None:
    """Raises AdmissionRefused with every query that no node has room for; queries that come together add up."""
    free = {node: (room.most_load - situation.load(node)) * cores for node, cores in situation.cores.items()}
    short: list[str] = []
    for submission in submissions:
        cost = sum(_cost(situation, pipeline) for pipeline in submission.pipelines)
        places = [node for node in free if submission.node in (None, node)]
        node = max(places, key=free.__getitem__, default=None)
        if cost > 0 and (node is None or free[node] < cost):
            short.append(_told(situation, room, submission.name, cost, places))
        elif node is not None:
            free[node] -= cost
    if short:
        raise AdmissionRefused("\n".join(short))


def _cost(situation: Situation, pipeline: Pipeline) -> float:
    """Cores that it keeps busy, as fragments of the same family do on average."""
    if any(record.signature == pipeline.signature for record in situation.fragments.values()):
        return 0.0
    family = template_of(pipeline).family
    alike = [s for name, s in situation.operators.items() if situation.family_of(name) == family]
    return mean(s.rate * s.cost for s in alike) if alike else 0.0


def _told(situation: Situation, room: Room, name: str, cost: float, places: Sequence[str]) -> str:
    loads = "; ".join(f"{node} is {situation.load(node):.0%} busy, of {situation.cores[node]} cores" for node in places)
    return (
        f"query {name} is not taken in: cores are short. Queries of its kind take {cost:.2g} of a core each, and "
        f"at most {room.most_load:.0%} of a node may be busy: {loads or 'no node takes queries'}\n"
        "    -> withdraw queries, add a node, or raise control.admission.most_load"
    )
