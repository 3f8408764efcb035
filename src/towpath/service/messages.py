"""What the service is asked and what it answers, as JSON on the way."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from towpath import errors
from towpath.api.figures import Figures
from towpath.errors import HINT, MissingPackageError, Mistake, ProblemsError, TowpathError

Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]  # what the journal can compare with

# --- asked -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Submit:
    """Queries in the words of a job file. Paths in them are relative to `folder`."""

    queries: dict[str, dict[str, Any]]
    folder: str


@dataclass(frozen=True)
class Withdraw:
    names: list[str]


@dataclass(frozen=True)
class Migrate:
    subject: str  # a query's name or a fragment's number
    to: str | None = None  # a node; None: where it is
    carriers: Literal["compiled", "universal"] | None = None  # the kind it is to run in; None: whichever it comes to
    reason: Annotated[str, Field(max_length=500)] = "asked for"  # for the history


@dataclass(frozen=True)
class Drain:
    node: str
    undo: bool = False


@dataclass(frozen=True)
class LookRequest:
    """Which entries of the history, of those with a number between two; `limit`: the newest so many, -1 for all."""

    query: str | None = None
    node: str | None = None
    since_us: Int64 = 0
    after: Int64 = 0
    before: Int64 = 2**63 - 1
    limit: Int64 = -1


# --- answered --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QueryStatus:
    name: str
    state: str  # starting | catching up 43% | standing | set aside
    sql: str
    fragments: list[int]
    nodes: list[str]
    failed: str | None = None  # why it was set aside
    from_us: int | None = None  # from when on it answers, unless it is starting; None: from the beginning


@dataclass(frozen=True)
class MoveStatus:
    number: int
    fragment: int
    used_by: str
    source: str  # nodes
    target: str
    carriers: list[str]  # what it leaves and what it goes to, each with its kind
    step: str
    fence_us: int | None
    fences: int  # tried so far
    reason: str


@dataclass(frozen=True)
class NodeStatus:
    name: str
    type: str
    state: str
    carriers: int
    fragments: int
    rows_per_s: float


@dataclass(frozen=True)
class WayStatus:
    """From one node to another."""

    source: str
    target: str
    latency_s: float  # half of a round trip
    known: str  # given | measured | estimated
    bytes_per_s: float  # that nodes read: of derived streams, and of streams that enter elsewhere
    streams: int  # how many of these
    delay_s: float | None  # of links, from a commit until the reader has it; None: nothing was read yet


@dataclass(frozen=True, kw_only=True)
class JobStatus(Figures):
    store: str
    pid: int
    nodes: list[NodeStatus]
    # Of nodes that something flows between; none without a control section.
    ways: list[WayStatus] = dataclasses.field(default_factory=list)
    moves: list[MoveStatus]  # under way
    troubles: list[str]  # what fails and is tried again
    aside: dict[str, str]  # queries that were set aside, and why


@dataclass(frozen=True)
class Readiness:
    """What of a job works. Without names: whoever asks need not show a token."""

    ready: bool
    loop: str
    nodes: str = "not known"
    journal: str = "not known"


@dataclass(frozen=True)
class HistoryEntry:
    """An entry of the history."""

    number: int
    at_us: int
    kind: str
    text: str
    query: str | None
    fragment: int | None
    nodes: list[str]


# --- errors ----------------------------------------------------------------------------------------------------------


def dump_error(error: TowpathError) -> dict[str, Any]:
    found: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, ProblemsError):
        found |= {"title": error.title, "problems": [dataclasses.asdict(p) for p in error.problems]}
    return found


def load_error(answer: dict[str, Any]) -> TowpathError:
    """The error as the service had it, with every underlined place."""
    kind = getattr(errors, str(answer["error"]), TowpathError)
    if issubclass(kind, ProblemsError):
        return kind(answer["title"], [Mistake(**p) for p in answer["problems"]])
    if issubclass(kind, MissingPackageError):
        return kind(*answer["message"].split(HINT, 1))
    return kind(answer["message"]) if issubclass(kind, TowpathError) else TowpathError(answer["message"])
