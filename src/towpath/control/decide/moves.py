"""Moves of fragments between nodes: decides when a step of `fence.py` is taken, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count

from towpath.control.decide.kinds import asked_for, for_move
from towpath.control.state.controller_state import ControllerState, Instruction
from towpath.control.state.fence import UNDECIDED, MoveEvent, MoveStep, after
from towpath.control.state.history import STEPS, EventKind, event_text, place_text
from towpath.control.state.records import BEGINNING_US, FragmentRecord, FragmentStatus, MoveRecord, PartRecord
from towpath.errors import MoveRefused
from towpath.plan import CarrierKinds
from towpath.plan.assignment import group_columns, renamed_columns
from towpath.plan.templates import Template
from towpath.runtime.carriers import BatchDone

# A fence lies so many micro-batches ahead of what was read, by the event time that the last ones took in.
AHEAD_BATCHES = 2
LEAST_AHEAD_US = 1


class Moves:
    def __init__(self, known: ControllerState, decide: Callable[[PartRecord], None]) -> None:
        self._known = known
        self._settle = decide  # from when on a part answers that does not know yet
        self._ids = count(known.state.last_number("moves") + 1)
        self._pace_us: dict[str, int] = {}  # event time that recent micro-batches of a carrier took in

    def begin(
        self, source: FragmentRecord, node: str, reason: str, carriers: CarrierKinds | None = None
    ) -> list[Instruction]:
        """Starts a move, perhaps to a carrier of another kind on the same node.

        Raises MoveRefused when it is impossible now; nothing has changed then.
        """
        known = self._known
        self.refuse_impossible(source, node, carriers)
        pipeline = known.used(source)
        if carriers is None:
            kind = for_move(known, pipeline, node, known.carrier_of(source))
        else:
            kind = asked_for(pipeline, carriers)
        target = known.reusable(pipeline, node, carriers)
        touched: list[str] = []
        if target is None:
            carrier = known.covering(kind.template, node) or known.new_carriers([kind.template], node)[0]
            target = known.new_fragment(pipeline, carrier)
            touched.append(target.carrier)
        known.unshare(source)
        before, template = known.carrier_of(source).template, known.carrier_of(target).template
        columns = tuple(sorted(renamed_columns(pipeline, before, template).items()))
        keys = tuple(group_columns(pipeline, template))
        move = MoveRecord(next(self._ids), source.id, target.id, columns, reason, keys=keys)
        known.state.moves[move.id] = known.moves[move.id] = move
        known.note(move)
        here, there = self._places(source, target)
        text = f"fragment {source.id} ({known.used_by(source)}) sets out from {here} to {there}: {reason}"
        nodes = (known.carrier_of(source).node, node)
        known.add_history(EventKind.MOVE_BEGUN, text, fragment=source.id, nodes=nodes)
        return [*known.publish(touched), *known.start(touched)]

    def make_room(self, fragments: Iterable[FragmentRecord], carriers: CarrierKinds) -> None:
        """As few carriers of a kind as possible, for all that are about to change to it where they are."""
        known, wanted = self._known, dict[str, list[Template]]()
        for fragment in fragments:
            node, kind = known.node_of(fragment.id), asked_for(known.used(fragment), carriers)
            if known.covering(kind.template, node) is None:
                wanted.setdefault(node, []).append(kind.template)
        for node, templates in wanted.items():
            known.new_carriers(templates, node)

    def refuse_impossible(self, source: FragmentRecord, node: str, carriers: CarrierKinds | None = None) -> None:
        known, here = self._known, self._known.carrier_of(source)
        if (refusal := known.refusal(node)) is not None:
            raise MoveRefused(refusal)
        if here.node == node and not here.past and carriers in (None, here.template.family.carriers):
            kind = "" if carriers is None else f", in a {carriers} carrier,"
            raise MoveRefused(f"fragment {source.id} is on node {node}{kind} already")
        if source.status is not FragmentStatus.LIVE:
            raise MoveRefused(f"fragment {source.id} is {source.status}; a fragment moves once it is live")
        if known.has_sessions(source):
            raise MoveRefused(
                f"fragment {source.id} has sessions, of which nobody knows how long they last: it stays where it is; "
                f"withdraw {known.used_by(source)} and submit it again to have it elsewhere"
            )
        if any(source.id in (m.source, m.target) for m in known.moves.values()):
            raise MoveRefused(f"fragment {source.id} is on its way already; wait until that move is done")

    def copied_on(self, source: FragmentRecord, node: str) -> str | None:
        """A query of which this fragment is one copy, and another one is on that node."""
        state = self._known.state
        for part in self._known.users.get(source.id, []):
            twins = (p for p in state.parts_of(part.query) if p.select == part.select and p.branch != part.branch)
            if any(self._known.node_of(twin.fragment) == node for twin in twins):
                return state.queries[part.query].name
        return None

    def abandon(self, move: MoveRecord, reason: str) -> list[Instruction]:
        """Back to where it was; possible until the fence is passed."""
        known = self._known
        self._take(move, MoveEvent.ABANDON, reason)
        source, target = known.state.fragments[move.source], known.state.fragments[move.target]
        self._hold(source, None)
        if source.status is FragmentStatus.LIVE:
            known.share(source)
        if known.users.get(target.id):
            return []
        known.leave(target, None, owed=False)
        return known.publish([target.carrier])

    def cut_short(self, move: MoveRecord) -> None:
        """The source is given up although it was not done."""
        self._take(move, MoveEvent.DRAINED)

    def without(self, fragment: FragmentRecord) -> list[Instruction]:
        """A fragment that nobody uses any more has left: its move has no sense any more."""
        concerned = [m for m in self._known.moves.values() if m.source == fragment.id and m.step in UNDECIDED]
        return [i for move in concerned for i in self.abandon(move, "no query uses it any more")]

    def is_target(self, fragment: FragmentRecord) -> bool:
        """Whether a fragment is to be kept although nobody uses it yet."""
        return any(m.target == fragment.id and m.step in UNDECIDED for m in self._known.moves.values())

    # --- time passes -------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone, before_us: int | None, newest_before_us: int | None) -> list[Instruction]:
        """`before_us`: how far the batches had come before the version that this one reports was in force."""
        self._keep_pace(event, newest_before_us)
        found: list[Instruction] = []
        for move in list(self._known.moves.values()):
            match move.step:
                case MoveStep.WARMING:
                    found += self._set_off(move)
                case MoveStep.FENCED:
                    found += self._decide(move, event, before_us)
                case MoveStep.DRAINING:
                    found += self._finish(move)
        return found

    def _keep_pace(self, event: BatchDone, newest_before_us: int | None) -> None:
        newest = self._known.state.carriers[event.carrier].newest_us
        took = 0 if newest is None or newest_before_us is None else newest - newest_before_us
        self._pace_us[event.carrier] = max(took, self._pace_us.get(event.carrier, 0) // 2)

    def _set_off(self, move: MoveRecord) -> list[Instruction]:
        source, target = self._known.state.fragments[move.source], self._known.state.fragments[move.target]
        if target.status is not FragmentStatus.LIVE or not self._caught_up(source, target):
            return []
        published = self._fence(move, source, target)
        self._take(move, MoveEvent.READY)
        return published

    def _caught_up(self, source: FragmentRecord, target: FragmentRecord) -> bool:
        there, here = self._known.carrier_of(source).newest_us, self._known.carrier_of(target).newest_us
        if there is None or here is None:
            return there is None
        return here >= there - self._pace_us.get(source.carrier, 0)

    def _fence(self, move: MoveRecord, source: FragmentRecord, target: FragmentRecord) -> list[Instruction]:
        """Ahead of everything that both have read, and of what the target answers for."""
        carriers = [self._known.carrier_of(f) for f in (source, target)]
        known = [c.newest_us for c in carriers] + [target.from_us]
        reached = max((t for t in known if t is not None), default=BEGINNING_US)
        pace = max(self._pace_us.get(c.id, 0) for c in carriers)
        # Each missed fence was too near, so the next one lies twice as far ahead.
        move.fence_us = reached + max(LEAST_AHEAD_US, AHEAD_BATCHES * pace << move.fences)
        move.fences += 1
        move.version = carriers[0].version + 1
        self._known.note(move)
        self._hold(source, move.fence_us)
        return self._known.publish([source.carrier])

    def undecided(self) -> set[str]:
        """The carriers that have yet to show whether a fence lies ahead of what they had read."""
        fenced = (move for move in self._known.moves.values() if move.step is MoveStep.FENCED)
        return {self._known.state.fragments[move.source].carrier for move in fenced}

    def rest(self, carrier: str) -> list[Instruction]:
        """A carrier is at rest, with all its batches heard of: the next one reads the table with the fence."""
        record = self._known.state.carriers[carrier]
        if record.last >= 0 and not record.sure:
            return []
        fenced = [m for m in self._known.moves.values() if m.step is MoveStep.FENCED]
        here = [m for m in fenced if self._known.state.fragments[m.source].carrier == carrier]
        return [instruction for move in here for instruction in self._pass(move, record.newest_us)]

    def _decide(self, move: MoveRecord, event: BatchDone, before_us: int | None) -> list[Instruction]:
        source = self._known.state.fragments[move.source]
        sure = self._known.state.carriers[event.carrier].sure
        assert move.version is not None, "set with the fence"
        if event.carrier != source.carrier or not sure or event.version is None or event.version < move.version:
            return []
        return self._pass(move, before_us)

    def _pass(self, move: MoveRecord, before_us: int | None) -> list[Instruction]:
        """The fence is in force; before that the source had read up to `before_us`."""
        source, target = self._known.state.fragments[move.source], self._known.state.fragments[move.target]
        assert move.fence_us is not None, "set with the fence"
        if before_us is not None and before_us >= move.fence_us:
            self._take(move, MoveEvent.MISSED)
            return self._fence(move, source, target)
        self._take(move, MoveEvent.PASSED)
        self._hand_over(move, move.fence_us)
        return []

    def _hand_over(self, move: MoveRecord, fence_us: int) -> None:
        known = self._known
        for part in known.users.pop(move.source, []):
            renamed = dict(move.columns)
            names = tuple((out, renamed.get(column, column)) for out, column in part.columns)
            if not part.settled:
                known.change_seat(part, move.target, [column for _, column in names], move.keys)
                self._settle(part)
                continue
            part.handed_over_us, part.pending_fence_us, part.done = fence_us, None, True
            begin = fence_us if part.from_us is None else max(fence_us, part.from_us)
            turn = replace(
                part,
                turn=part.turn + 1,
                fragment=move.target,
                columns=names,
                keys=move.keys,
                from_us=begin,
                handed_over_us=None,
                pending_fence_us=None,
                deciding=None,  # what it hands out, it hands out with an end that only rises
                done=False,
            )
            known.add_part(turn)
            known.note(part)
            known.note(turn)

    def _finish(self, move: MoveRecord) -> list[Instruction]:
        """The source has seen all that its results are made of when its input is complete up to there."""
        source = self._known.state.fragments[move.source]
        assert move.fence_us is not None, "set with the fence"
        owed_us = move.fence_us + source.span_us
        complete = self._known.carrier_of(source).complete_us
        if complete is None or complete < owed_us:
            return []
        self._take(move, MoveEvent.DRAINED)
        self._known.leave(source, owed_us, owed=source.span_us > 0)
        return self._known.publish([source.carrier])

    def _hold(self, source: FragmentRecord, fence_us: int | None) -> None:
        for part in self._known.users.get(source.id, []):
            part.pending_fence_us = fence_us
            self._known.note(part)

    def _take(self, move: MoveRecord, event: MoveEvent, reason: str = "") -> None:
        move.step = after(move.step, event)
        self._note_step(move, event, reason)
        if move.step in (MoveStep.DONE, MoveStep.ABANDONED):
            del self._known.moves[move.id]
        self._known.note(move)

    def _note_step(self, move: MoveRecord, event: MoveEvent, reason: str) -> None:
        source, target = self._known.state.fragments[move.source], self._known.state.fragments[move.target]
        here, there = self._places(source, target)
        fence = event_text(move.fence_us)
        said = {
            MoveEvent.READY: f"has caught up on {there}; fence {move.fences} at {fence}",
            MoveEvent.PASSED: f"answers for what begins before {fence}, {self._place(target)} for the rest",
            MoveEvent.MISSED: f"was read past {fence} on {here} before the fence was in force; a later one is tried",
            MoveEvent.DRAINED: f"is done on {here}; on {there} it is fragment {target.id}",
            MoveEvent.ABANDON: f"stays on {here}: {reason}",
        }
        who = self._place(source) if event is MoveEvent.PASSED else f"fragment {source.id}"
        self._known.add_history(
            STEPS[event],
            f"{who} {said[event]}",
            fragment=source.id,
            nodes=(self._known.carrier_of(source).node, self._known.carrier_of(target).node),
        )

    def _place(self, fragment: FragmentRecord) -> str:
        carrier = self._known.carrier_of(fragment)
        return place_text(fragment.id, carrier.id, carrier.node)

    def _places(self, *ends: FragmentRecord) -> list[str]:
        """The nodes of a move; on the same one its carriers."""
        carriers = [self._known.carrier_of(end) for end in ends]
        if len({carrier.node for carrier in carriers}) > 1:
            return [carrier.node for carrier in carriers]
        return [f"{carrier.template.family.carriers} carrier {carrier.id} on {carrier.node}" for carrier in carriers]
