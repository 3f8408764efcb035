"""What the nodes send each other. Messages between two nodes arrive in the order in which they were sent."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

HEADER_BYTES = 66  # Ethernet, IPv4, and TCP with time stamps


@dataclass(frozen=True, slots=True)
class PartnerRequest:
    serial: int  # of this sender; the answer repeats it
    probe: float | None = None  # of a probe, the sender's rho: accepted only by a node that has clearly less


@dataclass(frozen=True, slots=True)
class PartnerAnswer:
    serial: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class PartnerEnd:
    """The sender is no partner any more."""


@dataclass(frozen=True, slots=True)
class NodeWorkload:
    workload: float  # rho


@dataclass(frozen=True, slots=True)
class LoadRequest:
    amount: float  # rho_r


@dataclass(frozen=True, slots=True)
class Coming:
    """To the new node of a fragment, ahead of it: how much load it brings; none if it does not come after all."""

    fragment: str
    load: float


@dataclass(frozen=True, slots=True)
class FragmentCard:
    """What a node must know of a fragment to decide on it; it goes where the fragment goes."""

    fragment: str
    native: str | None  # its native node
    neighbours: tuple[str, ...]
    operators: tuple[str, ...]
    signatures: tuple[str | None, ...]  # of the operators
    movable: bool


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where a fragment runs. Of two, the one with more moves is the newer."""

    fragment: str
    node: str
    moves: int = 0


@dataclass(frozen=True, slots=True)
class Handover:
    """To the new node of a fragment: it is yours, and this is what I know of it."""

    card: FragmentCard
    sighting: Sighting
    neighbours: tuple[Sighting, ...]
    loads: tuple[float, ...]  # of its operators, as are their states
    state_bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """To the node of a neighbour of a fragment that has moved."""

    sighting: Sighting
    neighbour: str


Message = PartnerRequest | PartnerAnswer | PartnerEnd | NodeWorkload | LoadRequest | Coming | Handover | Moved


def size(message: Message) -> int:
    """Bytes on the wire, as JSON in one packet."""
    body = {"type": type(message).__name__, **asdict(message)}
    return HEADER_BYTES + len(json.dumps(body, separators=(",", ":")))
