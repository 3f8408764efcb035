"""Moves of fragments between nodes: decides when a step of `fence.py` is taken, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from towpath.control.fence import UNDECIDED, Happening, Step, after
from towpath.control.history import STEPS, Kind, event_text
from towpath.control.ledger import Instruction, Ledger
from towpath.control.records import BEGINNING_US, FragmentRecord, MoveRecord, PartRecord, Status
from towpath.errors import MoveRefused
from towpath.plan.assignment import group_columns, log_columns
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import template_of
from towpath.runtime.carriers import BatchDone

# A fence lies so many micro-batches ahead of what was read, by the event time that the last ones took in.
AHEAD_BATCHES = 2
LEAST_AHEAD_US = 1


class Moves:
    def __init__(self, ledger: Ledger, decide: Callable[[PartRecord], None]) -> None:
        self._ledger = ledger
        self._settle = decide  # from when on a part answers that does not know yet
        self._ids = count(ledger.state.last_number("moves") + 1)
        self._pace_us: dict[str, int] = {}  # event time that recent micro-batches of a carrier took in

    def begin(self, source: FragmentRecord, pipeline: Pipeline, node: str, reason: str) -> list[Instruction]:
        """Starts a move. Raises MoveRefused when it is impossible now; nothing has changed then."""
        ledger = self._ledger
        self.refuse_nonsense(source, node)
        template = template_of(pipeline)
        target = ledger.reusable(pipeline, node)
        touched: list[str] = []
        if target is None:
            if ledger.covering(template, node) is None:
                ledger.new_carriers([template], node)
            target = ledger.new_fragment(pipeline, node)
            touched.append(target.carrier)
        ledger.unshare(source)
        template = ledger.carrier_of(target).template
        columns, keys = tuple(log_columns(pipeline, template)), tuple(group_columns(pipeline, template))
        move = MoveRecord(next(self._ids), source.id, target.id, columns, reason, keys=keys)
        ledger.state.moves[move.id] = ledger.moves[move.id] = move
        ledger.note(move)
        here = ledger.carrier_of(source).node
        there = node if node != here else f"carrier {target.carrier} of the same node"
        text = f"fragment {source.id} ({ledger.used_by(source)}) sets out from {here} to {there}: {reason}"
        ledger.tell(Kind.MOVE_BEGUN, text, fragment=source.id, nodes=(here, node))
        return [*ledger.publish(touched), *ledger.start(touched)]

    def refuse_nonsense(self, source: FragmentRecord, node: str) -> None:
        ledger = self._ledger
        if (refusal := ledger.refusal(node)) is not None:
            raise MoveRefused(refusal)
        if ledger.carrier_of(source).node == node and not ledger.carrier_of(source).past:
            raise MoveRefused(f"fragment {source.id} is on node {node} already")
        if source.status is not Status.LIVE:
            raise MoveRefused(f"fragment {source.id} is {source.status}; a fragment moves once it is live")
        if any(source.id in (m.source, m.target) for m in ledger.moves.values()):
            raise MoveRefused(f"fragment {source.id} is on its way already; wait until that move is done")

    def copied_on(self, source: FragmentRecord, node: str) -> str | None:
        """A query of which this fragment is one copy, and another one is on that node."""
        state = self._ledger.state
        for part in self._ledger.users.get(source.id, []):
            twins = (p for p in state.parts_of(part.query) if p.select == part.select and p.branch != part.branch)
            if any(self._ledger.node_of(twin.fragment) == node for twin in twins):
                return state.queries[part.query].name
        return None

    def abandon(self, move: MoveRecord, reason: str) -> list[Instruction]:
        """Back to where it was; possible until the fence is passed."""
        ledger = self._ledger
        self._take(move, Happening.ABANDON, reason)
        source, target = ledger.state.fragments[move.source], ledger.state.fragments[move.target]
        self._hold(source, None)
        if source.status is Status.LIVE:
            ledger.share(source)
        if ledger.users.get(target.id):
            return []
        ledger.leave(target, None, owed=False)
        return ledger.publish([target.carrier])

    def cut_short(self, move: MoveRecord) -> None:
        """The source is given up although it was not done."""
        self._take(move, Happening.DRAINED)

    def without(self, fragment: FragmentRecord) -> list[Instruction]:
        """A fragment that nobody uses any more has left: its move has no sense any more."""
        concerned = [m for m in self._ledger.moves.values() if m.source == fragment.id and m.step in UNDECIDED]
        return [i for move in concerned for i in self.abandon(move, "no query uses it any more")]

    def is_target(self, fragment: FragmentRecord) -> bool:
        """Whether a fragment is to be kept although nobody uses it yet."""
        return any(m.target == fragment.id and m.step in UNDECIDED for m in self._ledger.moves.values())

    # --- time passes -------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone, before_us: int | None, newest_before_us: int | None) -> list[Instruction]:
        """`before_us`: how far the batches had come before the version that this one reports was in force."""
        self._keep_pace(event, newest_before_us)
        found: list[Instruction] = []
        for move in list(self._ledger.moves.values()):
            match move.step:
                case Step.WARMING:
                    found += self._set_off(move)
                case Step.FENCED:
                    found += self._decide(move, event, before_us)
                case Step.DRAINING:
                    found += self._finish(move)
        return found

    def _keep_pace(self, event: BatchDone, newest_before_us: int | None) -> None:
        newest = self._ledger.state.carriers[event.carrier].newest_us
        took = 0 if newest is None or newest_before_us is None else newest - newest_before_us
        self._pace_us[event.carrier] = max(took, self._pace_us.get(event.carrier, 0) // 2)

    def _set_off(self, move: MoveRecord) -> list[Instruction]:
        source, target = self._ledger.state.fragments[move.source], self._ledger.state.fragments[move.target]
        if target.status is not Status.LIVE or not self._caught_up(source, target):
            return []
        published = self._fence(move, source, target)
        self._take(move, Happening.READY)
        return published

    def _caught_up(self, source: FragmentRecord, target: FragmentRecord) -> bool:
        there, here = self._ledger.carrier_of(source).newest_us, self._ledger.carrier_of(target).newest_us
        if there is None or here is None:
            return there is None
        return here >= there - self._pace_us.get(source.carrier, 0)

    def _fence(self, move: MoveRecord, source: FragmentRecord, target: FragmentRecord) -> list[Instruction]:
        """Ahead of everything that both have read, and of what the target answers for."""
        carriers = [self._ledger.carrier_of(f) for f in (source, target)]
        known = [c.newest_us for c in carriers] + [target.from_us]
        reached = max((t for t in known if t is not None), default=BEGINNING_US)
        pace = max(self._pace_us.get(c.id, 0) for c in carriers)
        # Each missed fence was too near, so the next one lies twice as far ahead.
        move.fence_us = reached + max(LEAST_AHEAD_US, AHEAD_BATCHES * pace << move.fences)
        move.fences += 1
        move.version = carriers[0].version + 1
        self._ledger.note(move)
        self._hold(source, move.fence_us)
        return self._ledger.publish([source.carrier])

    def _decide(self, move: MoveRecord, event: BatchDone, before_us: int | None) -> list[Instruction]:
        source, target = self._ledger.state.fragments[move.source], self._ledger.state.fragments[move.target]
        sure = self._ledger.state.carriers[event.carrier].sure
        assert move.version is not None and move.fence_us is not None, "set with the fence"
        if event.carrier != source.carrier or not sure or event.version is None or event.version < move.version:
            return []
        if before_us is not None and before_us >= move.fence_us:
            self._take(move, Happening.MISSED)
            return self._fence(move, source, target)
        self._take(move, Happening.PASSED)
        self._hand_over(move, move.fence_us)
        return []

    def _hand_over(self, move: MoveRecord, fence_us: int) -> None:
        ledger = self._ledger
        for part in ledger.users.pop(move.source, []):
            names = tuple((out, name) for (out, _), name in zip(part.columns, move.columns, strict=True))
            if not part.settled:
                ledger.change_seat(part, move.target, move.columns, move.keys)
                self._settle(part)
                continue
            part.moved_us, part.held_us, part.done = fence_us, None, True
            begin = fence_us if part.from_us is None else max(fence_us, part.from_us)
            turn = replace(
                part,
                turn=part.turn + 1,
                fragment=move.target,
                columns=names,
                keys=move.keys,
                from_us=begin,
                moved_us=None,
                held_us=None,
                deciding=None,  # what it hands out, it hands out with an end that only rises
                done=False,
            )
            ledger.add_part(turn)
            ledger.note(part)
            ledger.note(turn)

    def _finish(self, move: MoveRecord) -> list[Instruction]:
        """The source has seen all that its results are made of when its input is complete up to there."""
        source = self._ledger.state.fragments[move.source]
        assert move.fence_us is not None, "set with the fence"
        owed_us = move.fence_us + source.span_us
        complete = self._ledger.carrier_of(source).complete_us
        if complete is None or complete < owed_us:
            return []
        self._take(move, Happening.DRAINED)
        self._ledger.leave(source, owed_us, owed=source.span_us > 0)
        return self._ledger.publish([source.carrier])

    def _hold(self, source: FragmentRecord, fence_us: int | None) -> None:
        for part in self._ledger.users.get(source.id, []):
            part.held_us = fence_us
            self._ledger.note(part)

    def _take(self, move: MoveRecord, happening: Happening, reason: str = "") -> None:
        move.step = after(move.step, happening)
        self._tell(move, happening, reason)
        if move.step in (Step.DONE, Step.ABANDONED):
            del self._ledger.moves[move.id]
        self._ledger.note(move)

    def _tell(self, move: MoveRecord, happening: Happening, reason: str) -> None:
        source, target = self._ledger.state.fragments[move.source], self._ledger.state.fragments[move.target]
        here, there = self._ledger.carrier_of(source).node, self._ledger.carrier_of(target).node
        fence = event_text(move.fence_us)
        said = {
            Happening.READY: f"has caught up on {there}; fence {move.fences} at {fence}",
            Happening.PASSED: f"answers from {there} for what begins at {fence} or later, from {here} for the rest",
            Happening.MISSED: f"was read past {fence} on {here} before the fence was in force; a later one is tried",
            Happening.DRAINED: f"is done on {here}; on {there} it is fragment {target.id}",
            Happening.ABANDON: f"stays on {here}: {reason}",
        }
        self._ledger.tell(
            STEPS[happening], f"fragment {source.id} {said[happening]}", fragment=source.id, nodes=(here, there)
        )
