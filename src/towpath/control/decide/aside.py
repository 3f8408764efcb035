"""Queries that make their carrier fail are set aside; a plan that fails is divided. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Sequence

from towpath.control.decide.links import Links
from towpath.control.decide.moves import Moves
from towpath.control.decide.queries import Queries
from towpath.control.state.controller_state import ControllerState, Instruction, StartCarrier, StopCarrier
from towpath.control.state.fence import UNDECIDED
from towpath.control.state.history import EventKind, event_text
from towpath.control.state.records import BEGINNING_US, FragmentRecord, FragmentStatus, MoveRecord, QueryRecord
from towpath.plan.templates import merge_all, template_of


class Aside:
    def __init__(self, known: ControllerState, moves: Moves, queries: Queries, links: Links) -> None:
        self._known = known
        self._moves = moves
        self._queries = queries
        self._links = links

    def set_aside(self, fragment: int, reason: str) -> list[Instruction]:
        """The queries that a fragment answers leave; if it was on its way here, it stays where it was."""
        known = self._known
        if known.state.fragments[fragment].status is FragmentStatus.LEAVING:
            return self._pass_over(known.state.fragments[fragment], reason)
        coming = [m for m in known.moves.values() if m.target == fragment and m.step in UNDECIDED]
        found = [i for move in coming for i in self._moves.abandon(move, f"it fails there: {reason}")]
        if queries := [known.state.queries[part.query] for part in known.users.get(fragment, [])]:
            return [*found, *(instruction for query in queries for instruction in self._leave(query, reason))]
        if (away := next((m for m in known.moves.values() if m.source == fragment), None)) is not None:
            return [*found, *self._drop_source(away, reason)]
        return found

    def _drop_source(self, move: MoveRecord, reason: str) -> list[Instruction]:
        """It answers from elsewhere by now, and fails at what it has yet to finish here: its queries are set aside."""
        known = self._known
        state, source = known.state, known.state.fragments[move.source]
        behind = [part for part in state.parts.values() if part.fragment == source.id]
        found = [i for part in behind for i in self._leave(state.queries[part.query], reason)]
        for part in behind:
            self._queries.endings.end_where_complete(state.queries[part.query], [part])
        if move.id in known.moves:
            self._moves.cut_short(move)
        known.ban(source)
        return [*found, *known.publish([source.carrier])]

    def _leave(self, query: QueryRecord, reason: str) -> list[Instruction]:
        if query.running:
            return self._fail(query.name, reason)
        text = f"query {query.name}, which leaves, ends at once, since its carrier fails with it: {reason}"
        self._known.add_history(EventKind.SET_ASIDE, text, query=query.name)
        return self._queries.endings.give_up(query)

    def _pass_over(self, fragment: FragmentRecord, reason: str) -> list[Instruction]:
        """It is out of the table, and its carrier fails when it closes the windows that were open.

        Queries that were withdrawn end with those that have closed. One that has moved stands elsewhere by now, and
        lacks windows from before that: it is set aside.
        """
        known, queries = self._known, self._known.state.queries
        behind = [part for part in known.state.parts.values() if part.fragment == fragment.id]
        moved = [part for part in behind if part.end_us is None]
        found = [i for part in moved for i in self._leave(queries[part.query], reason)]
        for part in behind:
            self._queries.endings.end_where_complete(queries[part.query], [part])
        known.ban(fragment)
        if not moved:
            text = (
                f"windows of a query that was withdrawn (fragment {fragment.id}) stay open, since they fail: {reason}"
            )
            known.add_history(EventKind.SET_ASIDE, text, fragment=fragment.id)
        return found

    def _fail(self, name: str, reason: str) -> list[Instruction]:
        """A derived stream leaves with the last query that reads it."""
        if readers := self._links.readers(name):
            return [instruction for reader in readers for instruction in self._leave(reader, reason)]
        complete_us = self._queries.endings.complete_us(self._queries.running[name])
        upto = (
            "has no complete results" if complete_us == BEGINNING_US else f"is complete up to {event_text(complete_us)}"
        )
        text = f"query {name} is set aside and {upto}, since its carrier fails with it and not without it: {reason}"
        self._known.add_history(EventKind.SET_ASIDE, text, query=name)
        return self._queries.withdraw(name, "it was set aside", failed=reason)

    def restart(self, carrier: str) -> list[Instruction]:
        """From its checkpoint, with its table of now."""
        known = self._known
        if carrier not in known.runs:
            return []
        record = known.state.carriers[carrier]
        known.begin_run(record)
        # On a node that does not answer it is started when that node, or another, does (failover.py).
        return [*known.publish([carrier]), *([] if record.node in known.lost else [StartCarrier(carrier)])]

    def divide(self, carrier: str, halves: Sequence[Sequence[int]], reason: str) -> list[Instruction]:
        """Carriers with narrower plans have the fragments from now on. This one has never done anything."""
        known = self._known
        known.broken.add(carrier)
        del known.runs[carrier]
        node, past = known.state.carriers[carrier].node, known.state.carriers[carrier].past
        fresh: dict[str, None] = {}
        for half in halves:
            fragments = [known.state.fragments[number] for number in half]
            templates = [template_of(known.used(fragment)) for fragment in fragments]
            made = [known.new_carrier(template, node, past=past) for template in merge_all(templates)]
            for fragment, template in zip(fragments, templates, strict=True):
                home = next(c for c in made if c.template.covers(template))
                known.transplant(fragment, home)
                fresh[home.id] = None
        text = f"carrier {carrier} cannot run: {reason}; {' and '.join(fresh)} have its fragments now"
        known.add_history(EventKind.CARRIER_FAILED, text, nodes=[node])
        return [StopCarrier(carrier), *known.publish(fresh), *known.start(fresh)]
