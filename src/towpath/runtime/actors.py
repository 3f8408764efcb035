"""Fragments over many nodes: what those who decide hear from the world that runs them, and what they ask of it.

Whoever decides is an actor with an address: one manager for all nodes, a tree of managers, or one on every node. It
sees only what the world hands it and what others send it, so the same code is driven by the simulator and by Spark, and
what deciding costs (messages, bytes) can be counted. An actor has no clock and does no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from towpath.placement.cluster import Node
from towpath.placement.problem import Placement
from towpath.placement.statistics import Statistics

Address = str  # a node's name, or a manager's


# --- what an actor hears ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    at: float


@dataclass(frozen=True)
class Woken:
    """A time it asked for has come."""

    at: float
    name: str


@dataclass(frozen=True)
class Arrived:
    """A message from another actor."""

    at: float
    sender: Address
    message: object


@dataclass(frozen=True)
class Measured:
    """What was measured on the actor's own node since the last time."""

    at: float
    statistics: Statistics


@dataclass(frozen=True)
class MoveDone:
    at: float
    fragment: str
    source: str
    target: str
    seconds: float  # from the instruction to the last tuple of the old copy


@dataclass(frozen=True)
class MoveFailed:
    at: float
    fragment: str
    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class NodeLost:
    at: float
    node: str


@dataclass(frozen=True)
class NodeJoined:
    at: float
    node: Node


PolicyEvent = Started | Woken | Arrived | Measured | MoveDone | MoveFailed | NodeLost | NodeJoined


# --- what an actor asks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wake:
    at: float
    name: str


@dataclass(frozen=True)
class Send:
    to: Address
    message: object
    size: int  # bytes on the wire


@dataclass(frozen=True)
class Move:
    fragment: str
    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class Note:
    """A line for the log: above all what was not done, and why."""

    text: str


@dataclass(frozen=True)
class NeedNode:
    """Another node is wanted; it joins, if there is one to give."""

    reason: str


@dataclass(frozen=True)
class ReleaseNode:
    """One node may go: the first of these that whoever runs the policy can give up."""

    nodes: tuple[str, ...]
    reason: str


ScalingWish = NeedNode | ReleaseNode
PolicyInstruction = Wake | Send | Move | Note | NeedNode | ReleaseNode


class Actor(Protocol):
    address: Address

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]: ...


@dataclass(frozen=True)
class Actors:
    """All that decide in one system, and which of them hears the measurements of a node."""

    actors: Sequence[Actor]
    measures: dict[str, Address] = field(default_factory=dict)  # node -> actor; a missing node reports to nobody
    window: float = 0.1  # seconds between two measurements
    take_nodes: bool = False  # they act on NodeLost and NodeJoined; if not, a running job starts its policy again


def moves_between(before: Placement, after: Placement, reason: str) -> list[Move]:
    """The moves that turn one placement into another; of copies, those that have no place in the other one."""
    found = []
    for fragment, wanted in after.nodes.items():
        here = before.nodes.get(fragment, ())
        leave, enter = [n for n in here if n not in wanted], [n for n in wanted if n not in here]
        found += [Move(fragment, source, target, reason) for source, target in zip(leave, enter, strict=False)]
    return found
