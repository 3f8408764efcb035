"""What actors hear and ask, written down while they run, and everything in it that breaks the contract of driver.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from towpath.control.act.loop import StartPolicy
from towpath.placement.problem import Placement, Problem
from towpath.runtime.actors import (
    Actor,
    Actors,
    Address,
    Arrived,
    Measured,
    Move,
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    PolicyEvent,
    PolicyInstruction,
    Send,
    Started,
)

ROUNDING = 1e-9  # of times that are multiples of a window


@dataclass(frozen=True)
class Entry:
    address: Address
    what: PolicyEvent | PolicyInstruction
    heard: bool  # or asked


@dataclass
class Record:
    """Of one start of a policy."""

    actors: Actors
    problem: Problem
    placement: Placement
    entries: list[Entry] = field(default_factory=list)
    busy: Address | None = None  # who is handling something
    nested: list[str] = field(default_factory=list)

    def heard(self) -> Iterator[tuple[int, Address, PolicyEvent]]:
        for n, entry in enumerate(self.entries):
            if entry.heard:
                yield n, entry.address, entry.what  # type: ignore[misc]

    def kinds(self) -> set[str]:
        """The kinds of events that were heard."""
        return {type(event).__name__ for _, _, event in self.heard()}

    def messages(self) -> list[tuple[Address, Address, str]]:
        """As they arrived: from whom, to whom, and what kind."""
        return [(e.sender, to, type(e.message).__name__) for _, to, e in self.heard() if isinstance(e, Arrived)]


class _Recorded:
    def __init__(self, actor: Actor, record: Record) -> None:
        self.address = actor.address
        self._actor = actor
        self._record = record

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        record = self._record
        if record.busy is not None:
            record.nested.append(f"{self.address} hears {event} while {record.busy} is handling something")
        record.entries.append(Entry(self.address, event, heard=True))
        return self._asked(list(self._actor.handle(event)))  # type: ignore[return-value]

    def _asked(self, instructions: Sequence[PolicyInstruction]) -> Iterator[PolicyInstruction]:
        """An event is handled when the last instruction was taken."""
        self._record.busy = self.address
        for instruction in instructions:
            self._record.entries.append(Entry(self.address, instruction, heard=False))
            yield instruction
        self._record.busy = None


def recording(start: StartPolicy, records: list[Record]) -> StartPolicy:
    """Starts a policy whose every start is written down."""

    def started(problem: Problem, placement: Placement) -> Actors:
        made = start(problem, placement)
        record = Record(made, problem, placement)
        records.append(record)
        return replace(made, actors=tuple(_Recorded(actor, record) for actor in made.actors))

    return started


# --- the contract ----------------------------------------------------------------------------------------------------


def violations(record: Record, under_way: int = 0, losses: Sequence[tuple[str, float]] = ()) -> list[str]:
    """`under_way`: the moves that have not ended; `losses`: which nodes were lost, and when."""
    return [
        *record.nested,
        *_started(record),
        *_times(record),
        *_measured(record),
        *_moves(record, under_way),
        *_arrived(record),
        *_silence(record),
        *_lost_first(record, losses),
    ]


def _started(record: Record) -> Iterator[str]:
    known: set[Address] = set()
    for _, address, event in record.heard():
        if isinstance(event, Started) == (address in known):
            yield f"{address} hears {event}" + (" again" if address in known else " before it is started")
        known.add(address)


def _times(record: Record) -> Iterator[str]:
    now = 0.0
    for _, address, event in record.heard():
        if event.at < now:
            yield f"{address} hears {event} after something of {now}"
        now = max(now, event.at)


def _measured(record: Record) -> Iterator[str]:
    last: dict[str, float] = {}
    for _, address, event in record.heard():
        if not isinstance(event, Measured):
            continue
        for node in event.statistics.nodes:
            if record.actors.measures.get(node) != address:
                yield f"{address} hears of the measurements of {node}, for which it did not ask"
            if node in last and event.at - last[node] < record.actors.window - ROUNDING:
                yield f"{node} is measured at {last[node]} and at {event.at}, twice within a window"
            last[node] = event.at


def _moves(record: Record, under_way: int) -> Iterator[str]:
    """Who is lost does not hear how its moves end."""
    asked: Counter[tuple[Address, str, str, str]] = Counter()
    for entry in record.entries:
        match entry.what:
            case Move(fragment, source, target):
                asked[entry.address, fragment, source, target] += 1
            case MoveDone(_, fragment, source, target) | MoveFailed(_, fragment, source, target):
                key = (entry.address, fragment, source, target)
                asked[key] -= 1
                if asked[key] < 0:
                    yield f"{entry.address} hears the end of a move that it has not asked for: {entry.what}"
            case NodeLost(_, node):
                asked = Counter({key: n for key, n in asked.items() if key[0] != node})
    if asked.total() != under_way:
        yield f"{asked.total()} moves have no end, {under_way} are under way: {sorted(+asked)}"


def _arrived(record: Record) -> Iterator[str]:
    sent: dict[tuple[Address, Address], list[object]] = {}
    for entry in record.entries:
        match entry.what:
            case Send(to, message):
                sent.setdefault((entry.address, to), []).append(message)
            case Arrived(_, sender, message):
                waiting = sent.get((sender, entry.address), [])
                position = next((n for n, m in enumerate(waiting) if m is message), None)
                if position is None:
                    yield f"{entry.address} hears {message} of {sender} twice, out of order, or before it was sent"
                else:
                    del waiting[: position + 1]  # those before it are lost: they must not come later


def _silence(record: Record) -> Iterator[str]:
    lost: set[str] = set()
    for _, address, event in record.heard():
        if isinstance(event, NodeLost):
            lost.add(event.node)
        elif isinstance(event, NodeJoined):
            lost.discard(event.node.name)
        if address in lost:
            yield f"{address} hears {event} though its node is lost"


def _lost_first(record: Record, losses: Sequence[tuple[str, float]]) -> Iterator[str]:
    """Of what a loss brings about, it is the loss that is heard of first."""
    heard: dict[str, float] = {}
    for entry in record.entries:
        match entry.what:
            case NodeLost(at, node):
                heard[node] = at
            case MoveDone(at, _, source, target) | MoveFailed(at, _, source, target):
                for node, lost in losses:
                    if node in (source, target) and _since_start(record) <= lost <= at and heard.get(node, -1.0) < lost:
                        yield f"{entry.address} hears {entry.what} before the loss of {node} at {lost}"


def _since_start(record: Record) -> float:
    return next((event.at for _, _, event in record.heard()), 0.0)
