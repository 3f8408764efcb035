"""What submitting queries would do, found out by letting the controller decide on a copy of its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from towpath.control.decide.choose_node import Places
from towpath.control.decide.controller import Controller, Submission
from towpath.control.decide.requests import Request, planned, submissions, take_in
from towpath.control.state.history import event_text
from towpath.control.state.records import FragmentRecord, FragmentStatus, PartRecord, State
from towpath.plan.pipeline import Pipeline
from towpath.plan.show import missing_words
from towpath.plan.templates import Template, template_of
from towpath.schema import LINK, Catalog


@dataclass(frozen=True)
class Share:
    """How a fragment of a query would run: it answers one SELECT of it, or makes a derived stream."""

    fragment: int
    carrier: str
    node: str
    fragment_runs: bool  # already, before anything is submitted
    carrier_runs: bool
    equal: tuple[str, ...]  # the other queries that the fragment answers
    neighbours: int  # the other fragments in its carrier
    lacking: dict[str, list[str]]  # for a new carrier: what the running ones of the family lack
    kind: str  # of the carrier
    why: str = ""  # which kind of carrier it goes to and why, where there was a choice


@dataclass(frozen=True)
class Piece:
    """What is submitted of a query: one of its SELECTs, or a derived stream that one reads."""

    link: str | None  # the name of the derived stream
    pipeline: Pipeline
    shares: tuple[Share, ...]  # one for each copy
    start: str  # from when on it would answer, and what is read for that


def preview(
    state: State, catalog: Catalog, nodes: Sequence[str], requests: Sequence[Request], places: Places | None = None
) -> dict[str, list[Piece]]:
    """What would be done for each query, by its name. Those that run unchanged stay as they are.

    The state is changed as it would be: give it a copy, such as one loaded from the journal.
    """
    standing = {q.id: q for q in state.queries.values() if q.running}
    before = State(
        dict(state.carriers), {f.id: f for f in state.fragments.values() if _present(f)}, queries=dict(standing)
    )
    controller = Controller(state, catalog, nodes, places)
    wanted = planned(requests, controller, catalog)
    take_in(wanted, controller)
    known = {asked.request.query.name: asked.submissions for asked in wanted}
    viewer = _Viewer(before, state, controller.beginnings.lacking(), controller.queries.why_kind)
    asked = ((r.query.name, known.get(r.query.name) or tuple(submissions(r, catalog))) for r in requests)
    return {name: [viewer.piece(s, n) for s, n in _pieces(made)] for name, made in asked}


def _pieces(made: Iterable[Submission]) -> Iterator[tuple[Submission, int]]:
    for submission in made:
        yield from ((submission, select) for select in range(len(submission.pipelines)))


def _present(fragment: FragmentRecord) -> bool:
    return fragment.status in (FragmentStatus.JOINING, FragmentStatus.LIVE)


class _Viewer:
    def __init__(self, before: State, after: State, lacking: Sequence[PartRecord], why_kind: Mapping[int, str]) -> None:
        self._before = before
        self._after = after
        self._why_kind = why_kind
        self._lacking_past = {(part.query, part.select) for part in lacking}
        self._ids = {query.name: query.id for query in after.queries.values() if query.running}
        self._users: dict[int, dict[str, None]] = {}
        for name, number in self._ids.items():
            for part in after.parts_of(number):
                self._users.setdefault(part.fragment, {})[name] = None
        self._sizes: dict[str, int] = {}
        for fragment in filter(_present, after.fragments.values()):
            self._sizes[fragment.carrier] = self._sizes.get(fragment.carrier, 0) + 1

    def piece(self, submission: Submission, select: int) -> Piece:
        pipeline = submission.pipelines[select]
        parts = [p for p in self._after.parts_of(self._ids[submission.name]) if p.select == select]
        fragments = [self._after.fragments[part.fragment] for part in parts]
        shares = tuple(self._share(submission.name, fragment, template_of(pipeline)) for fragment in fragments)
        link = submission.name if submission.origin == LINK else None
        return Piece(link, pipeline, shares, self._start(submission, select, fragments[0]))

    def _start(self, submission: Submission, select: int, fragment: FragmentRecord) -> str:
        query = self._after.queries[self._ids[submission.name]]
        if query.id in self._before.queries:
            return "as it stands; nothing is read again"
        if query.replaces is not None:
            return "where the version that stands ends; nothing is read again"
        asked = "now" if submission.start.now else event_text(submission.start.us)
        if fragment.carrier not in self._before.carriers:
            return f"{asked}; its streams are read from their beginning, by the new carrier"
        if (query.id, select) not in self._lacking_past:
            return f"{asked}; nothing is read again"
        read_us = self._after.carriers[fragment.carrier].newest_us
        return (
            f"{asked}; others have read its streams up to {event_text(read_us)}, so they are read again from their "
            "beginning, by a Spark query of its own until it has caught up"
        )

    def _share(self, query: str, fragment: FragmentRecord, wanted: Template) -> Share:
        return Share(
            fragment.id,
            fragment.carrier,
            self._after.carriers[fragment.carrier].node,
            fragment.id in self._before.fragments,
            fragment.carrier in self._before.carriers,
            tuple(name for name in self._users[fragment.id] if name != query),
            self._sizes[fragment.carrier] - 1,
            self._lacking(fragment, wanted),
            self._after.carriers[fragment.carrier].template.family.kind,
            self._why(fragment),
        )

    def _why(self, fragment: FragmentRecord) -> str:
        why = self._why_kind.get(fragment.id)
        return f"{self._after.carriers[fragment.carrier].template.family.carriers}, since {why}" if why else ""

    def _lacking(self, fragment: FragmentRecord, wanted: Template) -> dict[str, list[str]]:
        if fragment.carrier in self._before.carriers:
            return {}
        return {
            carrier.id: missing_words(wanted, carrier.template)
            for carrier in self._before.carriers.values()
            if carrier.template.family == wanted.family
        }
