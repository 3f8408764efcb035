"""All that can happen to a query that moves to another node and back, in every order.

Two nodes read one stream, each at its own pace. A query moves twice. In between, in all possible orders: micro-batches,
reports that are heard or still under way, a micro-batch that began with the table of before, a controller that dies
before or after acting on what it wrote down, moves that are abandoned, and somebody who follows the results. Whatever
the order: nothing is handed out twice, and when everything has come to rest nothing is missing.

Two things keep the number of states small, and leave nothing out:

- The follower looks at the journal, reads the logs, and drops what it found if the journal has changed meanwhile. So
  what it hands out is what it would have handed out had it looked and read at one moment: one action. Two of them and
  the one at the end are enough. To hand out a tuple twice takes two. To lose one takes one that reads past the tuple in
  the log of whoever owns it later, and at most one more that reads past it in another log before; any more between them
  can be left out: logs are in the order of event time, and what was read decides nothing but where reading goes on.
- Whether anything is missing is asked where nothing is left to be read or heard. Every state comes to such a one when
  from now on everybody reads and everything is heard, and those are among the orders gone through.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import pytest

from towpath.control.act.decisions import Decisions
from towpath.control.decide.controller import Controller
from towpath.control.decide.links import Links
from towpath.control.state.controller_state import Instruction
from towpath.control.state.fence import OPEN, UNDECIDED, MoveStep
from towpath.control.state.records import PartRecord, Record, State
from towpath.plan import CarrierKinds
from towpath.plan.assignment import TableChange
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Template
from towpath.runtime.fake import FakeNode
from towpath.schema import Stream

from .world import CATALOG, batch_done, submission

NODES = ("a", "b")
KINDS = (CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL)
QUERY = submission("q", "filter")
DELAY_US = CATALOG["s"].delay_us
# Far apart, so that what is older than the allowed delay is complete with the next tuple.
STEP_US = 2 * DELAY_US
REST = 6  # tuples that come after everything, for moves to come to an end
LOOKS = 2  # of the follower, before the last one


class Table(NamedTuple):
    version: int
    fragments: frozenset[int]


class Batch(NamedTuple):
    time: int  # of the one tuple that it reads
    table: Table
    first: bool  # since the carrier was started


@dataclass
class Carrier:
    tables: list[Table] = field(default_factory=list)
    read: int = 0  # the newest table that a batch has read
    batches: list[Batch] = field(default_factory=list)
    heard: int = 0
    running: bool = False
    starting: bool = True

    def run(self, table: int) -> None:
        """The next tuple, with one of the tables."""
        self.batches.append(Batch(STEP_US * (len(self.batches) + 1), self.tables[table], self.starting))
        self.starting, self.read = False, table


class Journal:
    """In memory: what a controller finds after a crash."""

    def __init__(self) -> None:
        self.controller: Controller
        self.saved = b""

    def save(self, records: Iterable[Record]) -> None:
        self.saved = frozen(self.controller.state)

    def load(self) -> State:
        found: State = thawed(self.saved)
        return found


class NoLinks:
    def write(self, links: Links) -> None:
        """Nobody reads one here."""


class ModelNode(FakeNode):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        present = frozenset(int(str(row["_fragment"])) for row in self._world.controller.known.rows(carrier))
        self._world.carriers.setdefault(carrier, Carrier()).tables.append(Table(version, present))

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        model = self._world.carriers[carrier]
        model.running = model.starting = True
        model.heard = len(model.batches)


class World:
    """A stream of `length` tuples, the nodes that read it, and somebody who follows the query."""

    def __init__(self, length: int, moves: int, crashes: int, abandons: int, in_place: bool = False) -> None:
        """`in_place`: not to the other node and back, but to the other kind of carrier and back."""
        self.length = length
        self.moves = moves
        self.crashes = crashes
        self.abandons = abandons
        self.in_place = in_place
        self.journal = Journal()
        self.carriers: dict[str, Carrier] = {}
        self.looks = LOOKS
        self.seen: dict[int, int] = {}  # by fragment: batches that the follower has read
        self.given: list[int] = []
        self._begin(State())

    # --- the controller ----------------------------------------------------------------------------------------------

    def _begin(self, state: State) -> None:
        self.controller = self.journal.controller = Controller(state, CATALOG, NODES)
        node = ModelNode(self)
        self._decisions = Decisions(self.controller, self.journal, dict.fromkeys(NODES, node), NoLinks())

    @contextmanager
    def deciding(self) -> Iterator[list[Instruction]]:
        """As the engine does it: what is decided inside is written down, what is put into the list is done."""
        with self._decisions.decision() as todo:
            yield todo
        assert not self._decisions.guard.troubles

    def crash(self) -> None:
        """What was not heard by now is never heard."""
        self.crashes -= 1
        for carrier in self.carriers.values():
            carrier.running = False
        self._begin(self.journal.load())
        with self.deciding() as todo:
            todo += self.controller.resume()

    def hear(self, name: str, *, dies: bool = False) -> None:
        """`dies`: the decision is written down, and nobody acts on it."""
        carrier = self.carriers[name]
        number = carrier.heard
        time, table, first = carrier.batches[number]
        carrier.heard += 1
        watermark = carrier.batches[number - 1].time - DELAY_US if number else None
        event = batch_done(name, number, table.version, [time], watermark, first=first)
        with self.deciding() as todo:
            decided = self.controller.handle(event)
            todo += [] if dies else decided

    def rest(self, name: str) -> None:
        with self.deciding() as todo:
            todo += self.controller.rest(name)

    def move(self) -> None:
        self.moves -= 1
        (part,) = self.controller.state.parts_of(1)
        carrier = self.controller.known.carrier_of(self.controller.state.fragments[part.fragment])
        with self.deciding() as todo:
            if self.in_place:
                other = next(kind for kind in KINDS if kind is not carrier.template.family.carriers)
                todo += self.controller.move(part.fragment, carrier.node, "", other)
            else:
                todo += self.controller.move(part.fragment, NODES[1 - NODES.index(carrier.node)], "")

    def abandon(self) -> None:
        self.abandons -= 1
        (move,) = self.undecided()
        with self.deciding() as todo:
            todo += self.controller.moves.abandon(self.controller.state.moves[move], "asked for")

    def running(self) -> dict[str, Carrier]:
        return {name: carrier for name, carrier in self.carriers.items() if carrier.running}

    def undecided(self) -> list[int]:
        return [m.id for m in self.controller.state.moves.values() if m.step in UNDECIDED]

    # --- the follower ------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Hands out what the logs have and the journal gives away."""
        self.looks -= 1
        journal = self.journal.load()
        for part in journal.parts.values():
            log = self.carriers[journal.fragments[part.fragment].carrier].batches
            rows = owned(part, log[self.seen.get(part.fragment, 0) :])
            if part.settled and (part.pending_fence_us is None or all(time < part.pending_fence_us for time in rows)):
                self.given += rows
                self.seen[part.fragment] = len(log)


