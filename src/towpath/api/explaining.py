"""How queries are planned, and what they share with others. Nothing is started or changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from towpath import html
from towpath import job as jobs
from towpath.api.checking import parse_all
from towpath.api.steering import places_of
from towpath.config.settings import NOW, close_to
from towpath.control.decide import edits
from towpath.control.decide.preview import Piece, Share, preview
from towpath.control.decide.requests import Request, request_of
from towpath.control.journal.journal import Journal
from towpath.control.state.records import State
from towpath.errors import UnknownQueryError
from towpath.job import Job
from towpath.lang import Query, parse, to_sql
from towpath.plan.cut import plan
from towpath.plan.fragments import PlanFragment
from towpath.plan.operators import LogicalOperator
from towpath.plan.show import Words, fragment_words, nodes, parameter_words, template_words, tree
from towpath.plan.templates import template_of
from towpath.schema import Catalog
from towpath.store.layout import Store
from towpath.streams.versions import StreamVersion

AD_HOC = "(--sql)"  # not a name that a query can have
MOST_NAMES = 3


@dataclass(frozen=True)
class Explained:
    """A query's plan and, for each fragment of it, its normal form and how it would run. Prints as a tree."""

    query: Query
    plan: LogicalOperator
    fragments: tuple[PlanFragment, ...]
    pieces: list[Piece]
    catalog: Catalog  # with the streams that are derived for it
    stored: bool  # the job has run before, so its store knows what runs already

    def __str__(self) -> str:
        return "\n".join([self.name, *_lines(self)])

    def _repr_html_(self) -> str:
        return html.text(self.name, "\n".join(_lines(self)))

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def translation(self) -> str:
        """The query in towpath's own SQL, if its text was in the spelling of another dialect."""
        return to_sql(self.query) if self.query.translated else ""

    def report(self) -> dict[str, Any]:
        """The same for scripts."""
        return _report(self)


def explain(
    job: Job | str | Path, names: Sequence[str] = (), *, sql: str | None = None, fragments: str | None = None
) -> list[Explained]:
    """Explains the named queries of a job, all when none is named; `sql` is one more, as if it were submitted to it.

    `fragments`: how they are cut, for those that say nothing else; by default as the job says.
    """
    job = job if isinstance(job, Job) else jobs.load(Path(job))
    queries = parse_all(job)
    shown = _chosen(queries, names, sql)
    if sql is not None:
        queries[AD_HOC] = parse(sql, job.catalog, AD_HOC, job.views)
    return _explain(queries, shown, dataclasses.replace(job, fragments=fragments or job.fragments))


def _chosen(queries: Mapping[str, Query], names: Sequence[str], sql: str | None) -> list[str]:
    unknown = [name for name in names if name not in queries]
    if unknown:
        listed = ", ".join(f"{name!r}{_meant(name, queries)}" for name in unknown)
        raise UnknownQueryError(f"the job has no query named {listed}; `towpath explain JOB --all` shows every query")
    if sql is None:
        return list(dict.fromkeys(names)) or list(queries)
    return [*dict.fromkeys(names), AD_HOC]


def _meant(name: str, known: Iterable[str]) -> str:
    close = close_to(name, known)
    return f" (did you mean {close}?)" if close else ""


def _explain(queries: Mapping[str, Query], shown: Iterable[str], job: Job) -> list[Explained]:
    requests = {name: _request(query, job) for name, query in queries.items()}
    store = Store(job.store)
    state, before = _known(store)
    job, stored = replace(job, streams=edits.versions(job, before, state).streams), store.journal.exists()
    # First what `run` submits, all at once; then the query that is tried.
    nodes, places = list(job.nodes), places_of(job)
    pieces = preview(state, job.catalog, nodes, [r for name, r in requests.items() if name != AD_HOC], places)
    if AD_HOC in requests:
        pieces |= preview(state, job.catalog, nodes, [requests[AD_HOC]], places)
    return [_explained(requests[name], pieces[name], job.catalog, stored) for name in shown]


