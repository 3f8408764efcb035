"""Queries that leave, because they are withdrawn or because another version replaces them. Decides; does nothing.

What was handed out is never taken back. A query that leaves gets an end T behind everything that anybody can have been
given of it, and its fragments stay in their tables until their inputs are complete up to there:
- T lies just behind the newest event time that was heard of; of an aggregate also not before the watermark, since
  ticks may have closed windows that end behind the newest tuple. Micro-batches that nobody has heard of may have come
  further, so the tables get a new version that changes nothing: the first micro-batch that reports it shows how far
  those before had come, and T rises to that. Until then whoever follows the results waits with those behind T.
- One that is withdrawn answers for results before T.
- One with sessions, of which nobody knows how long they last, answers in both cases for those that are over before T.
- One that is replaced goes on until all fragments of the next version are live. T is then not before the event times
  that those answer for. Results whose earliest tuple is older than T are the old version's, the others the new one's,
  so that each has one owner. A version that is itself replaced before that never answers for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from towpath.control.decide.links import Links
from towpath.control.decide.moves import Moves
from towpath.control.state.controller_state import ControllerState, Instruction
from towpath.control.state.records import BEGINNING_US, FragmentRecord, FragmentStatus, PartRecord, QueryRecord
from towpath.runtime.carriers import BatchDone
from towpath.schema import LINK


class Endings:
    def __init__(self, known: ControllerState, moves: Moves, links: Links, running: dict[str, QueryRecord]) -> None:
        self._known = known
        self._state = known.state
        self._moves = moves
        self._links = links
        self._running = running
        queries = self._state.queries
        needed = {part.query for parts in known.users.values() for part in parts}
        self.leaving = {number: queries[number] for number in sorted(needed) if not queries[number].running}
        self._successors: dict[int, int] = {}  # by the version that leaves, the one that will take over from it
        for query in running.values():
            if query.replaces in self.leaving and not any(p.settled for p in self._state.parts_of(query.id)):
                self._successors[query.replaces] = query.id

    def waits(self, query: int) -> bool:
        """Whether a query is to begin where the version before it ends."""
        return query in self._successors.values()

    def undecided(self) -> set[str]:
        """The carriers that have yet to report how far they had come."""
        turns = (turn for number in self.leaving for turn in self._state.all_turns(number))
        return {self._fragment(turn).carrier for turn in turns if turn.deciding is not None}

    # --- leaving -----------------------------------------------------------------------------------------------------

    def withdraw(self, query: QueryRecord) -> list[Instruction]:
        del self._running[query.name]
        query.running = False
        self._known.note(query)
        if query.origin == LINK:
            return self.drop(query)  # nobody reads it any more
        before = self._before(query)
        if before is None:
            return self._end(query, ceded=False)
        self._forget(query, before)
        return [*self.drop(query), *self._end(before, ceded=False)]

    def give_up(self, query: QueryRecord) -> list[Instruction]:
        """A query must leave now, since its carrier fails with it: it ends where it is, complete or not."""
        found: list[Instruction] = []
        if query.id not in self.leaving:
            return found
        successor = self._successors.get(query.id)
        if any(part.end_us is None for part in self._state.parts_of(query.id)):
            found += self._end(query, ceded=False)
        for turn in self._state.all_turns(query.id):
            turn.deciding = None
            self._known.note(turn)
        if successor is not None and self._is_live(successor):
            self._take_over(query, successor)
        self._successors.pop(query.id, None)  # begins when it can
        failing = [part for part in self._state.parts_of(query.id) if not part.done]
        self.end_where_complete(query, [part for part in failing if part.windowed])
        for part in failing:
            found += self._ban(part) if part.windowed else self._let_go(part, self._owed_us(part))
        if query.id in self.leaving:
            found += self._finish(query)
        return found

    def end_where_complete(self, query: QueryRecord, failing: Sequence[PartRecord]) -> None:
        """Windows of parts that are still open fail when they close: those that have closed are all there will be."""
        complete_us = min(map(self._complete_us, failing), default=None)
        for turn in self._state.all_turns(query.id):
            if complete_us is not None and (turn.until_us is None or turn.until_us > complete_us):
                turn.until_us = complete_us
                self._known.note(turn)

    def complete_us(self, query: QueryRecord) -> int:
        """Up to when a query that leaves at once has all its results."""
        return min(self._complete_us(part) for part in self._state.parts_of(query.id))

    def _complete_us(self, part: PartRecord) -> int:
        """Tuples before that are in; of windows those that are closed."""
        carrier = self._known.carrier_of(self._fragment(part))
        known = [carrier.complete_us, *([carrier.watermark_us] if part.windowed else [])]
        if None in known:
            return BEGINNING_US
        return min(us for us in known if us is not None) - (not self._can_be_ceded(part))

    def _ban(self, part: PartRecord) -> list[Instruction]:
        part.done = True
        fragment = self._left_alone(part)
        if fragment is None:
            return []
        self._known.ban(fragment)
        return [*self._known.publish([fragment.carrier]), *self._moves.without(fragment)]

    def replace(self, old: QueryRecord, new: QueryRecord) -> QueryRecord | None:
        """Lets a version take over from the one that runs; returns the one to be dropped, since it never began."""
        old.running = False
        self._known.note(old)
        begun = any(part.settled for part in self._state.parts_of(old.id))
        before = old if begun else self._before(old)
        if before is not None:
            if not begun:
                self._forget(old, before)
            self.leaving[before.id] = before
            self._successors[before.id] = new.id
            new.replaces = before.id
        return None if begun else old

    def _before(self, query: QueryRecord) -> QueryRecord | None:
        """The version that a query waits for to end."""
        waits = query.replaces is not None and self._successors.get(query.replaces) == query.id
        return self._state.queries[query.replaces] if waits and query.replaces is not None else None

    def _forget(self, query: QueryRecord, before: QueryRecord) -> None:
        """A query does not take over after all. Where the one before ends is decided anew, so nothing is taken back."""
        del self._successors[before.id]
        query.replaces, query.series = None, query.id
        self._known.note(query)
        for turn in self._state.all_turns(before.id):
            if turn.until_us is None or not self._can_be_ceded(turn):
                turn.ceded_us = turn.until_us = turn.deciding = None
                self._known.note(turn)

    def _end(self, query: QueryRecord, *, ceded: bool, least_us: int = BEGINNING_US) -> list[Instruction]:
        """Sets the end, for now. It is the same for all that answer the query: copies, SELECTs and their turns."""
        found = [i for part in self._state.parts_of(query.id) if not part.settled for i in self._let_go(part, None)]
        turns = [turn for turn in self._state.all_turns(query.id) if turn.until_us is None]
        reached = [self._known.carrier_of(self._fragment(turn)).newest_us for turn in turns]
        ending = [turn for turn in turns if not (ceded and self._can_be_ceded(turn))]
        closed = [us for turn in ending if (us := self._closed_us(turn)) is not None]
        end_us = max([us + 1 for us in reached if us is not None] + closed + [least_us])
        carriers: dict[str, None] = {}
        for turn in turns:
            turn.ceded_us, turn.until_us = (None, end_us) if turn in ending else (end_us, None)
            if self._fragment(turn).status is FragmentStatus.LIVE:
                carrier = self._known.carrier_of(self._fragment(turn))
                turn.deciding = carrier.version + 1
                carriers[carrier.id] = None
            self._known.note(turn)
        self.leaving[query.id] = query
        found += self._known.publish(carriers)
        for fragment in dict.fromkeys(turn.fragment for turn in turns if not turn.done):
            if all(part.end_us is not None for part in self._known.users[fragment]):
                found += self._moves.without(self._state.fragments[fragment])
        return [*found, *self._finish(query)]

    def drop(self, query: QueryRecord) -> list[Instruction]:
        """A query that never answered anybody for anything leaves at once."""
        found: list[Instruction] = []
        for part in self._state.parts_of(query.id):
            for turn in self._state.turns(query.id, part.branch):
                turn.until_us, turn.pending_fence_us = BEGINNING_US, None
                self._known.note(turn)
            found += self._let_go(part, None)
        self.leaving[query.id] = query
        return [*found, *self._finish(query)]

    # --- time passes -------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone, before_us: int | None) -> list[Instruction]:
        """`before_us`: how far the batches had come before the version that this one reports was in force."""
        version = event.version if self._state.carriers[event.carrier].sure else None
        newest_us = self._state.carriers[event.carrier].newest_us
        for query in self.leaving.values():
            for turn in self._deciding(query, event.carrier):
                decided = version is not None and turn.deciding is not None and version >= turn.deciding
                self._raise(query, turn, before_us if decided else newest_us, decided=decided)
        return self._go_on()

    def rest(self, carrier: str) -> list[Instruction]:
        """A carrier is at rest, with all its batches heard of: the next one reads the table of now."""
        untouched = self._state.carriers[carrier].last < 0
        if not untouched and not self._state.carriers[carrier].sure:
            return []
        for query in self.leaving.values():
            for turn in self._deciding(query, carrier):
                self._raise(query, turn, self._state.carriers[carrier].newest_us, decided=True)
        return self._go_on()

    def heard_of_all(self, carriers: Sequence[str]) -> list[Instruction]:
        """Carriers that have not been started yet: the end of those who leave is set, then it is certain."""
        return [instruction for _ in range(2) for carrier in carriers for instruction in self.rest(carrier)]

    def _deciding(self, query: QueryRecord, carrier: str) -> list[PartRecord]:
        turns = self._state.all_turns(query.id)
        return [t for t in turns if t.deciding is not None and self._fragment(t).carrier == carrier]

    def _raise(self, query: QueryRecord, turn: PartRecord, reached_us: int | None, *, decided: bool) -> None:
        if decided:
            turn.deciding = None
            self._known.note(turn)
        closed_us = self._closed_us(turn) if turn.until_us is not None else None
        behind = [us for us in (None if reached_us is None else reached_us + 1, closed_us) if us is not None]
        least_us = max(behind, default=BEGINNING_US)
        for other in self._state.all_turns(query.id):
            if other.end_us is not None and other.end_us < least_us and not self._dropped(other):
                other.ceded_us, other.until_us = (least_us, None) if other.until_us is None else (None, least_us)
                self._known.note(other)

    def _closed_us(self, turn: PartRecord) -> int | None:
        """Windows that end by then may have been handed out."""
        return self._known.carrier_of(self._fragment(turn)).watermark_us if turn.windowed else None

    def _dropped(self, part: PartRecord) -> bool:
        """Whether a part left before it began. Earlier turns are done since they handed over."""
        last = self._state.turns(part.query, part.branch)[-1]
        return last.done and last.until_us == BEGINNING_US

    def _go_on(self) -> list[Instruction]:
        found: list[Instruction] = []
        for query in list(self.leaving.values()):
            parts = self._state.parts_of(query.id)
            successor = self._successors.get(query.id)
            if successor is not None and all(part.end_us is None for part in parts):
                found += self._cede(query, successor)
                continue
            if any(turn.deciding is not None for turn in self._state.all_turns(query.id)):
                continue
            if successor is not None:
                self._take_over(query, successor)
            for part in parts:
                if not part.done and self._is_complete(part):
                    found += self._let_go(part, self._owed_us(part))
            found += self._finish(query)
        return found

    def _cede(self, query: QueryRecord, successor: int) -> list[Instruction]:
        if not self._is_live(successor):
            return []
        fragments = [self._fragment(turn) for turn in self._state.all_turns(successor)]
        begins = [fragment.from_us for fragment in fragments if fragment.from_us is not None]
        return self._end(query, ceded=True, least_us=max(begins, default=BEGINNING_US))

    def _is_live(self, query: int) -> bool:
        return all(self._fragment(part).status is FragmentStatus.LIVE for part in self._state.parts_of(query))

    def _take_over(self, query: QueryRecord, successor: int) -> None:
        del self._successors[query.id]
        ends = [part.end_us for part in self._state.parts_of(query.id)]
        begin_us = max((us for us in ends if us is not None), default=BEGINNING_US)
        # A part that is not settled yet has one turn, wherever it has moved (moves.py).
        for part in self._state.parts_of(successor):
            part.from_us, part.settled = begin_us, True
            self._known.note(part)

    # --- done --------------------------------------------------------------------------------------------------------

    def _owed_us(self, part: PartRecord) -> int:
        """Up to when the input of a part must be complete."""
        assert part.end_us is not None, "it leaves"
        if not self._can_be_ceded(part):
            return part.end_us + 1  # a tuple at the end of a session is part of it
        return part.end_us + (self._fragment(part).span_us if part.until_us is None else 0)

    def drained(self) -> list[Instruction]:
        """All that the streams have was read and all windows are closed: those who leave wait for nothing any more."""
        found: list[Instruction] = []
        for query in list(self.leaving.values()):
            turns = self._state.all_turns(query.id)
            if query.id in self._successors or any(turn.deciding is not None for turn in turns):
                continue
            for part in self._state.parts_of(query.id):
                if not part.done and self._has_moved(part):
                    found += self._let_go(part, self._owed_us(part))
            found += self._finish(query)
        return found

    def _is_complete(self, part: PartRecord) -> bool:
        if part.end_us == BEGINNING_US:
            return True
        complete_us = self._known.carrier_of(self._fragment(part)).complete_us
        return self._has_moved(part) and complete_us is not None and complete_us >= self._owed_us(part)

    def _has_moved(self, part: PartRecord) -> bool:
        """Whether those who had their turn before are done."""
        earlier = self._state.turns(part.query, part.branch)[:-1]
        return all(self._fragment(turn).status is not FragmentStatus.LIVE for turn in earlier)

    def _let_go(self, part: PartRecord, owed_us: int | None) -> list[Instruction]:
        """A part needs its fragment no more, but for the windows that close by then; None: it never began."""
        if owed_us is None:
            part.until_us = BEGINNING_US
        # All that it owes is in this fragment's log, so a fence that is not decided yet does not concern it.
        part.pending_fence_us, part.settled, part.done = None, True, True
        fragment = self._left_alone(part)
        if fragment is None:
            return []
        self._known.leave(fragment, owed_us, owed=part.windowed and owed_us not in (None, BEGINNING_US))
        return [*self._known.publish([fragment.carrier]), *self._moves.without(fragment)]

    def _left_alone(self, part: PartRecord) -> FragmentRecord | None:
        """The fragment of a part that is done, if nobody else needs it."""
        self._known.note(part)
        fragment = self._fragment(part)
        users = self._known.users[fragment.id]
        users.remove(part)
        return None if users or self._moves.is_target(fragment) else fragment

    def _finish(self, query: QueryRecord) -> list[Instruction]:
        if not all(part.done for part in self._state.parts_of(query.id)):
            return []
        del self.leaving[query.id]
        self._known.ended[query.id] = None
        unread: Iterable[str] = self._links.leave(query)
        return [i for name in unread if name in self._running for i in self.withdraw(self._running[name])]

    def _can_be_ceded(self, part: PartRecord) -> bool:
        """Whether it is known until when what it has begun goes on."""
        return not self._known.has_sessions(self._fragment(part))

    def _fragment(self, part: PartRecord) -> FragmentRecord:
        return self._state.fragments[part.fragment]