def owned(part: PartRecord, batches: list[Batch]) -> list[int]:
    return [b.time for b in batches if part.fragment in b.table.fragments and owns(part, b.time)]


def owns(part: PartRecord, time: int) -> bool:
    return (part.from_us is None or time >= part.from_us) and (
        part.handed_over_us is None or time < part.handed_over_us
    )


# --- every order ---------------------------------------------------------------------------------------------------

Action = Callable[[World], object]


def actions(world: World) -> Iterator[tuple[str, Action]]:
    """All that may happen next."""
    for name, carrier in world.running().items():
        if len(carrier.batches) < world.length:
            newest = len(carrier.tables) - 1
            yield f"{name} reads", lambda w, n=name, t=newest: w.carriers[n].run(t)
            if carrier.read < newest:
                yield f"{name} reads with the table before", lambda w, n=name, t=newest - 1: w.carriers[n].run(t)
        if carrier.heard < len(carrier.batches):
            yield f"{name} is heard", lambda w, n=name: w.hear(n)
            if world.crashes:
                yield f"{name} is heard, then death", partial(_heard_and_dead, name=name)
        # The engine sees by the results log whether there are batches that nobody has heard of.
        elif (
            name in world.controller.undecided
            and world.controller.state.carriers[name].last == len(carrier.batches) - 1
        ):
            yield f"{name} rests", lambda w, n=name: w.rest(n)
    if world.moves and not any(m.step in OPEN for m in world.controller.state.moves.values()):
        yield "move", World.move
    if world.abandons and world.undecided():
        yield "abandon", World.abandon
    if world.crashes:
        yield "death", World.crash
    if world.looks:
        yield "the follower reads", World.follow


