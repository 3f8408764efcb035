"""Queries come and go: which fragments answer them, and for which event times. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, product

from towpath.control.endings import Endings
from towpath.control.history import Kind
from towpath.control.ledger import Instruction, Ledger
from towpath.control.links import Links
from towpath.control.moves import Moves
from towpath.control.records import FragmentRecord, PartRecord, QueryRecord, Status
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
    types: tuple[str, ...] = ()  # of the columns


class Queries:
    def __init__(self, ledger: Ledger, moves: Moves, links: Links) -> None:
        self._ledger = ledger
        self._state = ledger.state
        self._moves = moves
        self._links = links
        self.running = {q.name: q for q in self._state.queries.values() if q.running}
        self.endings = Endings(ledger, moves, links, self.running)
        newest = {q.name: q for q in sorted(self._state.queries.values(), key=lambda q: q.id)}
        self.aside = {name: q for name, q in newest.items() if q.failed is not None}
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
                if (ledger.reusable(pipeline, node) or ledger.covering(template, node)) is None:
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

    def begin(self, part: PartRecord, fragment: FragmentRecord, *, from_now: bool = False) -> None:
        if self.endings.waits(part.query):
            return
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

    def _tell_submitted(self, query: QueryRecord) -> None:
        fragments = [self._state.fragments[part.fragment] for part in self._state.parts_of(query.id)]
        carriers = [self._ledger.carrier_of(fragment) for fragment in fragments]
        places = [f"fragment {f.id} in carrier {c.id} on {c.node}" for f, c in zip(fragments, carriers, strict=True)]
        why = REASONS.get(query.origin, "asked for")
        text = f"query {query.name} enters as {', '.join(places)}: {why}"
        nodes = dict.fromkeys(carrier.node for carrier in carriers)
        self._ledger.tell(Kind.SUBMITTED, text, query=query.name, nodes=nodes)
