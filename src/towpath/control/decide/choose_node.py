"""Which node takes what has to go somewhere. Decides; does nothing.

Whatever needs a place is asked for here: queries that nobody's carrier can take in, copies, fragments of a node that is
drained, carriers of a node that is lost. The planner that the job names answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from towpath.control.observe.carriers import Capacities, Wanted, problem
from towpath.control.state.controller_state import ControllerState
from towpath.placement.check import check
from towpath.placement.flows import usage
from towpath.placement.problem import Placement, Problem
from towpath.plan import CarrierKinds
from towpath.planners import first_fit
from towpath.schema import Catalog

log = logging.getLogger(__name__)

DEFAULT = "first_fit"


@dataclass(frozen=True)
class JobPlanner:
    """The planner that a job names."""

    name: str
    plan: Callable[[Problem], Placement]


@dataclass(frozen=True)
class NodeChoice:
    nodes: tuple[str, ...]  # as many as copies were asked for
    reason: str = ""  # nothing where there was no choice

    def because(self, why: str) -> str:
        """Why something goes to the first of the nodes."""
        return f"{why}; {self.nodes[0]} was {self.reason}" if self.reason else why


def _first_fit(asked: Problem) -> Placement:
    return first_fit.plan(asked, first_fit.Options())


FIRST_FIT = JobPlanner(DEFAULT, _first_fit)


def choose_node(asked: Problem, planner: JobPlanner, wanted: Iterable[str]) -> dict[str, NodeChoice]:
    """Where the planner puts what is wanted. One that fails, or answers what cannot be, is replaced by the default."""
    names = list(wanted)
    placement, why = _answer(asked, planner, names)
    by = planner.name
    if placement is None:
        log.warning("planner %s %s", planner.name, why)
        placement, by = _first_fit(asked), f"{DEFAULT}, since {planner.name} {why},"
    reason = f"chosen by {by}{_loads(asked)}"
    return {name: NodeChoice(placement.nodes[name], reason) for name in names}


def _answer(asked: Problem, planner: JobPlanner, wanted: Sequence[str]) -> tuple[Placement | None, str]:
    try:
        placement = planner.plan(asked)
    except Exception as error:  # a planner may be anybody's, and no query may suffer for it
        return None, f"failed with {type(error).__name__}: {' '.join(str(error).split())}"  # in one line
    if missing := [name for name in wanted if not placement.nodes.get(name)]:
        return None, f"has no place for {missing[0]}" + "".join(f": {r}" for r in list(placement.refused.values())[:1])
    faults = [violation for violation in check(asked, placement) if violation.structural]
    return (None, f"answered {faults[0].where}: {faults[0].text}") if faults else (placement, "")


def _loads(asked: Problem) -> str:
    """Of the nodes that it could choose from, by what runs there."""
    nodes = asked.cluster.nodes
    loads = usage(asked, Placement.single(dict(asked.pinned))).load
    shares = (f"{n.name} {load / (n.cpu or 1.0):.0%}" for n, load in zip(nodes, loads, strict=True))
    return f" among {', '.join(shares)} busy"


@dataclass
class Places:
    """Asks the planner for places, with what is known of the nodes now."""

    catalog: Catalog
    planner: JobPlanner = FIRST_FIT
    capacities: Capacities = field(default_factory=Capacities)
    carriers: CarrierKinds = CarrierKinds.COMPILED

    def choose(
        self, known: ControllerState, nodes: Sequence[str], wanted: Sequence[Wanted]
    ) -> Mapping[str, NodeChoice]:
        """`nodes` are those that may be chosen; there is at least one."""
        if len(nodes) == 1:
            return {w.name: NodeChoice((nodes[0],)) for w in wanted}
        asked = problem(known, self.catalog, self.capacities, nodes, wanted)
        return choose_node(asked, self.planner, [w.name for w in wanted])


def fragments_to(
    places: Places, known: ControllerState, free: Mapping[int, Sequence[str]]
) -> list[tuple[int, NodeChoice]]:
    """Where fragments go, each to one of the nodes given with it. Those with the same nodes are asked for together."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for fragment, nodes in free.items():
        alike.setdefault(tuple(nodes), []).append(fragment)
    found: list[tuple[int, NodeChoice]] = []
    for nodes, fragments in alike.items():
        carriers = [known.carrier_of(known.state.fragments[f]) for f in fragments]
        wanted = [Wanted(f"f{f}", c.template.family, carrier=c.id) for f, c in zip(fragments, carriers, strict=True)]
        chosen = places.choose(known, nodes, wanted)
        found += [(f, chosen[f"f{f}"]) for f in fragments]
    return found
