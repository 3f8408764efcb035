"""Queries come and go: which fragments answer them, and for which event times. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, product

from towpath.control.history import Kind
from towpath.control.ledger import Instruction, Ledger
from towpath.control.links import Links
from towpath.control.moves import Moves
from towpath.control.records import BEGINNING_US, FragmentRecord, PartRecord, QueryRecord, Status
from towpath.plan.assignment import group_columns, log_columns
from towpath.plan.cut import WHOLE
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Template, template_of
from towpath.schema import LINK

REASONS = {"job": "it is in the job file", LINK: "a query reads it"}  # why a query enters, by its origin


@dataclass(frozen=True)
class Submission:
    """A query ready to run: its pipelines and the names of its output columns."""

    name: str
    sql: str
    columns: tuple[str, ...]
    pipelines: tuple[Pipeline, ...]
    from_now: bool = False
    sink: dict[str, str] | None = None
    origin: str = "api"
    node: str | None = None  # where it is to run; None: wherever it can be shared, else on the first node
    copies: int = 1  # on so many nodes at the same time
    fragments: str = WHOLE  # how it was cut


class Queries:
    def __init__(self, ledger: Ledger, moves: Moves, links: Links) -> None:
        self._ledger = ledger
        self._state = ledger.state
        self._moves = moves
        self._links = links
        self.running = {q.name: q for q in self._state.queries.values() if q.running}
        newest = {q.name: q for q in sorted(self._state.queries.values(), key=lambda q: q.id)}
        self.aside = {name: q for name, q in newest.items() if q.failed is not None}
        self._ids = count(self._state.last_number("queries") + 1)

    def submit(self, submissions: Sequence[Submission]) -> list[Instruction]:
        """Takes queries in. Those that come together may share a new carrier."""
        ledger = self._ledger
        wanted: dict[str, list[Template]] = {}
        places = [self._places(submission) for submission in submissions]
        for submission, nodes in zip(submissions, places, strict=True):
            for pipeline, node in product(submission.pipelines, nodes):
                template = template_of(pipeline)
                if (ledger.reusable(pipeline, node) or ledger.covering(template, node)) is None:
                    wanted.setdefault(node or ledger.first_node, []).append(template)
        for name, templates in wanted.items():
            ledger.new_carriers(templates, name)
        touched: dict[str, None] = {}
        for submission, nodes in zip(submissions, places, strict=True):
            touched |= dict.fromkeys(self._submit(submission, nodes))
        return [*ledger.publish(touched), *ledger.start(touched)]

    def withdraw(self, name: str, reason: str = "asked for", *, failed: str | None = None) -> list[Instruction]:
        """`failed`: why it is set aside, unless somebody wants it to leave."""
        query = self.running.pop(name, None)
        if query is None:
            return []
        query.running = False
        query.failed = failed
        if failed is not None:
            self.aside[name] = query
        self._ledger.ended[query.id] = None
        self._ledger.note(query)
        self._ledger.tell(Kind.WITHDRAWN, f"query {name} leaves: {reason}", query=name)
        touched: dict[str, None] = {}
        followed: list[Instruction] = []
        for part in self._state.parts_of(query.id):
            fragment = self._state.fragments[part.fragment]
            self._end(part, failed=failed is not None)
            if not self._ledger.users[fragment.id] and not self._moves.is_target(fragment):
                if failed is not None and part.windowed:
                    self._ledger.ban(fragment)
                else:
                    owed = part.windowed and part.until_us != BEGINNING_US
                    self._ledger.leave(fragment, part.until_us, owed=owed)
                touched[fragment.carrier] = None
                followed += self._moves.without(fragment)
        self._drop_gaps(query)
        for link in self._links.leave(query):
            followed += self.withdraw(link, "no query reads it any more")
        return [*self._ledger.publish(touched), *followed]

    def begin(self, part: PartRecord, fragment: FragmentRecord, *, from_now: bool = False) -> None:
        newest = self._ledger.carrier_of(fragment).newest_us
        part.from_us = fragment.from_us
        if from_now and newest is not None:
            part.from_us = max(newest + 1 + fragment.lookback_us, fragment.from_us or newest)
        part.settled = True
        self._ledger.note(part)

    def _places(self, submission: Submission) -> Sequence[str | None]:
        """Where the copies of a query go: a single one wherever it can be shared, several to as many nodes."""
        if submission.copies == 1:
            return [submission.node]
        takers = self._ledger.takers()
        first = [submission.node] if submission.node in takers else []
        return [*first, *(name for name in takers if name not in first)][: submission.copies] or [submission.node]

    def _submit(self, submission: Submission, nodes: Sequence[str | None]) -> Iterable[str]:
        number = next(self._ids)
        how = (submission.sink, submission.origin, submission.fragments)
        query = QueryRecord(number, submission.name, submission.sql, True, *how)
        self._state.queries[query.id] = self.running[query.name] = query
        self.aside.pop(query.name, None)
        self._ledger.note(query)
        for branch, (node, (select, pipeline)) in enumerate(product(nodes, enumerate(submission.pipelines))):
            fragment = self._ledger.reusable(pipeline, node)
            if fragment is None:
                fragment = self._ledger.new_fragment(pipeline, node)
                yield fragment.carrier
            template = self._ledger.carrier_of(fragment).template
            part = PartRecord(
                query.id,
                branch,
                0,
                fragment.id,
                tuple(zip(submission.columns, log_columns(pipeline, template), strict=True)),
                pipeline.window is not None,
                keys=tuple(group_columns(pipeline, template)),
                select=select,
            )
            self._ledger.add_part(part)
            if fragment.status is Status.LIVE:
                self.begin(part, fragment, from_now=submission.from_now)
            self._ledger.note(part)
        self._links.enter(query)
        self._tell_submitted(query)

    def _tell_submitted(self, query: QueryRecord) -> None:
        fragments = [self._state.fragments[part.fragment] for part in self._state.parts_of(query.id)]
        carriers = [self._ledger.carrier_of(fragment) for fragment in fragments]
        places = [f"fragment {f.id} in carrier {c.id} on {c.node}" for f, c in zip(fragments, carriers, strict=True)]
        why = REASONS.get(query.origin, "asked for")
        text = f"query {query.name} enters as {', '.join(places)}: {why}"
        nodes = dict.fromkeys(carrier.node for carrier in carriers)
        self._ledger.tell(Kind.SUBMITTED, text, query=query.name, nodes=nodes)

    def _end(self, part: PartRecord, *, failed: bool) -> None:
        """What is not completely seen is not answered for, also while others use the fragment: they may leave next."""
        turns = self._state.turns(part.query, part.branch)
        until_us = None
        if part.settled:
            until_us = self._emitted(part) if failed else self._complete(part)
        for earlier in turns[:-1]:
            # Up to the fence the turn before has seen everything too, and perhaps more of it.
            seen_us = self._complete(earlier)
            if seen_us is not None and earlier.moved_us is not None:
                until_us = max(min(seen_us, earlier.moved_us), until_us or BEGINNING_US)
        for turn in turns:
            turn.until_us = BEGINNING_US if until_us is None else until_us
            turn.held_us = None
            self._ledger.note(turn)
        part.settled = True
        self._ledger.users[part.fragment].remove(part)

    def _drop_gaps(self, query: QueryRecord) -> None:
        """Copies answer for one span of event times together: one that began after another had ended is left out."""
        ends: dict[int, int] = {}
        copies = [self._state.turns(part.query, part.branch) for part in self._state.parts_of(query.id)]
        for turns in sorted(copies, key=lambda turns: turns[0].from_us or BEGINNING_US):
            select, begin, end = turns[0].select, turns[0].from_us or BEGINNING_US, turns[0].until_us or BEGINNING_US
            if end != BEGINNING_US and begin > ends.get(select, begin):
                for turn in turns:
                    turn.until_us = BEGINNING_US
                    self._ledger.note(turn)
            elif end != BEGINNING_US:
                ends[select] = max(end, ends.get(select, end))

    def end_at_what_was_emitted(self, part: PartRecord) -> None:
        """Of a query that was withdrawn: nothing more comes, although windows are owed."""
        emitted_us = self._emitted(part)
        assert part.until_us is not None, "it was withdrawn"
        part.until_us = BEGINNING_US if emitted_us is None else min(part.until_us, emitted_us)
        self._ledger.note(part)

    def _emitted(self, part: PartRecord) -> int | None:
        """As `_complete`, for a fragment of which nothing more will come: windows that are open never close."""
        complete_us = self._complete(part)
        closed_us = self._ledger.carrier_of(self._state.fragments[part.fragment]).watermark_us
        if not part.windowed or complete_us is None:
            return complete_us
        return None if closed_us is None else min(complete_us, closed_us)

    def _complete(self, part: PartRecord) -> int | None:
        return self._ledger.carrier_of(self._state.fragments[part.fragment]).complete_us