def _request(query: Query, job: Job) -> Request:
    if query.name in job.queries:
        return request_of(query, job.queries[query.name], job.fragments)
    return Request(query, NOW, fragments=job.fragments)


def _explained(request: Request, pieces: list[Piece], catalog: Catalog, stored: bool) -> Explained:
    made = plan(request.query, catalog, request.cut)
    derived = {d.stream.name: d.stream for d in made.derived}
    return Explained(request.query, made.tree, made.fragments, pieces, {**catalog, **derived}, stored)


def _known(store: Store) -> tuple[State, list[StreamVersion]]:
    """What the journal has, and the streams as they were."""
    if not store.journal.exists():
        return State(), []
    with closing(Journal(store.journal, read_only=True)) as journal:
        return journal.load(), [StreamVersion.from_json(said) for said in journal.streams]


def _lines(entry: Explained) -> Iterator[str]:
    if entry.translation:
        yield "  in towpath's SQL"
        yield from (f"    {line}" for line in entry.translation.splitlines())
    if entry.query.note:
        yield f"  {entry.query.note}"
    yield tree(nodes(entry.plan, entry.catalog, entry.fragments))
    yield from (f"  {line}" for line in fragment_words(entry.fragments))
    selects = sum(piece.link is None for piece in entry.pieces)
    numbers = count(1)
    for piece in entry.pieces:
        several = f"SELECT {next(numbers)}: " if piece.link is None and selects > 1 else ""
        yield f"{several or _derived(piece)}signature {piece.pipeline.signature}"
        yield "  template"
        yield from _words(template_words(template_of(piece.pipeline), entry.catalog))
        yield "  of this query"
        yield from _words(parameter_words(piece.pipeline))
        if entry.stored and piece.link is None:
            yield f"  from: {piece.start}"
        for share in piece.shares:
            copy = f" (a copy on {share.node})" if len(piece.shares) > 1 else ""
            yield f"  sharing{copy}: {sharing_text(share, entry.stored)}"
    yield ""


def _derived(piece: Piece) -> str:
    return "" if piece.link is None else f"derived stream {piece.link}: "


def _words(words: Words) -> Iterator[str]:
    width = max(map(len, words))
    for heading, lines in words.items():
        for n, line in enumerate(lines):
            yield f"    {'' if n else heading:<{width}}  {line}"


def sharing_text(share: Share, stored: bool) -> str:
    equal = f", equal to {_listed(share.equal)}" if share.equal else ""
    carrier = f"carrier {share.carrier} ({share.kind})"
    beside = f"beside {share.neighbours:,} other{'' if share.neighbours == 1 else 's'}" if share.neighbours else "alone"
    why = f"; {share.why}" if share.why else ""
    if not stored:
        return f"fragment {share.fragment} in {carrier}, {beside} there{equal}{why}"
    if share.fragment_runs:
        return f"runs already as fragment {share.fragment} in {carrier}{equal}"
    if share.carrier_runs:
        return f"a new row in {carrier}, no restart, {beside} there{equal}{why}"
    return f"needs a new {carrier}, {beside} there{equal}: {_lacking(share)}{why}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _lacking(share: Share) -> str:
    if not share.lacking:
        return "no carrier has these streams, join columns and kind of window"
    return "; ".join(f"{carrier} lacks {', '.join(parts)}" for carrier, parts in share.lacking.items())


def _report(entry: Explained) -> dict[str, Any]:
    return {
        "translation": entry.translation or None,
        "note": entry.query.note or None,
        "plan": dataclasses.asdict(nodes(entry.plan, entry.catalog, entry.fragments)),
        "fragments": [{"number": f.number, "stream": f.stream, "upstream": f.upstream} for f in entry.fragments],
        "selects": [
            {
                "derived": piece.link,
                "signature": piece.pipeline.signature,
                "template": template_words(template_of(piece.pipeline), entry.catalog),
                "parameters": parameter_words(piece.pipeline),
                "start": piece.start,
                "sharing": dataclasses.asdict(piece.shares[0]),
                "copies": [dataclasses.asdict(share) for share in piece.shares],
            }
            for piece in entry.pieces
        ],
    }
