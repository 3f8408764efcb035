"""Admission: a query is taken in only where there is room for it. Decides from what was measured; does nothing.

What a query will take is not known before it runs: it is estimated from the fragments of its kind that run already, by
what each further one brought, as far as their number has changed, and else by what they take on average. A kind that
nobody has measured is let in. What an equal fragment answers already takes nothing.

By load, a query has room where a node has. By a planner, it has room if the planner places it on what is left of the
nodes, and the reason for a refusal is the planner's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from towpath.control.decide.choose_node import JobPlanner
from towpath.control.decide.controller import Submission
from towpath.control.observe.carriers import ESTIMATED, kind_of
from towpath.control.observe.situation import Situation
from towpath.errors import AdmissionRefused
from towpath.placement.cluster import Cluster, Node
from towpath.placement.flows import fragment_loads
from towpath.placement.problem import EVERYWHERE, Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import template_of

log = logging.getLogger(__name__)

HINT = "    -> withdraw queries, add a node, or raise control.admission.most_load"
WORK = "work"  # the name of a stream
LEAST_COST = 0.01  # of what a fragment of its kind takes on average: no query is thought to take less
NOTHING = 1e-9  # cpu of a full node: with 0 it would take nothing for that reason, and nobody would hear of cpu


@dataclass(frozen=True)
class Room:
    most_load: float = 0.9  # of a node's cores, with the new query
    planner: JobPlanner | None = None  # who says whether there is room; None: the load does


def refuse_without_room(situation: Situation, room: Room, submissions: Sequence[Submission]) -> None:
    """Raises AdmissionRefused with every query that no node has room for; queries that come together add up."""
    if room.planner is not None and situation.cores:
        _refuse_by_planner(situation, room, room.planner, submissions)
        return
    free = {node: (room.most_load - situation.load(node)) * cores for node, cores in situation.cores.items()}
    short: list[str] = []
    for submission in submissions:
        cost = sum(_cost(situation, pipeline) for pipeline in submission.pipelines)
        places = [node for node in free if submission.node in (None, node)]
        node = max(places, key=free.__getitem__, default=None)
        if cost > 0 and (node is None or free[node] < cost):
            short.append(_refusal(situation, room, submission.name, cost, places))
        elif node is not None:
            free[node] -= cost
    if short:
        raise AdmissionRefused("\n".join(short))


def _refuse_by_planner(
    situation: Situation, room: Room, planner: JobPlanner, submissions: Sequence[Submission]
) -> None:
    asked = _asked(situation, room, submissions)
    try:
        refused = planner.plan(asked).refused if asked.queries else {}
    except Exception:  # a planner may be anybody's, and no query may suffer for it
        log.exception("planner %s could not say whether there is room", planner.name)
        refuse_without_room(situation, replace(room, planner=None), submissions)
        return
    if refused:
        raise AdmissionRefused("\n".join(_said(situation, room, planner, asked, *why) for why in refused.items()))


def _asked(situation: Situation, room: Room, submissions: Sequence[Submission]) -> Problem:
    """What is new, on what is left of the nodes. Each of its parts reads what its load comes from, a tuple a second."""
    left = {node: (room.most_load - situation.load(node)) * cores for node, cores in situation.cores.items()}
    nodes = tuple(Node(node, max(cpu, NOTHING)) for node, cpu in left.items())
    running = {record.signature for record in situation.fragments.values()}
    fragments, queries, pinned = list[Fragment](), list[PlacementQuery](), dict[str, str]()
    for submission in submissions:
        new = [pipeline for pipeline in submission.pipelines if pipeline.signature not in running]
        own = [_fragment(situation, submission.name, n, pipeline) for n, pipeline in enumerate(new)]
        if own:
            fragments += own
            queries.append(PlacementQuery(submission.name, tuple(f.name for f in own)))
            pinned |= {} if submission.node is None else {f.name: submission.node for f in own}
    stream = PlacementStream(WORK, EVERYWHERE, 1.0)
    return Problem(Cluster(nodes), (stream,), tuple(fragments), tuple(queries), pinned)


def _fragment(situation: Situation, query: str, number: int, pipeline: Pipeline) -> Fragment:
    name, family = f"{query}.{number}", template_of(pipeline).family
    kind = kind_of(family)
    rate = sum(situation.stream_rates.get(source.stream, 0.0) for source in pipeline.sources)
    load = _cost(situation, pipeline) or getattr(ESTIMATED, kind) * rate
    return Fragment(name, query, (Operator(f"{name}.all", (WORK,), kind, load, signature=pipeline.signature),))


def _said(situation: Situation, room: Room, planner: JobPlanner, asked: Problem, query: str, reason: str) -> str:
    loads = fragment_loads(asked)
    takes = sum(loads[name] for name in asked.query[query].fragments)
    return (
        f"query {query} is not taken in: {planner.name} says that {reason}. It takes {takes:.2g} of a core, and at "
        f"most {room.most_load:.0%} of a node may be busy: {_busy(situation, situation.cores)}\n{HINT}"
    )


def _cost(situation: Situation, pipeline: Pipeline) -> float:
    """Cores that it keeps busy, by fragments of the same family."""
    if any(record.signature == pipeline.signature for record in situation.fragments.values()):
        return 0.0
    family = template_of(pipeline).family
    alike = [name for name in situation.fragments if situation.family_of(name) == family]
    if not alike:
        return 0.0
    average = mean(situation.operators[name].rate * situation.operators[name].cost for name in alike)
    carriers = {situation.fragments[name].carrier for name in alike}
    further = [more for carrier in carriers if (more := situation.measures.further(carrier)) is not None]
    return min(average, max(mean(further), LEAST_COST * average)) if further else average


def _refusal(situation: Situation, room: Room, name: str, cost: float, places: Sequence[str]) -> str:
    return (
        f"query {name} is not taken in: cores are short. Queries of its kind take {cost:.2g} of a core each, and "
        f"at most {room.most_load:.0%} of a node may be busy: {_busy(situation, places)}\n{HINT}"
    )


def _busy(situation: Situation, nodes: Iterable[str]) -> str:
    loads = (f"{node} is {situation.load(node):.0%} busy, of {situation.cores[node]} cores" for node in nodes)
    return "; ".join(loads) or "no node takes queries"
