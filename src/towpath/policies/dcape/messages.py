"""What managers and agents send each other, and what it takes on the wire.

Names travel once, with the configuration; afterwards everything goes by number, and only what changed is sent. All
requests of one step to one receiver go in one message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from towpath.policies.dcape.properties import PropertyChange

HEADER = 16  # bytes: what kind of message, whose, and how many entries
CHANGE = 12  # subject and property in 4 bytes, value in 8
REQUEST = 16  # verb, fragment, peer and host in 4 bytes each
CONFIGURED = 48  # a property or an operator with its name

PLACE = 8  # a fragment and its node

# Table 4.1 (requests to a processor), with `prepare` and `release` for both ends of a move. `hold` is for managers: a
# neighbour of what is moved stays where it is until it is asked to stop sending or receiving.
Verb = Literal[
    "prepare",
    "activate",
    "release",
    "deactivate",
    "hold",
    "send_data",
    "receive_data",
    "stop_send",
    "stop_receive",
]


@dataclass(frozen=True)
class Configure:
    """All that a processor must know before anything flows: plans, streams, what to report."""

    entries: int


@dataclass(frozen=True)
class Configured:
    """The answer to it: a processor that does not give it is not used."""


@dataclass(frozen=True)
class LoadReport:
    changes: tuple[PropertyChange, ...]


@dataclass(frozen=True)
class WorkRequest:
    verb: Verb
    fragment: str  # whose host has to act
    peer: str = ""  # the fragment, stream or query at the other end of a connection
    host: str = ""  # and where it is


@dataclass(frozen=True)
class WorkRequests:
    """A bundle; `number` is unique for the one who first sent it, `origin`."""

    origin: str
    number: int
    requests: tuple[WorkRequest, ...]


@dataclass(frozen=True)
class RequestsDone:
    origin: str
    number: int
    hosts: tuple[tuple[str, str], ...] = ()  # fragments that were to be prepared, released or held, and their nodes


@dataclass(frozen=True)
class Refused:
    origin: str
    number: int
    reason: str


Message = Configure | Configured | LoadReport | WorkRequests | RequestsDone | Refused


def size(message: Message) -> int:
    match message:
        case Configure(entries):
            return HEADER + CONFIGURED * entries
        case LoadReport(changes):
            return HEADER + CHANGE * len(changes)
        case WorkRequests(_, _, requests):
            return HEADER + REQUEST * len(requests)
        case RequestsDone(_, _, hosts):
            return HEADER + PLACE * len(hosts)
        case Refused(_, _, reason):
            return HEADER + len(reason.encode())
        case _:
            return HEADER
