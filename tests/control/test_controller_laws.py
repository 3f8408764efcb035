"""Whatever comes in between, a query's fragment has seen every tuple of the event times that the query answers for.

It answers from when it was asked to, whoever else runs: exactly, if that is a time or the beginning; if it is now, for
nothing that was known when it came or was there when its carrier was started.

Random queries come and go over random micro-batches: out of order up to exactly the allowed delay and sometimes more,
inputs of a join far apart or silent, with ticks that move their event time on, tables replaced in the middle of a
batch, batches nobody hears of, crashes before and after acting, batches repeated with another table than the one their
results were made with.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from towpath.config.settings import BEGINNING, NOW, Start
from towpath.control.decide.unused_carriers import AFTER_S
from towpath.control.state.fence import OPEN, UNDECIDED, MoveStep
from towpath.control.state.records import BEGINNING_US, FragmentStatus, PartRecord
from towpath.errors import MoveRefused
from towpath.plan import CarrierKinds

from .world import DELAY, SECOND, SQL, Carrier, World, losses, submission

NODES = ("a", "b")
NAMES = st.sampled_from(["q1", "q2", "q3", "q4"])
KINDS = st.sampled_from(sorted(SQL))
START_S = 2  # so that some tuples lie before the epoch
# Relative to the newest tuple of the batches before, in microseconds: around the bound of the delay, and elsewhere.
BOUND = st.sampled_from((-DELAY, 1 - DELAY, -DELAY + 999, -SECOND, -1, 0, 1))
JUMPS = st.lists(BOUND | st.integers(-DELAY // SECOND, 9).map(lambda s: s * SECOND), max_size=3)
LATE = st.sampled_from((-DELAY - 1, -DELAY - 999, -DELAY - SECOND, -20 * SECOND))
STARTS = st.one_of(st.just(NOW), st.just(BEGINNING), st.integers(-5, 60).map(lambda s: Start(s * SECOND)))


class Decisions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name) / "journal.sqlite", NODES)
        self.now_s = 0.0
        self.asked: dict[tuple[int, int], tuple[Start, int | None]] = {}  # and what was known then
        self.begun: set[tuple[int, int]] = set()  # parts that answer

    def teardown(self) -> None:
        self.world.journal.close()
        self.folder.cleanup()

    @initialize(carriers=st.sampled_from(CarrierKinds))
    def choose_carriers(self, carriers: CarrierKinds) -> None:
        self.world.places.carriers = carriers
        self.world.crash()

    # --- queries -----------------------------------------------------------------------------------------------------

    @rule(name=NAMES, kind=KINDS, start=STARTS, replace=st.booleans())
    def submit(self, name: str, kind: str, start: Start, replace: bool = True) -> None:
        if self.world.controller.queries.running.get(name) and not replace:
            self.world.withdraw(name)
        known = {name: carrier.heard_us for name, carrier in self.world.carriers.items()}
        self.world.submit(submission(name, kind, start=start))
        if self.world.query(name).replaces is not None:
            return  # it takes over where the version before ends
        for part in self.world.parts(name):
            self.asked[part.query, part.branch] = start, known.get(self.carrier_of(part))

    def carrier_of(self, part: PartRecord) -> str:
        return self.world.controller.state.fragments[part.fragment].carrier

    @rule()
    def poll(self) -> None:
        with suppress(MoveRefused):
            self.world.poll(self.now_s)

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        self.world.withdraw(name)

    @rule(name=NAMES, node=st.sampled_from(NODES))
    def move(self, name: str, node: str) -> None:
        if self.world.controller.queries.running.get(name):
            with suppress(MoveRefused):
                self.world.move(name, node)

    @rule(name=NAMES, carriers=st.sampled_from((CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL)))
    def change_carrier(self, name: str, carriers: CarrierKinds) -> None:
        if self.world.controller.queries.running.get(name):
            with suppress(MoveRefused):
                self.world.change_carrier(name, carriers)

    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        undecided = [m.id for m in self.world.controller.state.moves.values() if m.step in UNDECIDED]
        if undecided:
            self.world.abandon(data.draw(st.sampled_from(undecided)))

    def some_move(self) -> bool:
        return any(m.step in OPEN for m in self.world.controller.state.moves.values())

    @precondition(some_move)
    @rule(data=st.data(), ahead=st.integers(0, 20), source_first=st.booleans())
    def data_flows_on_both_sides_of_a_move(self, data: st.DataObject, ahead: int, source_first: bool) -> None:
        state = self.world.controller.state
        move = state.moves[data.draw(st.sampled_from([m.id for m in state.moves.values() if m.step in OPEN]))]
        names = [state.fragments[f].carrier for f in (move.source, move.target)]
        carriers = [self.world.carriers[name] for name in names]
        newest = [carrier.newest(n) for carrier in carriers for n in range(carrier.inputs)]
        time = max((t for t in newest if t is not None), default=START_S * SECOND) + ahead * SECOND
        for name in names if source_first else names[::-1]:
            if not self.world.carriers[name].running:  # nobody needed it any more when the job was started again
                continue
            self.world.hear(name)
            self.world.batch(name, *([time] for _ in range(self.world.carriers[name].inputs)))

    @rule(name=NAMES, kind=KINDS)
    def decide_and_die(self, name: str, kind: str) -> None:
        """The decision is in the journal, and nobody has acted on it."""
        with self.world.deciding():
            if self.world.controller.queries.running.get(name):
                self.world.controller.queries.withdraw(name)
            else:
                self.world.controller.queries.submit([submission(name, kind)])
        self.world.crash()

    # --- batches -----------------------------------------------------------------------------------------------------

    def carrier(self, data: st.DataObject) -> tuple[str, Carrier]:
        running = {name: carrier for name, carrier in self.world.carriers.items() if carrier.running}
        name = data.draw(st.sampled_from(sorted(running)))
        return name, running[name]

    def some_run(self) -> bool:
        return any(carrier.running for carrier in self.world.carriers.values())

    def draw_times(self, data: st.DataObject, carrier: Carrier) -> list[list[int]]:
        """Of each input; each has its own time.

        Some are late, unless they would have to bound what nobody has heard of (runs.py).
        """
        drawn = []
        for n in range(carrier.inputs):
            newest = carrier.newest(n)
            jumps = data.draw(JUMPS)
            if carrier.inputs == 1 or carrier.has_times:
                jumps += data.draw(st.lists(LATE, max_size=1))
            drawn.append([START_S * SECOND if newest is None else newest + jump for jump in jumps])
        return drawn

    def some_join(self) -> bool:
        return any(carrier.running and carrier.inputs > 1 for carrier in self.world.carriers.values())

    @precondition(some_join)
    @rule(data=st.data(), ahead=st.integers(0, 20))
    def tick(self, data: st.DataObject, ahead: int) -> None:
        """An input is silent: its event time goes on without tuples."""
        joins = [name for name, c in self.world.carriers.items() if c.running and c.inputs > 1]
        carrier = self.world.carriers[data.draw(st.sampled_from(sorted(joins)))]
        n = data.draw(st.integers(0, carrier.inputs - 1))
        carrier.ticks[n] = (carrier.newest(n) or START_S * SECOND) + ahead * SECOND

    @precondition(some_run)
    @rule(data=st.data(), heard=st.booleans(), more=st.booleans())
    def batch(self, data: st.DataObject, heard: bool, more: bool) -> None:
        name, carrier = self.carrier(data)
        oldest = data.draw(st.integers(carrier.read, len(carrier.tables) - 1))
        newest = data.draw(st.integers(oldest, len(carrier.tables) - 1))
        carrier.run_batch(name, self.draw_times(data, carrier), oldest, newest, more=more)
        if heard:
            self.world.hear(name)

    @precondition(some_run)
    @rule(data=st.data(), events=st.integers(1, 3))
    def hear(self, data: st.DataObject, events: int) -> None:
        self.world.hear(self.carrier(data)[0], events)

    @precondition(some_run)
    @rule(data=st.data())
    def miss(self, data: st.DataObject) -> None:
        """Spark keeps only so many reports."""
        _, carrier = self.carrier(data)
        del carrier.events[:-1]

    @rule(data=st.data(), carriers=st.sampled_from(CarrierKinds))
    def crash(self, data: st.DataObject, carriers: CarrierKinds) -> None:
        self.world.places.carriers = carriers  # the job file may say something else now
        self.world.crash()
        for name, carrier in self.world.carriers.items():
            # A batch that was heard of is committed, and never repeated.
            if carrier.running and len(carrier.batches) > carrier.heard and data.draw(st.booleans()):
                carrier.repeat_batch(name)

    @rule(data=st.data(), node=st.sampled_from(NODES))
    def lose_a_node(self, data: st.DataObject, node: str) -> None:
        """It does not answer; perhaps nobody has heard of its last batches, and the last of them is repeated."""
        taken = self.world.lose(node)
        for name in taken:
            carrier = self.world.carriers[name]
            if carrier.running and len(carrier.batches) > carrier.heard and data.draw(st.booleans()):
                carrier.repeat_batch(name)
        self.world.back(node)

    @rule(data=st.data(), seconds=st.sampled_from((AFTER_S / 2, AFTER_S)))
    def time_passes(self, data: st.DataObject, seconds: float) -> None:
        """Carriers that nobody needs stop; perhaps nobody hears of their last batches, or only after they go on."""
        before = {name for name, carrier in self.world.carriers.items() if carrier.running}
        self.now_s += seconds
        with self.world.deciding() as todo:
            todo += self.world.controller.unused.stop(self.now_s)
        for name in sorted(before):
            if not self.world.carriers[name].running and data.draw(st.booleans()):
                self.world.carriers[name].events.clear()

    @precondition(some_run)
    @rule(data=st.data(), written=st.booleans())
    def fail(self, data: st.DataObject, written: bool) -> None:
        """The runtime starts a carrier again that failed, perhaps with the results of a batch written."""
        name, carrier = self.carrier(data)
        self.world.hear(name)
        carrier.starting = True
        if written:
            table = len(carrier.tables) - 1
            carrier.run_batch(name, self.draw_times(data, carrier), table, table)
            carrier.events.clear()
            self.submit(data.draw(NAMES), data.draw(KINDS), NOW)
            carrier.starting = True
            carrier.repeat_batch(name)

    @precondition(some_run)
    @rule(data=st.data(), heard=st.booleans())
    def set_aside(self, data: st.DataObject, heard: bool) -> None:
        """A carrier fails with some of its fragments; perhaps nobody has heard of its last batches."""
        name, carrier = self.carrier(data)
        if heard:
            self.world.hear(name)
            self.queries_answer_from_when_they_were_asked_to()  # by what was there before the carrier starts anew
        carrier.events.clear()
        carrier.running = False
        guilty = [f for f in self.world.controller.calculated(name) if data.draw(st.booleans())]
        self.world.set_aside(name, guilty)
        assert not set(guilty) & set(self.world.controller.calculated(name)), "the carrier would fail again"

    @precondition(some_run)
    @rule(data=st.data())
    def flow(self, data: st.DataObject) -> None:
        """When data flows and is heard of, no query waits for longer than two batches."""
        name, carrier = self.carrier(data)
        self.world.hear(name)
        for _ in range(2):
            self.world.batch(name, *([(carrier.newest(n) or START_S * SECOND) + SECOND] for n in range(carrier.inputs)))
        waiting = [f for f in self.world.controller.state.fragments.values() if f.status is FragmentStatus.JOINING]
        assert not [f for f in waiting if f.carrier == name]

    @precondition(some_run)
    @rule(data=st.data())
    def flow_on_one_input(self, data: st.DataObject) -> None:
        """Where no report is missing, no query waits for an input that is silent."""
        name, carrier = self.carrier(data)
        self.world.hear(name)
        record = self.world.controller.state.carriers[name]
        if record.sure and not carrier.starting:
            first, others = (carrier.newest(0) or START_S * SECOND) + SECOND, range(1, carrier.inputs)
            self.world.batch(name, [first], *([] for _ in others))
            waiting = [f for f in self.world.controller.state.fragments.values() if f.status is FragmentStatus.JOINING]
            assert not [f for f in waiting if f.carrier == name]

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_lost(self) -> None:
        assert not losses(self.world)

    @invariant()
    def queries_answer_from_when_they_were_asked_to(self) -> None:
        for (query, branch), (start, known) in self.asked.items():
            part = self.world.controller.state.parts.get((query, branch, 0))
            if (query, branch) in self.begun or part is None or not part.settled:
                continue
            self.begun.add((query, branch))
            if part.until_us == BEGINNING_US:
                continue  # it left before it began
            if not start.now:
                assert part.from_us == start.us
                continue
            carrier = self.world.carriers[self.carrier_of(part)]
            before = [*carrier.backlog, *([known] if known is not None else [])]
            assert carrier.caught_up
            assert part.from_us is None or part.from_us > max(before, default=part.from_us - 1)
            assert part.from_us is not None or not before

    @invariant()
    def turns_follow_each_other(self) -> None:
        """Every result of a query has one owner: a turn ends where the next begins."""
        state = self.world.controller.state
        for part in state.parts.values():
            following = state.parts.get((part.query, part.branch, part.turn + 1))
            if following is None:
                assert part.handed_over_us is None
            else:
                assert part.handed_over_us is not None and following.from_us is not None
                assert following.from_us == max(part.handed_over_us, part.from_us or part.handed_over_us)
                assert (following.until_us, following.ceded_us) == (part.until_us, part.ceded_us)

    @invariant()
    def nothing_is_held_back_without_a_fence(self) -> None:
        state = self.world.controller.state
        fences = {m.source: m.fence_us for m in state.moves.values() if m.step is MoveStep.FENCED}
        for part in state.parts.values():
            if not part.done:
                assert part.pending_fence_us == fences.get(part.fragment)
            else:
                assert part.pending_fence_us is None

    @invariant()
    def the_journal_knows_everything(self) -> None:
        state, written = self.world.controller.state, self.world.everything
        for kind in ("carriers", "fragments", "parts", "queries", "moves", "nodes"):
            mine, all_of_them = getattr(state, kind), getattr(written, kind)
            assert {key: all_of_them[key] for key in mine} == mine

    @rule()
    def forget_what_is_over(self) -> None:
        controller = self.world.controller
        dropped = controller.forgetting.drop()
        self.world.journal.archive.forget(None, dropped)
        self.world.unread = True
        live = self.world.journal.load()
        assert (live.queries, live.parts) == (controller.state.queries, controller.state.parts)
        assert live.fragments.keys() <= controller.state.fragments.keys()

    @invariant()
    def what_is_needed_runs(self) -> None:
        for fragment in self.world.controller.state.fragments.values():
            if not fragment.status.is_over:
                assert self.world.carriers[fragment.carrier].running

    @invariant()
    def the_table_has_what_stands(self) -> None:
        for name, carrier in self.world.carriers.items():
            fragments = self.world.controller.state.fragments.values()
            alive = {
                f.id
                for f in fragments
                if f.carrier == name and f.status in (FragmentStatus.JOINING, FragmentStatus.LIVE)
            }
            # A carrier that was not needed after a restart still has the table of before.
            assert carrier.tables[-1].fragments == alive or not carrier.running

    @invariant()
    def who_was_set_aside_owes_nothing(self) -> None:
        """Windows that were open never close: their query does not answer for them."""
        state = self.world.controller.state
        for part in state.parts.values():
            fragment = state.fragments[part.fragment]
            if part.windowed and fragment.status is FragmentStatus.BANNED:
                watermark = self.world.carriers[fragment.carrier].watermark
                assert part.until_us is not None
                closed = part.until_us == BEGINNING_US or (watermark is not None and part.until_us <= watermark)
                assert closed or (part.from_us is not None and part.until_us <= part.from_us)

    @invariant()
    def no_window_is_forgotten(self) -> None:
        """A fragment is done with when the windows it answers for are closed."""
        state = self.world.controller.state
        for part in state.parts.values():
            fragment = state.fragments[part.fragment]
            end_us = part.end_us
            if part.windowed and end_us not in (None, BEGINNING_US) and fragment.status is FragmentStatus.GONE:
                watermark = self.world.carriers[fragment.carrier].watermark
                ends = [(end_us or 0) + (fragment.span_us if part.until_us is None else 0)]
                if part.handed_over_us is not None:  # what begins behind the fence is another's
                    ends.append(part.handed_over_us + fragment.span_us)
                assert watermark is not None and watermark >= min(ends)


class Moving(Decisions):
    """The same, begun in the middle: queries that stand on one node and are on their way to the other."""

    @initialize(
        kinds=st.lists(KINDS, min_size=1, max_size=3, unique=True), moved=st.integers(1, 3), in_place=st.booleans()
    )
    def begin(self, kinds: list[str], moved: int, in_place: bool) -> None:
        names = [f"q{n}" for n in range(1, len(kinds) + 1)]
        self.world.submit(*(submission(name, kind) for name, kind in zip(names, kinds, strict=True)))
        for name, carrier in self.world.carriers.items():
            for second in (START_S, START_S + 9):
                self.world.batch(name, *([second * SECOND] for _ in range(carrier.inputs)))
        for name in names[:moved]:
            with suppress(MoveRefused):  # a fragment that two of them share moves once
                if in_place:
                    self.world.change_carrier(name, self.other_kind(name))
                else:
                    self.world.move(name, NODES[1])

    def other_kind(self, name: str) -> CarrierKinds:
        """The kind of carrier that a query's first fragment is not in."""
        (now, *_) = self.world.parts(name)
        family = self.world.controller.state.carriers[self.carrier_of(now)].template.family
        return CarrierKinds.COMPILED if family.universal else CarrierKinds.UNIVERSAL


Moving.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestMoving = Moving.TestCase
Decisions.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestDecisions = Decisions.TestCase
