"""What nodes send each other and the directory. Coordinates are in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

Position = tuple[float, ...]  # in the latency dimensions

HEADER_BYTES = 66  # Ethernet, IPv4, and TCP with time stamps
NUMBER_BYTES = 8


# --- between nodes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ping:
    sent: float


@dataclass(frozen=True, slots=True)
class Pong:
    sent: float  # of the ping
    position: Position
    error: float


@dataclass(frozen=True, slots=True)
class Inquiry:
    """To a node near the place that an operator is drawn to."""

    evaluation: int
    signature: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    evaluation: int
    load: float
    memory: float  # bytes in use
    runs_it: bool  # an equal operator


@dataclass(frozen=True, slots=True)
class FragmentComing:
    """To the new node of an operator, ahead of it: the load that it brings; none if it does not come after all."""

    fragment: str
    work: float  # seconds per second at cpu 1


# --- to the directory, and its answers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Publish:
    """Where the sender is in the latency space, and which fragments it runs."""

    position: Position
    fragments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """The sender wants to evaluate an operator of these queries, and asks where its neighbours are."""

    evaluation: int
    names: tuple[str, ...]  # of the queries, and of the signature: nobody else may hold one of them
    fragments: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Of a fragment: who runs it, where that node is, and where the fragment itself was drawn to."""

    node: str
    position: Position
    rest: Position


@dataclass(frozen=True, slots=True)
class Granted:
    evaluation: int
    fragments: Mapping[str, Place]
    nodes: Mapping[str, Position]


@dataclass(frozen=True, slots=True)
class Denied:
    evaluation: int


@dataclass(frozen=True, slots=True)
class Nearest:
    evaluation: int
    target: Position
    count: int


@dataclass(frozen=True, slots=True)
class Candidates:
    evaluation: int
    nodes: Mapping[str, Position]  # the nearest first
    all: bool  # there are no others


@dataclass(frozen=True, slots=True)
class Done:
    """The evaluation is over: the queries are free again."""

    evaluation: int
    rests: Mapping[str, Position] = field(default_factory=dict)  # by fragment
    moved: Mapping[str, str] = field(default_factory=dict)  # by fragment, the node that runs it now


Message = (
    Ping | Pong | Inquiry | Standing | FragmentComing | Publish | Claim | Granted | Denied | Nearest | Candidates | Done
)


def size(message: Message) -> int:
    """Bytes on the wire, in one packet: pings as numbers, since there are many of them, all else as JSON."""
    match message:
        case Ping():
            return HEADER_BYTES + NUMBER_BYTES
        case Pong(_, position):
            return HEADER_BYTES + NUMBER_BYTES * (2 + len(position))
        case _:
            body = {"type": type(message).__name__, **asdict(message)}
            return HEADER_BYTES + len(json.dumps(body, separators=(",", ":")))