def _heard_and_dead(world: World, name: str) -> None:
    world.hear(name, dies=True)
    world.crash()


@dataclass(frozen=True)
class Story:
    """What has happened, the latest first."""

    last: str
    before: Story | None

    def __str__(self) -> str:
        return f"{self.before}, {self.last}" if self.before else self.last


def explore(world: World) -> Counter[MoveStep]:
    """Goes through all states that can be reached; returns how moves stood at the end of them."""
    waiting = [(frozen(world), Story("the query is there", None))]
    known = {fingerprint(world)}
    ends: Counter[MoveStep] = Counter()
    while waiting:
        copy, before = waiting.pop()
        for name, action in actions(thawed(copy)):
            world = thawed(copy)
            action(world)
            mark = fingerprint(world)
            if mark in known:
                continue
            known.add(mark)
            story = Story(name, before)
            assert max(Counter(world.given).values(), default=0) <= 1, story
            waiting.append((frozen(world), story))
            if all(len(c.batches) == c.heard == world.length for c in world.running().values()):
                ends += come_to_rest(world, story)
    print(f"{len(known):,} states")
    return ends


def come_to_rest(world: World, story: Story) -> Counter[MoveStep]:
    """From here on nothing special happens: everybody reads, everything is heard. Then all is there, once."""
    until = world.length + REST
    while any(len(c.batches) < until for c in world.running().values()):
        for name, carrier in world.running().items():
            if len(carrier.batches) < until:
                carrier.run(len(carrier.tables) - 1)
                world.hear(name)
    world.follow()
    expected = [STEP_US * (n + 1) for n in range(until)]
    state = world.controller.state
    assert sorted(world.given) == expected, (str(story), state.parts, state.moves)
    return Counter(m.step for m in state.moves.values())


def fingerprint(world: World) -> bytes:
    state = world.controller.state
    runs = {name: vars(run) for name, run in world.controller.known.runs.items()}
    fragments = [(f.id, f.carrier, f.status, f.version, f.from_us, f.until_us) for f in state.fragments.values()]
    carriers = [(c.id, c.node, c.version, c.inputs_us) for c in state.carriers.values()]
    records = [*state.parts.values(), *state.moves.values()]
    follower = (world.looks, world.seen, sorted(world.given))
    left = (world.moves, world.crashes, world.abandons)
    text = repr((runs, fragments, carriers, records, world.carriers, follower, left, world.controller.moves._pace_us))
    return blake2b(text.encode(), digest_size=16).digest()


def frozen(thing: World | State) -> bytes:
    """A copy that takes little room, made ten times as fast as copy.deepcopy makes one."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    # The greater part of a state, and they never change.
    pickler.dispatch_table = dict.fromkeys((Template, Pipeline, Stream), _reference)
    pickler.dump(thing)
    return written.getvalue()


def thawed(copy: bytes) -> Any:
    return pickle.loads(copy)


_referred: dict[int, object] = {}


def _reference(thing: object) -> tuple[Callable[[int], object], tuple[int]]:
    _referred[id(thing)] = thing
    return _referred_to, (id(thing),)


def _referred_to(number: int) -> object:
    return _referred[number]


@pytest.mark.parametrize(
    ("length", "moves", "crashes", "abandons"),
    [
        (2, 1, 0, 0),
        (2, 1, 0, 1),
        (1, 1, 1, 1),
        (2, 1, 1, 0),
        pytest.param(3, 2, 0, 0, marks=pytest.mark.long),
        pytest.param(3, 1, 1, 0, marks=pytest.mark.long),
        pytest.param(3, 1, 0, 1, marks=pytest.mark.long),
        pytest.param(2, 2, 1, 1, marks=pytest.mark.long),
        pytest.param(3, 2, 1, 0, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    "in_place",
    [
        pytest.param(False, id="to another node"),
        pytest.param(True, id="to another carrier", marks=pytest.mark.live),  # `make test` is to stay below ten minutes
    ],
)
def test_moves_in_every_order(length: int, moves: int, crashes: int, abandons: int, in_place: bool) -> None:
    world = World(length, moves, crashes, abandons, in_place)
    with world.deciding() as todo:
        todo += world.controller.queries.submit([QUERY])
    ends = explore(world)
    assert ends[MoveStep.DONE] and bool(ends[MoveStep.ABANDONED]) == bool(abandons)
