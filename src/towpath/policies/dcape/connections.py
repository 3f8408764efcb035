"""The connection manager: which pipes a distribution needs, and the requests that lay them (Algorithm 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from towpath.placement.flows import flows, results
from towpath.placement.problem import Problem
from towpath.policies.dcape.messages import WorkRequest


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of one fragment. Parents read it, children are read by it, as D-CAPE calls them."""

    parents: tuple[str, ...]
    children: tuple[str, ...]
    streams: tuple[str, ...]
    results: tuple[str, ...]  # operators whose output the user gets


class Wiring:
    """Who reads whom: the same wherever things run, so it is worked out once."""

    def __init__(self, problem: Problem) -> None:
        names = [fragment.name for fragment in problem.fragments]
        parents: dict[str, dict[str, None]] = {name: {} for name in names}
        children: dict[str, dict[str, None]] = {name: {} for name in names}
        streams: dict[str, dict[str, None]] = {name: {} for name in names}
        self.readers: dict[str, list[str]] = {}  # operator -> the other fragments that read it
        for flow in flows(problem):
            if flow.producer in problem.stream:
                streams[flow.consumer][flow.producer] = None
            else:
                child = problem.home[flow.producer]
                parents[child][flow.consumer] = None
                children[flow.consumer][child] = None
                self.readers.setdefault(flow.producer, []).append(flow.consumer)
        self.roots = frozenset(root for roots in results(problem).values() for root in roots)
        self.ends = {
            f.name: Neighbours(
                tuple(parents[f.name]),
                tuple(children[f.name]),
                tuple(streams[f.name]),
                tuple(o.name for o in f.operators if o.name in self.roots),
            )
            for f in problem.fragments
        }


@dataclass(frozen=True)
class Connection:
    producer: str  # a stream or a fragment
    consumer: str  # a fragment
    source: str  # where the producer is; a stream is at its source, outside
    target: str


OUTSIDE = ""


def connections(wiring: Wiring, table: Mapping[str, str]) -> list[Connection]:
    """The network connections of a distribution: one per stream that an operator reads and one per pair of operators on
    two processors. What the user gets is not counted, as in D-CAPE's Figures 5.2 and 5.3.
    """
    found = []
    for fragment, processor in table.items():
        ends = wiring.ends[fragment]
        found += [Connection(stream, fragment, OUTSIDE, processor) for stream in ends.streams]
        away = [child for child in ends.children if table.get(child, OUTSIDE) != processor]
        found += [Connection(child, fragment, table.get(child, OUTSIDE), processor) for child in away]
    return found


def gained(wiring: Wiring, table: Mapping[str, str], fragment: str, target: str) -> int:
    """How many connections a move to `target` would remove; negative if it adds some."""
    ends = wiring.ends[fragment]
    neighbours = [table.get(other, OUTSIDE) for other in (*ends.parents, *ends.children)]
    return neighbours.count(target) - neighbours.count(table[fragment])


def requests_for(wiring: Wiring, table: Mapping[str, str], processor: str) -> tuple[WorkRequest, ...]:
    """Algorithm 4, for one processor: what it activates, and from and to where it connects that."""
    found: list[WorkRequest] = []
    for fragment in (f for f, p in table.items() if p == processor):
        ends = wiring.ends[fragment]
        found.append(WorkRequest("activate", fragment))
        found += [
            WorkRequest("send_data", fragment, parent, table.get(parent, OUTSIDE))
            for parent in ends.parents
            if table.get(parent) != processor
        ]
        found += [
            WorkRequest("receive_data", fragment, child, table.get(child, OUTSIDE))
            for child in ends.children
            if table.get(child) != processor
        ]
        found += [WorkRequest("receive_data", fragment, stream) for stream in ends.streams]
    return tuple(found)
