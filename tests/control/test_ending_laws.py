"""Nothing that was handed out is taken back, whoever leaves, is replaced, moves or dies, and each result comes once.

Random queries over random streams, with somebody who follows every one of them and somebody who looks now and then. At
the end each version has answered for all tuples of the event times that it stood, and for no others.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from towpath.control.journal import answers
from towpath.control.state.records import FragmentStatus, PartRecord, QueryRecord
from towpath.errors import MoveRefused

from .world import DELAY, SECOND, Carrier, World, losses, submission

NODES = ("a", "b")
NAMES = st.sampled_from(["q", "r"])
KINDS = st.sampled_from(["filter", "other filter", "computed", "join"])  # "computed" has another column
INPUTS = 2
FAR = 1000 * SECOND  # behind everything that was drawn

Row = tuple[int, int]  # input and number of a tuple, which stands for the result that it makes
Place = tuple[int, int, int | None]  # what a follower remembers a position by: version of the series, fragment, from


class Endings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name) / "journal.sqlite", NODES)
        self.streams: list[list[int]] = [[], []]  # event times in the order of their arrival
        self.given: dict[int, Counter[Row]] = {}  # by the first version of a series
        self.positions: dict[Place, int] = {}
        self.looked: dict[int, set[Row]] = {}
        self.sure: dict[int, set[Row]] = {}  # what a look showed when there was nothing to be heard of

    def teardown(self) -> None:
        self.come_to_rest()
        self.world.journal.close()
        self.folder.cleanup()

    # --- queries -----------------------------------------------------------------------------------------------------

    @rule(name=NAMES, kind=KINDS)
    def submit(self, name: str, kind: str) -> None:
        self.world.submit(submission(name, kind))

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        self.world.withdraw(name)

    @rule(name=NAMES, node=st.sampled_from(NODES))
    def move(self, name: str, node: str) -> None:
        if self.world.controller.queries.running.get(name):
            with suppress(MoveRefused):
                self.world.move(name, node)

    # --- data --------------------------------------------------------------------------------------------------------

    @rule(n=st.integers(0, INPUTS - 1), jump=st.integers(-DELAY // SECOND, 9))
    def arrive(self, n: int, jump: int) -> None:
        stream = self.streams[n]
        stream.append(max(stream) + jump * SECOND if stream else 0)

    def some_run(self) -> bool:
        return any(carrier.running for carrier in self.world.carriers.values())

    def drawn(self, data: st.DataObject) -> tuple[str, Carrier]:
        name = data.draw(st.sampled_from(sorted(n for n, c in self.world.carriers.items() if c.running)))
        return name, self.world.carriers[name]

    def new(self, carrier: Carrier, n: int) -> list[int]:
        return self.streams[n][sum(len(batch.times[n]) for batch in carrier.batches) :]

    @precondition(some_run)
    @rule(data=st.data(), heard=st.booleans(), least=st.booleans())
    def batch(self, data: st.DataObject, heard: bool, least: bool) -> None:
        name, carrier = self.drawn(data)
        times = [self.new(carrier, n)[: 1 if least else None] for n in range(carrier.inputs)]
        oldest = data.draw(st.integers(carrier.read, len(carrier.tables) - 1))
        carrier.run_batch(name, times, oldest, len(carrier.tables) - 1)
        if heard:
            self.world.hear(name)

    @precondition(some_run)
    @rule(data=st.data())
    def hear(self, data: st.DataObject) -> None:
        self.world.hear(self.drawn(data)[0])

    @precondition(some_run)
    @rule(data=st.data())
    def rest(self, data: st.DataObject) -> None:
        name, carrier = self.drawn(data)
        if not carrier.events and carrier.heard == len(carrier.batches):
            with self.world.deciding() as todo:
                todo += self.world.controller.rest(name)

    @rule()
    def crash(self) -> None:
        self.world.crash()

    # --- those who read ----------------------------------------------------------------------------------------------

    def series(self) -> Iterator[tuple[int, list[QueryRecord]]]:
        """Versions that continue each other, oldest first, by the first of them."""
        queries = self.world.everything.queries
        for newest in {query.series: query for query in queries.values()}.values():
            yield newest.series, self.world.journal.versions(newest)

    def rows(self, part: PartRecord, after: int = 0) -> list[tuple[Row, int]]:
        """The results of a fragment in its log, with their times."""
        carrier = self.world.carriers.get(self.world.everything.fragments[part.fragment].carrier)
        found: list[tuple[Row, int]] = []
        counts = [0] * INPUTS
        for number, batch in enumerate(carrier.batches if carrier else ()):
            for n, times in enumerate(batch.times):
                if number >= after and part.fragment in batch.fragments:
                    found += [((n, counts[n] + k), time) for k, time in enumerate(times)]
                counts[n] += len(times)
        return found

    def shown(self, version: QueryRecord) -> list[Row]:
        parts = [part for part, _ in self.world.journal.parts(version.id) if part.settled]
        return [row for part in parts for row, time in self.rows(part) if owns(part, time) and not waits(part, time)]

    @rule()
    def look(self) -> None:
        heard = all(len(c.batches) == c.heard for c in self.world.carriers.values())
        for first, versions in self.series():
            seen = {row for version in versions for row in self.shown(version)}
            assert seen >= self.sure.get(first, set()), "a row is denied that was shown before"
            self.looked.setdefault(first, set()).update(seen)
            if heard:
                self.sure[first] = seen

    @rule()
    def follow(self) -> None:
        for first, versions in self.series():
            for version in versions:
                self.follow_version(first, version)

    def follow_version(self, first: int, version: QueryRecord) -> None:
        parts = [part for part, _ in self.world.journal.parts(version.id)]
        undecided = any(part.deciding is not None for part in parts)
        for part in (part for part in parts if part.settled):
            place = version.id, part.fragment, part.from_us
            new = self.rows(part, self.positions.get(place, 0))
            if any(begins(part, time) and waits(part, time, ends=undecided) for _, time in new):
                continue
            self.given.setdefault(first, Counter()).update(row for row, time in new if owns(part, time))
            fragment = self.world.everything.fragments[part.fragment]
            if fragment.carrier in self.world.carriers:
                self.positions[place] = len(self.world.carriers[fragment.carrier].batches)

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def each_result_comes_once(self) -> None:
        for given in self.given.values():
            assert max(given.values(), default=0) <= 1

    @invariant()
    def nothing_is_lost(self) -> None:
        assert not losses(self.world)

    # --- the end -----------------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Data flows, and everything is heard of."""
        for _ in range(12):
            for stream in self.streams:
                stream.append(max((t for other in self.streams for t in other), default=0) + FAR)
            for name, carrier in list(self.world.carriers.items()):
                if carrier.running:
                    self.world.hear(name)
                    self.world.batch(name, *(self.new(carrier, n) for n in range(carrier.inputs)))
            self.world.poll()
        self.follow()
        for first, versions in self.series():
            shown = Counter(row for version in versions for row in self.shown(version))
            assert shown == self.given.get(first, Counter()), "who follows has what is there"
            assert self.looked.get(first, set()) <= set(shown), "a row was shown and is denied"
            assert max(shown.values(), default=0) <= 1
            for version in versions:
                self.equals_batch(version)
        self.nobody_stays_without_need()

    def equals_batch(self, version: QueryRecord) -> None:
        (whole,) = answers.whole([part for part, _ in self.world.journal.parts(version.id)])
        inputs = len(self.world.everything.carriers[self.carrier_of(whole)].template.family.classes)
        wanted = {
            (n, number)
            for n, stream in enumerate(self.streams[:inputs])
            for number, time in enumerate(stream)
            if whole.settled and owns(whole, time)
        }
        assert set(self.shown(version)) == wanted, (version, whole)

    def carrier_of(self, part: PartRecord) -> str:
        return self.world.everything.fragments[part.fragment].carrier

    def nobody_stays_without_need(self) -> None:
        state = self.world.everything
        assert all(part.settled for part in state.parts.values()), "who waits has begun"
        running = {q.id for q in state.queries.values() if q.running}
        needed = {p.fragment for p in state.parts.values() if p.query in running and p.handed_over_us is None}
        assert {f.id for f in state.fragments.values() if f.status is FragmentStatus.LIVE} == needed


def begins(part: PartRecord, time: int) -> bool:
    return (part.from_us is None or time >= part.from_us) and (
        part.handed_over_us is None or time < part.handed_over_us
    )


def behind_end(part: PartRecord, time: int) -> bool:
    return any(end is not None and time >= end for end in (part.until_us, part.ceded_us))


def owns(part: PartRecord, time: int) -> bool:
    return begins(part, time) and not behind_end(part, time)


def waits(part: PartRecord, time: int, *, ends: bool = False) -> bool:
    """Whether a result is not handed out yet: behind a fence, or with `ends` behind an end that may rise."""
    return (part.pending_fence_us is not None and time >= part.pending_fence_us) or (ends and behind_end(part, time))


Endings.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestEndings = Endings.TestCase
