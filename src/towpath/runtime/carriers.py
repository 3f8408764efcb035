"""Carriers: what the engine asks of a node that runs them, and what it hears back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from towpath.plan.assignment import Row, TableChange
from towpath.plan.templates import Template


class LinkDelays(NamedTuple):
    """How long rows were on their way to a reader's node, in seconds."""

    look: float  # from the reader's look at a link until it had what was there
    delay: float  # from the newest commit until then: with the time until the reader looked


@dataclass(frozen=True)
class BatchDone:
    """A carrier has finished a micro-batch."""

    carrier: str
    batch: int
    version: int | None  # the oldest version of the assignment table that any part of the plan read
    newest_us: tuple[int | None, ...]  # for each input, the highest event time among the tuples of this batch
    watermark_us: int | None  # what is older is late in this batch and those after it; None: nothing is yet
    rows: int
    late: tuple[dict[str, int], ...]  # for each input, by stream, the rows that were left out as late
    state_rows: int
    seconds: float
    phases_ms: dict[str, int]
    first: bool  # the first since the carrier was started: it may repeat one that was cut short
    begins: tuple[str | None, ...] = ()  # for each input, the position it had come to before this batch, if known
    ends: tuple[str | None, ...] = ()  # and at its end
    bounds_us: tuple[int | None, ...] = ()  # what `begins` says of event times: nothing newer came before it
    joined: Mapping[tuple[str, int], int] = field(default_factory=dict)  # links that its inputs read, and behind when
    more: bool = False  # its inputs had more to read than it took
    known_us: int | None = None  # the newest event time of tuples that its inputs have, given out or held back
    link_bytes: Mapping[str, float] = field(default_factory=dict)  # that it read, by derived stream
    took: Mapping[str, LinkDelays] = field(default_factory=dict)  # what came over links, by the node that made it


@dataclass(frozen=True)
class CarrierStumbled:
    """It failed and will be started again: a full disk or a busy machine passes."""

    carrier: str
    message: str


@dataclass(frozen=True)
class CarrierFailed:
    """It failed too often: the node leaves it alone until it is started anew."""

    carrier: str
    message: str
    outside: bool = False  # no query is at fault: a full disk, too little memory, a node that is busy


@dataclass(frozen=True)
class TriedOut:
    """A carrier was tried with another table."""

    carrier: str
    failure: str | None
    outside: bool = False
    blamed: int | None = None  # the fragment that the failure names


CarrierEvent = BatchDone | CarrierStumbled | CarrierFailed | TriedOut


class Runtime(Protocol):
    """A node that runs carriers."""

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        """Brings a carrier's assignment table to a version; the carrier need not run."""

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        """Starts a carrier, from its checkpoint if it has one.

        A higher epoch than before takes it over: from then on nothing counts that an earlier one still writes.
        Of `banned` fragments nothing is calculated any more, not even when windows close that they have open.
        """

    def try_out(
        self, carrier: str, template: Template, epoch: int, rows: Sequence[Row], banned: Sequence[int] = ()
    ) -> None:
        """Does the next micro-batch of a carrier that failed with another table, on a copy: nothing of it counts.

        Returns at once; `TriedOut` reports how it went.
        """

    def events(self) -> list[CarrierEvent]:
        """What happened since the last call."""

    def waiting(self, carrier: str) -> bool:
        """Whether the carrier is at rest: its inputs had nothing to read, and `events` has reported all it did."""

    def tick(self, carrier: str, input: int, event_us: int) -> None:
        """Moves the event time of one of a carrier's inputs on although no tuple has come."""

    def finish_input(self, *, close: bool) -> None:
        """From now on nothing more is waited for.

        With `close` inputs release all they have, else no more than would be in time whatever comes later.
        """

    def settle(self, carriers: Sequence[str]) -> bool:
        """Waits until the carriers have processed everything their inputs offer; False if the node was lost first."""

    def ping(self) -> None:
        """Returns when the node has given a sign of life."""

    def round_trips(self) -> list[float]:
        """How long signs of life took since the last call, in seconds."""

    @property
    def lost(self) -> str | None:
        """Why the node cannot be reckoned with now; None while it answers."""

    @property
    def slow(self) -> str | None:
        """In which way the node is about to be lost; None while all is well, and once it is lost."""

    def forget(self) -> None:
        """Others run the carriers of this node from now on. It is lost until it has stopped them."""

    @property
    def heap_bytes(self) -> int | None:
        """Memory in use by the Spark of this process, if it is there."""

    def stop(self, carrier: str) -> None: ...

    def close(self) -> None: ...
