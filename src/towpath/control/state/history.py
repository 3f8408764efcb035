"""The history of a job: what was decided and what happened, with the reason, in words for people.

Whoever decides has no clock: it hands out entries, and the journal writes down when it took them in. An entry is saved
in the same step as the records it is about, so the history never says what did not happen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from towpath.config.settings import moment_text
from towpath.control.state.fence import MoveEvent


class EventKind(StrEnum):
    SUBMITTED = "submitted"
    WITHDRAWN = "withdrawn"
    REFUSED = "refused"
    SET_ASIDE = "set aside"
    MOVE_BEGUN = "move begun"
    MOVE_FENCED = "move fenced"
    MOVE_PASSED = "move passed"
    MOVE_MISSED = "move missed"
    MOVE_DRAINED = "move drained"
    MOVE_ABANDONED = "move abandoned"
    CARRIER_STARTED = "carrier started"
    CARRIER_FAILED = "carrier failed"
    CARRIER_RESTARTED = "carrier restarted"
    CARRIER_STOPPED = "carrier stopped"
    NODE_LOST = "node lost"
    NODE_SLOW = "node slow"
    NODE_JOINED = "node joined"
    NODE_LEFT = "node left"
    NODE_DRAINING = "node draining"
    CATCHING_UP = "catching up"
    CAUGHT_UP = "caught up"
    ADVICE = "advice"
    CONTROLLER_STARTED = "controller started"
    CONTROLLER_STOPPED = "controller stopped"
    CONTROLLER_PAUSED = "controller paused"
    CLOCK_CHANGED = "clock changed"
    DISK_FULL = "disk full"
    FAULT = "fault"
    LATE_ROWS = "late rows"
    TABLE_CHANGED = "table changed"


STEPS = {
    MoveEvent.READY: EventKind.MOVE_FENCED,
    MoveEvent.PASSED: EventKind.MOVE_PASSED,
    MoveEvent.MISSED: EventKind.MOVE_MISSED,
    MoveEvent.DRAINED: EventKind.MOVE_DRAINED,
    MoveEvent.ABANDON: EventKind.MOVE_ABANDONED,
}


@dataclass(frozen=True)
class Entry:
    """One line of the history, and what it is about."""

    kind: EventKind
    text: str
    query: str | None = None
    fragment: int | None = None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SavedEntry(Entry):
    """An entry as the journal has it."""

    number: int = 0
    at_us: int = 0  # wall-clock time at which it was saved


GOES_ON = re.compile(r"carrier (\S+) goes on on ")
PLACE = re.compile(r"fragment (\d+) in carrier (\S+) on ([A-Za-z0-9_][A-Za-z0-9_.-]*)")


def place_text(fragment: int, carrier: str, node: str) -> str:
    """Where a fragment is: for people, and for `places_in`, since entries are all that is kept of where things were."""
    return f"fragment {fragment} in carrier {carrier} on {node}"


def places_in(text: str) -> list[tuple[int, str, str]]:
    """The fragments of an entry with their carriers and nodes."""
    return [(int(fragment), carrier, node) for fragment, carrier, node in PLACE.findall(text)]


def carrier_in(text: str) -> str | None:
    """Of an entry about a carrier that another node has taken over: which it is."""
    found = GOES_ON.match(text)
    return None if found is None else found[1]


def event_text(us: int | None) -> str:
    """An event time for people; None is before everything."""
    text = "before" if us is None else moment_text(us, "milliseconds")
    return "the beginning" if text.startswith(("before", "0001-")) else text
