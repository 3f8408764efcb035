"""What is known of fragments from the start: what they exchange with whom, at the rates that the problem states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from towpath.placement.flows import fragment_loads, fragment_states, results
from towpath.placement.index import index
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Spring:
    """A link of a fragment: to another fragment, or to the node of a stream or of a sink."""

    flow: str  # what goes over it; equal for operators of equal signature
    operator: str  # of the fragment: its measured rates say how much goes over it
    fragment: str | None
    node: str | None  # EVERYWHERE: it pulls nowhere, but what it brings is work
    inward: bool
    rate: float  # bytes per second, as stated
    width: float  # bytes of a tuple


@dataclass(frozen=True)
class Card:
    fragment: str
    query: str
    signature: tuple[str, ...]  # of all its operators; empty if one has none
    operators: tuple[str, ...]
    stated: Mapping[str, tuple[float, float]]  # of each operator: tuples in per second, and its selectivity
    springs: tuple[Spring, ...]
    work: float  # seconds of work per second at cpu 1, as stated
    state_bytes: float
    movable: bool


def cards(problem: Problem, placement: Placement) -> dict[str, Card]:
    """Of all fragments that run."""
    columns = index(problem)
    rate_in = dict(zip(columns.points[columns.streams :], columns.rate_in.tolist(), strict=True))
    work, state = fragment_loads(problem), fragment_states(problem)
    springs = _springs(problem)
    made = {}
    for fragment in problem.fragments:
        hosts = placement.nodes.get(fragment.name, ())
        signatures = [o.signature for o in fragment.operators]
        if hosts:
            made[fragment.name] = Card(
                fragment.name,
                fragment.query,
                tuple(s for s in signatures if s is not None) if None not in signatures else (),
                tuple(o.name for o in fragment.operators),
                {o.name: (rate_in[o.name], o.selectivity) for o in fragment.operators},
                tuple(springs[fragment.name]),
                work[fragment.name],
                state[fragment.name],
                movable=len(hosts) == 1 and fragment.name not in problem.pinned,
            )
    return made


def _springs(problem: Problem) -> dict[str, list[Spring]]:
    columns = index(problem)
    rates = dict(zip(columns.points, columns.bytes_out.tolist(), strict=True))
    found: dict[str, list[Spring]] = {fragment.name: [] for fragment in problem.fragments}
    for operator in columns.operators:
        here = problem.home[operator.name]
        for name in operator.inputs:
            if (stream := problem.stream.get(name)) is not None:
                found[here].append(
                    Spring(name, operator.name, None, stream.node, True, rates[name], stream.tuple_bytes)
                )
            elif (there := problem.home[name]) != here:
                maker = problem.operator[name]
                width, flow = maker.tuple_bytes, maker.signature or name
                found[here].append(Spring(flow, operator.name, there, None, True, rates[name], width))
                found[there].append(Spring(flow, name, here, None, False, rates[name], width))
    for query, operators in results(problem).items():
        sink = problem.query[query].sink
        for name in operators if sink is not None else ():
            maker = problem.operator[name]
            spring = Spring(maker.signature or name, name, None, sink, False, rates[name], maker.tuple_bytes)
            found[problem.home[name]].append(spring)
    return found
