"""Queries come and go: which fragments answer them, and for which event times. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, product

from towpath.config.settings import BEGINNING, Start
from towpath.control.decide.beginnings import Beginnings
from towpath.control.decide.choose_node import Places
from towpath.control.decide.endings import Endings
from towpath.control.decide.kinds import Key, Kind, Node, choose, key_of
from towpath.control.decide.links import Links
from towpath.control.decide.moves import Moves
from towpath.control.observe.carriers import Wanted
from towpath.control.state.controller_state import ControllerState, Instruction
from towpath.control.state.history import EventKind, place_text
from towpath.control.state.records import CarrierRecord, FragmentRecord, PartRecord, QueryRecord, Since
from towpath.plan import WHOLE
from towpath.plan.assignment import group_columns, log_columns, renamed_columns
from towpath.plan.pipeline import Pipeline
from towpath.plan.serial import dump_pipeline, load_pipeline
from towpath.plan.templates import Template, merge_all, template_of, universal_for
from towpath.schema import LINK, is_link

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
    whole: tuple[Pipeline, ...] = ()  # its SELECTs in one piece, if it is cut


class Queries:
    def __init__(
        self, known: ControllerState, moves: Moves, links: Links, beginnings: Beginnings, places: Places
    ) -> None:
        self._known = known
        self._places = places
        self._state = known.state
        self._moves = moves
        self._links = links
        self._beginnings = beginnings
        self.running = {q.name: q for q in self._state.queries.values() if q.running}
        self.endings = Endings(known, moves, links, self.running)
        newest = {q.name: q for q in sorted(self._state.queries.values(), key=lambda q: q.id)}
        self.aside = {name: q for name, q in newest.items() if q.failed is not None}
        over = (q for q in self._state.queries.values() if not q.running and q.id not in self.endings.leaving)
        known.ended |= dict.fromkeys(q.id for q in over)
        self._ids = count(self._state.last_number("queries") + 1)
        self._why: dict[str, str] = {}  # new carriers are where they are
        self._why_copies: dict[str, str] = {}  # of queries are where they are
        self._kinds: dict[Key, Kind] = {}  # of carriers that those who come together go to
        self.why_kind: dict[int, str] = {}  # their fragments are in a carrier of that kind

    def submit(self, submissions: Sequence[Submission]) -> list[Instruction]:
        """Takes queries in. Those that come together may share a new carrier.

        One that runs under the same name is replaced: it goes on until the new version can take over.
        """
        known = self._known
        wanted: dict[str | None, list[_New]] = {}
        self._why_copies, self.why_kind = {}, {}
        places = [self._nodes_for(submission) for submission in submissions]
        alone = [
            (submission, pipeline, node)
            for submission, nodes in zip(submissions, places, strict=True)
            for pipeline, node in product(submission.pipelines, nodes)
            if self._shared(submission, pipeline, node) is None
        ]
        self._kinds = choose(known, [(pipeline, node) for _, pipeline, node in alone])
        for submission, pipeline, node in alone:
            template = self._kind_for(pipeline, node).template
            if known.covering(template, node) is None:
                wanted.setdefault(node, []).append(_New(template, submission, pipeline))
        anywhere = wanted.pop(None, [])
        for name, new in wanted.items():
            if name is not None:
                known.new_carriers([n.template for n in new], name)
        self._why = self._new_carriers_anywhere(anywhere)
        touched: dict[str, None] = {}
        dropped: list[QueryRecord] = []
        for submission, nodes in zip(submissions, places, strict=True):
            touched |= dict.fromkeys(self._submit(submission, nodes, dropped))
        found = [*known.publish(touched), *known.start(touched)]
        return [*found, *(i for query in dropped for i in self.endings.drop(query))]

    def _kind_for(self, pipeline: Pipeline, node: Node) -> Kind:
        """Carriers are made before fragments are, so it was decided for all that come together."""
        return self._kinds[key_of(pipeline, node)]

    def change_sink(self, name: str, sink: dict[str, str] | None) -> None:
        """The query goes on; its results go elsewhere."""
        query = self.running[name]
        query.sink = sink
        self._known.note(query)
        where = "no sink of its own" if sink is None else f"a sink of type {sink['type']}"
        self._known.add_history(EventKind.SUBMITTED, f"query {name} goes on with {where}: asked for", query=name)

    def withdraw(self, name: str, reason: str = "asked for", *, failed: str | None = None) -> list[Instruction]:
        """`failed`: why it is set aside, unless somebody wants it to leave."""
        query = self.running.get(name)
        if query is None:
            return []
        query.failed = failed
        if failed is not None:
            self.aside[name] = query
        self._note_withdrawn(query, reason)
        found = self.endings.withdraw(query)
        return found if failed is None else [*found, *self.endings.give_up(query)]

    def catch_up(self) -> list[Instruction]:
        """Reads the past again, together, for those parts that need it now. They share what is new."""
        known, touched = self._known, dict[str, None]()
        asked = [(part, self._in_one_piece(part)) for part in self._beginnings.lacking()]
        if not asked:
            return []
        wanted: dict[str, list[Template]] = {}
        for part, pipeline in asked:
            node = known.node_of(part.fragment)
            if known.answering(pipeline, node, part.asked_us) is None:
                wanted.setdefault(node, []).append(self._like_now(part, pipeline))
        made = {node: known.new_past_carriers(templates, node) for node, templates in wanted.items()}
        followed: list[Instruction] = []
        for part, pipeline in asked:
            node, query = known.node_of(part.fragment), self._state.queries[part.query]
            fragment = known.answering(pipeline, node, part.asked_us)
            if fragment is None:
                template = self._like_now(part, pipeline)
                carrier = next(c for c in made[node] if c.template.covers(template))
                fragment = known.new_fragment(pipeline, carrier)
            links = self._links.leave(query)
            touched |= dict.fromkeys([self._state.fragments[part.fragment].carrier, fragment.carrier])
            followed += self._change_seat(part, pipeline, fragment)
            self._links.enter(query)
            self._beginnings.decide(part)
            for link in links:
                if not self._links.is_read(link):
                    followed += self.withdraw(link, "no query reads it any more")
        self._note_past(made, asked)
        return [*known.publish(touched), *known.start(c.id for cs in made.values() for c in cs), *followed]

    def _in_one_piece(self, part: PartRecord) -> Pipeline:
        """What a part's SELECT computes. Derived streams have no past: who reads one has to read what it is made of."""
        if part.whole is not None:
            return load_pipeline(*part.whole)
        return self._known.read_by([part], self._state.fragments[part.fragment])

    def _like_now(self, part: PartRecord, pipeline: Pipeline) -> Template:
        """The past is read by a carrier of the same kind as the one that takes over."""
        narrow = template_of(pipeline)
        wide = universal_for(pipeline)
        runs = self._known.carrier_of(self._state.fragments[part.fragment]).template
        return wide if wide is not None and runs.covers(wide) else narrow

    def _change_seat(self, part: PartRecord, pipeline: Pipeline, fragment: FragmentRecord) -> list[Instruction]:
        """Another fragment answers a part that has answered nothing yet."""
        before = self._state.fragments[part.fragment]
        template = self._known.carrier_of(fragment).template
        if part.whole is None:
            renamed = renamed_columns(pipeline, self._known.carrier_of(before).template, template)
            columns = [renamed.get(column, column) for _, column in part.columns]
        else:
            columns = list(log_columns(pipeline, template))
        keys = group_columns(pipeline, template)
        self._known.change_seat(part, fragment.id, columns, keys)
        if self._known.users[before.id] or self._moves.is_target(before):
            return []
        self._known.leave(before, None, owed=False)
        return self._moves.without(before)

    def _note_past(
        self, made: Mapping[str, Sequence[CarrierRecord]], asked: Sequence[tuple[PartRecord, Pipeline]]
    ) -> None:
        for node, carriers in made.items():
            names = sorted(
                {self._state.queries[p.query].name for p, _ in asked if self._known.node_of(p.fragment) == node}
            )
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            text = f"carrier {', '.join(c.id for c in carriers)} on {node} reads the past again for {names[0]}{more}"
            for name in names:
                self._known.add_history(EventKind.CATCHING_UP, f"{text}: asked for", query=name, nodes=[node])

    def _new_carriers_anywhere(self, new: Sequence[_New]) -> dict[str, str]:
        """Carriers for shapes that may run on any node, and why each is where it is."""
        known = self._known
        uncovered = merge_all(n.template for n in new if known.covering(n.template, None) is None)
        if not uncovered:
            return {}
        wanted = [_wanted(f"new{n}", template, new) for n, template in enumerate(uncovered)]
        # Where no node takes anything, what is new waits for the first one.
        chosen = self._places.choose(known, known.open_nodes or known.nodes[:1], wanted)
        why: dict[str, str] = {}
        for template, asked in zip(uncovered, wanted, strict=True):
            choice = chosen[asked.name]
            why |= {carrier.id: choice.reason for carrier in known.new_carriers([template], choice.nodes[0])}
        return why

    def _nodes_for(self, submission: Submission) -> Sequence[str | None]:
        """Where the copies of a query go: a single one wherever it can be shared, several to as many nodes."""
        if submission.copies == 1:
            return [submission.node]
        nodes = self._known.open_nodes
        first = [submission.node] if submission.node in nodes else []
        others, copies = [name for name in nodes if name not in first], submission.copies - len(first)
        if not others or not copies:
            return [*first, *others] or [submission.node]
        family = template_of(submission.pipelines[0]).family
        wanted = Wanted(submission.name, family, len(submission.pipelines), min(copies, len(others)))
        choice = self._places.choose(self._known, others, [wanted])[wanted.name]
        if choice.reason:
            self._why_copies[submission.name] = (
                f"{', '.join(choice.nodes)} {'was' if len(choice.nodes) == 1 else 'were'} {choice.reason}"
            )
        return [*first, *choice.nodes]

    def _submit(self, submission: Submission, nodes: Sequence[str | None], dropped: list[QueryRecord]) -> Iterable[str]:
        """Yields the carriers that get rows, and adds to those whom the query replaces before they began."""
        number = next(self._ids)
        how = (submission.sink, submission.origin, submission.fragments)
        query = QueryRecord(number, submission.name, submission.sql, True, *how, series=number, types=submission.types)
        if (old := self.running.get(query.name)) is not None:
            self._replace(old, query, submission.columns, dropped)
        self._state.queries[query.id] = self.running[query.name] = query
        self.aside.pop(query.name, None)
        self._known.note(query)
        for branch, (node, (select, pipeline)) in enumerate(product(nodes, enumerate(submission.pipelines))):
            fragment = self._shared(submission, pipeline, node)
            if fragment is None:
                kind = self._kind_for(pipeline, node)
                carrier = self._known.covering(kind.template, node)
                assert carrier is not None, "carriers were made before fragments"
                fragment = self._known.new_fragment(pipeline, carrier)
                self.why_kind[fragment.id] = kind.why
                yield fragment.carrier
            template = self._known.carrier_of(fragment).template
            part = PartRecord(
                query.id,
                branch,
                0,
                fragment.id,
                tuple(zip(submission.columns, log_columns(pipeline, template), strict=True)),
                pipeline.window is not None,
                keys=tuple(group_columns(pipeline, template)),
                select=select,
                whole=dump_pipeline(submission.whole[select]) if submission.whole else None,
            )
            if self.endings.waits(query.id):
                part.since = Since.SOONEST  # it takes over from another version
            else:
                part.since, part.asked_us = self._beginnings.asked(submission.start, fragment, query.origin)
            self._known.add_part(part)
            self._beginnings.decide(part)
            self._known.note(part)
        self._links.enter(query)
        self._note_submitted(query)

    def _replace(
        self, old: QueryRecord, new: QueryRecord, columns: tuple[str, ...], dropped: list[QueryRecord]
    ) -> None:
        self._note_withdrawn(old, "a new version replaces it")
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
            answering = self._known.answering(pipeline, node, submission.start.us)
            if answering is not None:
                return answering
        return self._known.reusable(pipeline, node)

    def _note_withdrawn(self, query: QueryRecord, reason: str) -> None:
        fragments = [self._state.fragments[part.fragment] for part in self._state.parts_of(query.id)]
        carriers = [self._known.carrier_of(fragment) for fragment in fragments]
        places = dict.fromkeys(place_text(f.id, c.id, c.node) for f, c in zip(fragments, carriers, strict=True))
        text = f"query {query.name} leaves {', '.join(places)}: {reason}"
        self._known.add_history(EventKind.WITHDRAWN, text, query=query.name)

    def _note_submitted(self, query: QueryRecord) -> None:
        fragments = [self._state.fragments[part.fragment] for part in self._state.parts_of(query.id)]
        carriers = [self._known.carrier_of(fragment) for fragment in fragments]
        places = [place_text(f.id, c.id, c.node) for f, c in zip(fragments, carriers, strict=True)]
        kinds = dict.fromkeys(
            f"{c.id} is {c.template.family.carriers}, since {self.why_kind[f.id]}"
            for f, c in zip(fragments, carriers, strict=True)
            if self.why_kind.get(f.id)
        )
        chosen = dict.fromkeys(f"{c.node} was {self._why[c.id]}" for c in carriers if self._why.get(c.id))
        copies = [self._why_copies[query.name]] if query.name in self._why_copies else []
        why = "; ".join([REASONS.get(query.origin, "asked for"), *chosen, *copies, *kinds])
        text = f"query {query.name} enters as {', '.join(places)}: {why}"
        nodes = dict.fromkeys(carrier.node for carrier in carriers)
        self._known.add_history(EventKind.SUBMITTED, text, query=query.name, nodes=nodes)


@dataclass(frozen=True)
class _New:
    """A SELECT that no running carrier takes in."""

    template: Template
    submission: Submission
    pipeline: Pipeline


def _wanted(name: str, template: Template, new: Sequence[_New]) -> Wanted:
    covered = [n for n in new if template.covers(n.template)]
    reads = {s.stream for n in covered for s in n.pipeline.sources if is_link(s.schema_class)}
    makes = {n.submission.name for n in covered if n.submission.origin == LINK}
    return Wanted(name, template.family, len(covered), reads=frozenset(reads), makes=frozenset(makes))
