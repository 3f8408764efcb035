"""Queries that make their carrier fail are set aside; a plan that fails is divided. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from towpath.control.fence import UNDECIDED
from towpath.control.history import Kind, event_text
from towpath.control.ledger import Instruction, Ledger, StartCarrier, StopCarrier
from towpath.control.links import Links
from towpath.control.moves import Moves
from towpath.control.queries import Queries
from towpath.control.records import BEGINNING_US, FragmentRecord, MoveRecord, QueryRecord, Status
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import merge_all, template_of


class Aside:
    def __init__(self, ledger: Ledger, moves: Moves, queries: Queries, links: Links) -> None:
        self._ledger = ledger
        self._moves = moves
        self._queries = queries
        self._links = links

    def set_aside(self, fragment: int, reason: str) -> list[Instruction]:
        """The queries that a fragment answers leave; if it was on its way here, it stays where it was."""
        ledger = self._ledger
        if ledger.state.fragments[fragment].status is Status.LEAVING:
            return self._pass_over(ledger.state.fragments[fragment], reason)
        coming = [m for m in ledger.moves.values() if m.target == fragment and m.step in UNDECIDED]
        found = [i for move in coming for i in self._moves.abandon(move, f"it fails there: {reason}")]
        if queries := [ledger.state.queries[part.query] for part in ledger.users.get(fragment, [])]:
            return [*found, *(instruction for query in queries for instruction in self._leave(query, reason))]
        if (away := next((m for m in ledger.moves.values() if m.source == fragment), None)) is not None:
            return [*found, *self._drop_source(away, reason)]
        return found

    def _drop_source(self, move: MoveRecord, reason: str) -> list[Instruction]:
        """It answers from elsewhere by now, and fails at what it has yet to finish here: its queries are set aside."""
        ledger = self._ledger
        state, source = ledger.state, ledger.state.fragments[move.source]
        behind = [part for part in state.parts.values() if part.fragment == source.id]
        found = [i for part in behind for i in self._leave(state.queries[part.query], reason)]
        for part in behind:
            self._queries.endings.end_where_complete(state.queries[part.query], [part])
        if move.id in ledger.moves:
            self._moves.cut_short(move)
        ledger.ban(source)
        return [*found, *ledger.publish([source.carrier])]

    def _leave(self, query: QueryRecord, reason: str) -> list[Instruction]:
        if query.running:
            return self._fail(query.name, reason)
        text = f"query {query.name}, which leaves, ends at once, since its carrier fails with it: {reason}"
        self._ledger.tell(Kind.SET_ASIDE, text, query=query.name)
        return self._queries.endings.give_up(query)

    def _pass_over(self, fragment: FragmentRecord, reason: str) -> list[Instruction]:
        """Its queries were withdrawn, and the carrier fails when it closes the windows that they had open."""
        ledger = self._ledger
        for part in [p for p in ledger.state.parts.values() if p.fragment == fragment.id and p.end_us is not None]:
            self._queries.endings.end_where_complete(ledger.state.queries[part.query], [part])
        ledger.ban(fragment)
        text = f"windows of a query that was withdrawn (fragment {fragment.id}) stay open, since they fail: {reason}"
        ledger.tell(Kind.SET_ASIDE, text, fragment=fragment.id)
        return []

    def _fail(self, name: str, reason: str) -> list[Instruction]:
        """A derived stream leaves with the last query that reads it."""
        if readers := self._links.readers(name):
            return [instruction for reader in readers for instruction in self._leave(reader, reason)]
        complete_us = self._queries.endings.complete_us(self._queries.running[name])
        upto = (
            "has no complete results" if complete_us == BEGINNING_US else f"is complete up to {event_text(complete_us)}"
        )
        text = f"query {name} is set aside and {upto}, since its carrier fails with it and not without it: {reason}"
        self._ledger.tell(Kind.SET_ASIDE, text, query=name)
        return self._queries.withdraw(name, "it was set aside", failed=reason)

    def restart(self, carrier: str) -> list[Instruction]:
        """From its checkpoint, with its table of now."""
        ledger = self._ledger
        if carrier not in ledger.runs:
            return []
        record = ledger.state.carriers[carrier]
        ledger.begin_run(record)
        # On a node that does not answer it is started when that node, or another, does (failover.py).
        return [*ledger.publish([carrier]), *([] if record.node in ledger.lost else [StartCarrier(carrier)])]

    def divide(self, carrier: str, halves: Sequence[Mapping[int, Pipeline]], reason: str) -> list[Instruction]:
        """Carriers with narrower plans have the fragments from now on. This one has never done anything."""
        ledger = self._ledger
        ledger.broken.add(carrier)
        del ledger.runs[carrier]
        node, past = ledger.state.carriers[carrier].node, ledger.state.carriers[carrier].past
        fresh: dict[str, None] = {}
        for half in halves:
            made = [ledger.new_carrier(t, node, past=past) for t in merge_all(map(template_of, half.values()))]
            for number, pipeline in half.items():
                home = next(c for c in made if c.template.covers(template_of(pipeline)))
                ledger.transplant(ledger.state.fragments[number], pipeline, home)
                fresh[home.id] = None
        text = f"carrier {carrier} cannot run: {reason}; {' and '.join(fresh)} have its fragments now"
        ledger.tell(Kind.CARRIER_FAILED, text, nodes=[node])
        return [StopCarrier(carrier), *ledger.publish(fresh), *ledger.start(fresh)]
