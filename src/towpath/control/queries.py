"""Queries come and go: which fragments answer them, and for which event times. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, product

from towpath.control.beginnings import Beginnings
from towpath.control.endings import Endings
from towpath.control.history import Kind
from towpath.control.ledger import Instruction, Ledger
from towpath.control.links import Links
from towpath.control.moves import Moves
from towpath.control.records import CarrierRecord, FragmentRecord, PartRecord, QueryRecord, Since
from towpath.plan.assignment import group_columns, log_columns
from towpath.plan.cut import WHOLE
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Template, template_of
from towpath.schema import LINK
from towpath.settings import BEGINNING, Start

REASONS = {"job": "it is in the job file", LINK: "a query reads it"}  # why a query enters, by its origin


@dataclass(frozen=True)
class Submission:
    """A query ready to run: its pipelines and the names of its output columns."""

    name: str
    sql: str
    columns: tuple[str, ...]
    pipelines: tuple[Pipeline, ...]
    start: Start = BEGINNING
    sink: dict[str, str] | None = None
    origin: str = "api"
    node: str | None = None  # where it is to run; None: wherever it can be shared, else on the first node
    copies: int = 1  # on so many nodes at the same time
    fragments: str = WHOLE  # how it was cut
    types: tuple[str, ...] = ()  # of the columns


class Queries:
    def __init__(self, ledger: Ledger, moves: Moves, links: Links, beginnings: Beginnings) -> None:
        self._ledger = ledger
        self._state = ledger.state
        self._moves = moves
        self._links = links
        self._beginnings = beginnings
        self.running = {q.name: q for q in self._state.queries.values() if q.running}
        self.endings = Endings(ledger, moves, links, self.running)
        newest = {q.name: q for q in sorted(self._state.queries.values(), key=lambda q: q.id)}
        self.aside = {name: q for name, q in newest.items() if q.failed is not None}
        over = (q for q in self._state.queries.values() if not q.running and q.id not in self.endings.leaving)
        ledger.ended |= dict.fromkeys(q.id for q in over)
        self._ids = count(self._state.last_number("queries") + 1)

    def submit(self, submissions: Sequence[Submission]) -> list[Instruction]:
        """Takes queries in. Those that come together may share a new carrier.

        One that runs under the same name is replaced: it goes on until the new version can take over.
        """
        ledger = self._ledger
        wanted: dict[str, list[Template]] = {}
        places = [self._places(submission) for submission in submissions]
        for submission, nodes in zip(submissions, places, strict=True):
            for pipeline, node in product(submission.pipelines, nodes):
                template = template_of(pipeline)
                if (self._shared(submission, pipeline, node) or ledger.covering(template, node)) is None:
                    wanted.setdefault(node or ledger.first_node, []).append(template)
        for name, templates in wanted.items():
            ledger.new_carriers(templates, name)
        touched: dict[str, None] = {}
        dropped: list[QueryRecord] = []
        for submission, nodes in zip(submissions, places, strict=True):
            touched |= dict.fromkeys(self._submit(submission, nodes, dropped))
        found = [*ledger.publish(touched), *ledger.start(touched)]
        return [*found, *(i for query in dropped for i in self.endings.drop(query))]

    def change_sink(self, name: str, sink: dict[str, str] | None) -> None:
        """The query goes on; its results go elsewhere."""
        query = self.running[name]
        query.sink = sink
        self._ledger.note(query)
        where = "no sink of its own" if sink is None else f"a sink of type {sink['type']}"
        self._ledger.tell(Kind.SUBMITTED, f"query {name} goes on with {where}: asked for", query=name)

    def withdraw(self, name: str, reason: str = "asked for", *, failed: str | None = None) -> list[Instruction]:
        """`failed`: why it is set aside, unless somebody wants it to leave."""
        query = self.running.get(name)
        if query is None:
            return []
        query.failed = failed
        if failed is not None:
            self.aside[name] = query
        self._ledger.tell(Kind.WITHDRAWN, f"query {name} leaves: {reason}", query=name)
        found = self.endings.withdraw(query)
        return found if failed is None else [*found, *self.endings.give_up(query)]

    def catch_up(self, asked: Sequence[tuple[PartRecord, Pipeline]]) -> list[Instruction]:
        """Reads the past again, for parts that need it and are given with what they compute. They share what is new."""
        ledger, touched = self._ledger, dict[str, None]()
        wanted: dict[str, list[Template]] = {}
        for part, pipeline in asked:
            node = ledger.node_of(part.fragment)
            if ledger.answering(pipeline, node, part.asked_us) is None:
                wanted.setdefault(node, []).append(template_of(pipeline))
        made = {node: ledger.new_past_carriers(templates, node) for node, templates in wanted.items()}
        followed: list[Instruction] = []
        for part, pipeline in asked:
            node, query = ledger.node_of(part.fragment), self._state.queries[part.query]
            fragment = ledger.answering(pipeline, node, part.asked_us)
            if fragment is None:
                carrier = next(c for c in made[node] if c.template.covers(template_of(pipeline)))
                fragment = ledger.new_fragment(pipeline, node, carrier)
            links = self._links.leave(query)
            touched |= dict.fromkeys([self._state.fragments[part.fragment].carrier, fragment.carrier])
            followed += self._change_seat(part, pipeline, fragment)
            self._links.enter(query)
            self._beginnings.decide(part)
            for link in links:
                if not self._links.is_read(link):
                    followed += self.withdraw(link, "no query reads it any more")
        self._tell_of_past(made, asked)
        return [*ledger.publish(touched), *ledger.start(c.id for cs in made.values() for c in cs), *followed]

    def _change_seat(self, part: PartRecord, pipeline: Pipeline, fragment: FragmentRecord) -> list[Instruction]:
        """Another fragment answers a part that has answered nothing yet."""
        before = self._state.fragments[part.fragment]
        template = self._ledger.carrier_of(fragment).template
        columns, keys = log_columns(pipeline, template), group_columns(pipeline, template)
        self._ledger.change_seat(part, fragment.id, columns, keys)
        if self._ledger.users[before.id] or self._moves.is_target(before):
            return []
        self._ledger.leave(before, None, owed=False)
        return self._moves.without(before)

    def _tell_of_past(
        self, made: Mapping[str, Sequence[CarrierRecord]], asked: Sequence[tuple[PartRecord, Pipeline]]
    ) -> None:
        for node, carriers in made.items():
            names = sorted(
                {self._state.queries[p.query].name for p, _ in asked if self._ledger.node_of(p.fragment) == node}
            )
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            text = f"carrier {', '.join(c.id for c in carriers)} on {node} reads the past again for {names[0]}{more}"
            for name in names:
                self._ledger.tell(Kind.CATCHING_UP, f"{text}: asked for", query=name, nodes=[node])

    def _places(self, submission: Submission) -> Sequence[str | None]:
        """Where the copies of a query go: a single one wherever it can be shared, several to as many nodes."""
        if submission.copies == 1:
            return [submission.node]
        takers = self._ledger.takers()
        first = [submission.node] if submission.node in takers else []
        return [*first, *(name for name in takers if name not in first)][: submission.copies] or [submission.node]

    def _submit(self, submission: Submission, nodes: Sequence[str | None], dropped: list[QueryRecord]) -> Iterable[str]:
        """Tells the carriers that get rows, and adds to those whom the query replaces before they began."""
        number = next(self._ids)
        how = (submission.sink, submission.origin, submission.fragments)
        query = QueryRecord(number, submission.name, submission.sql, True, *how, series=number, types=submission.types)
        if (old := self.running.get(query.name)) is not None:
            self._replace(old, query, submission.columns, dropped)
        self._state.queries[query.id] = self.running[query.name] = query
        self.aside.pop(query.name, None)
        self._ledger.note(query)
        for branch, (node, (select, pipeline)) in enumerate(product(nodes, enumerate(submission.pipelines))):
            fragment = self._shared(submission, pipeline, node)
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
            if self.endings.waits(query.id):
                part.since = Since.SOONEST  # it takes over from another version
            else:
                part.since, part.asked_us = self._beginnings.asked(submission.start, fragment, query.origin)
            self._ledger.add_part(part)
            self._beginnings.decide(part)
            self._ledger.note(part)
        self._links.enter(query)
        self._tell_submitted(query)

    def _replace(
        self, old: QueryRecord, new: QueryRecord, columns: tuple[str, ...], dropped: list[QueryRecord]
    ) -> None:
        self._ledger.tell(Kind.WITHDRAWN, f"query {old.name} leaves: a new version replaces it", query=old.name)
        if (never := self.endings.replace(old, new)) is not None:
            dropped.append(never)
        if new.replaces is not None:
            before = self._state.queries[new.replaces]
            names = tuple(name for name, _ in self._state.parts[before.id, 0, 0].columns)
            if (names, before.types) == (columns, new.types):
                new.series = before.series

    def _shared(self, submission: Submission, pipeline: Pipeline, node: str | None) -> FragmentRecord | None:
        """A fragment that computes the same; if possible one that answers from when the query is to answer."""
        if not submission.start.now:
            answering = self._ledger.answering(pipeline, node, submission.start.us)
            if answering is not None:
                return answering
        return self._ledger.reusable(pipeline, node)

    def _tell_submitted(self, query: QueryRecord) -> None:
        fragments = [self._state.fragments[part.fragment] for part in self._state.parts_of(query.id)]
        carriers = [self._ledger.carrier_of(fragment) for fragment in fragments]
        places = [f"fragment {f.id} in carrier {c.id} on {c.node}" for f, c in zip(fragments, carriers, strict=True)]
        why = REASONS.get(query.origin, "asked for")
        text = f"query {query.name} enters as {', '.join(places)}: {why}"
        nodes = dict.fromkeys(carrier.node for carrier in carriers)
        self._ledger.tell(Kind.SUBMITTED, text, query=query.name, nodes=nodes)
