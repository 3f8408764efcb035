"""What becomes of a job that has run before when its file has changed since. Decided before anything is started.

Streams become versions (streams/versions.py). Queries of the file that it does not have any more are withdrawn, changed
ones are replaced, and so are those whose streams are others now. Those that were submitted stay, whatever the file
says; if they cannot be understood any more, the job is refused. A node that is elsewhere now is another one: what it
ran goes on in a new epoch, since who was there before may still run it.

All of that is one decision, made before any carrier is started. So queries that leave with the edit end where the last
run has left them, and do not read on in a stream that the job does not have any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from towpath.config.nodes import ConnectNode, NodeDef
from towpath.config.settings import Start
from towpath.control.decide.controller import Controller, Instruction
from towpath.control.decide.requests import Request, is_as, planned, take_in
from towpath.control.state.history import EventKind, event_text
from towpath.control.state.records import QueryRecord, State
from towpath.errors import JobError, Mistake, QueryError
from towpath.job import Job
from towpath.lang import parse
from towpath.plan import WHOLE
from towpath.plan.pipeline import PipelineSource
from towpath.schema import LINK, Catalog, base_class, is_link, tables_of
from towpath.streams.versions import StreamVersion, Versions, carried_on


def versions(job: Job, before: Sequence[StreamVersion], known: State) -> Versions:
    read = {c for carrier in known.carriers.values() for c in carrier.template.family.read}
    return carried_on(job.streams, before, read)


def requests(job: Job, of_job: Sequence[Request], known: State) -> list[Request]:
    """What is to run, as far as it does not yet. Raises JobError for queries that stay and have lost what they read."""
    submitted = {q.name: q for q in known.queries.values() if q.running and q.origin not in ("job", LINK)}
    asked = [request for request in of_job if request.query.name not in submitted]
    named = {request.query.name for request in asked}
    # A file of the queries folder that is bad now changes nothing: what it said before goes on.
    kept = [q for q in known.queries.values() if q.running and q.origin == "job" and q.name in job.folder.names]
    staying = {**submitted, **{q.name: q for q in kept if q.name not in named}}
    return [*asked, *_again(staying, job, known)]


def _again(staying: Mapping[str, QueryRecord], job: Job, known: State) -> Iterator[Request]:
    problems: list[Mistake] = []
    links = {query.name: query for query in known.queries.values() if query.running and query.origin == LINK}
    for name, record in staying.items():
        if _reads_as_before(record, links, job.catalog, known):
            continue  # it goes on as it is, and needs no plan
        try:
            query = parse(record.sql, job.catalog, name)
        except QueryError as error:
            problems += [_lost(name, problem) for problem in error.problems]
            continue
        copies = len(known.parts_of(record.id)) // len(query.selects)
        fragments = record.fragments if copies == 1 else WHOLE
        yield Request(query, sink=record.sink, origin=record.origin, copies=copies, fragments=fragments)
    if problems:
        raise JobError(f"{job.store}: these queries were taken in and cannot go on with this job file:", problems)


def _reads_as_before(record: QueryRecord, links: Mapping[str, QueryRecord], catalog: Catalog, known: State) -> bool:
    """Whether all streams that a query reads, also through links, are there and of the class that they had."""

    def is_as_before(source: PipelineSource) -> bool:
        if is_link(source.schema_class):
            return source.stream in links and _reads_as_before(links[source.stream], links, catalog, known)
        has_tables = all(catalog.get(table.name) == table for table in tables_of(source.schema_class))
        is_there = source.stream in catalog and has_tables
        return is_there and catalog[source.stream].schema_class == base_class(source.schema_class)

    fragments = (known.fragments[part.fragment] for part in known.parts_of(record.id))
    return all(is_as_before(source) for fragment in fragments for source in fragment.pipeline.sources)


def _lost(name: str, problem: Mistake) -> Mistake:
    hint = f"give the job back what it reads; or start it as it was, and `towpath withdraw {name}`"
    return replace(problem, where=f"query {name}", hint=hint)


# --- what the file said ----------------------------------------------------------------------------------------------


HERE = "embedded"


@dataclass(frozen=True)
class DeclaredJob:
    """What a job file said when the job was last started, as far as carriers and queries do not show it."""

    places: Mapping[str, str] = field(default_factory=dict)  # where nodes are: inside of the process, or at an address
    starts: Mapping[str, str] = field(default_factory=dict)  # from when on queries were to answer when they came
    nodes: Mapping[str, str | None] = field(default_factory=dict)  # where they were to begin then


def said(job: Job, before: DeclaredJob, known: State) -> DeclaredJob:
    """To be remembered; of queries that stand, what held when they came."""
    stand = {query.name for query in known.queries.values() if query.running and query.origin == "job"}
    starts = {name: _start_text(query.start) for name, query in job.queries.items()}
    nodes = {name: query.node for name, query in job.queries.items()}
    kept = [name for name in starts if name in stand and name in before.starts]
    starts |= {name: before.starts[name] for name in kept}
    nodes |= {name: before.nodes[name] for name in kept}
    return DeclaredJob({name: _place(node) for name, node in job.nodes.items()}, starts, nodes)


def ignored(job: Job, before: DeclaredJob, known: State) -> list[Mistake]:
    """Edits that change nothing for a query that stands, with what to do instead."""
    found: list[Mistake] = []
    for record in known.queries.values():
        query = job.queries.get(record.name)
        if query is None or not record.running or record.origin != "job" or record.name not in before.starts:
            continue
        start, asked = before.starts[record.name], _start_text(query.start)
        if asked != start:
            message = (
                f"the query stands and was to answer from {start} on; that stays so, "
                "since from counts when a query comes"
            )
            hint = "give it another name; or start the job without it once, which withdraws it, and then with it again"
            found.append(Mistake(f"queries.{record.name}.from", message, hint))
        there = {known.carriers[known.fragments[p.fragment].carrier].node for p in known.parts_of(record.id)}
        if query.node not in (None, before.nodes[record.name], *there):
            message = f"the query stands on {', '.join(sorted(there))} and stays there: node is where a query begins"
            hint = f"`towpath migrate {record.name} {query.node}` moves it while the job runs"
            found.append(Mistake(f"queries.{record.name}.node", message, hint))
    return found


def elsewhere(job: Job, before: DeclaredJob) -> list[str]:
    """Nodes that are not where they were."""
    return [n for n, node in job.nodes.items() if before.places.get(n, _place(node)) != _place(node)]


def _start_text(start: Start) -> str:
    return "now" if start.now else event_text(start.us)


def _place(node: NodeDef) -> str:
    # What follows a slash are options of the client: the endpoint is the same.
    return node.address.partition("/;")[0] if isinstance(node, ConnectNode) else HERE


# --- the decision ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opening:
    """What is decided when a job is started, before anything is done."""

    summary: str  # of it, in the history
    catalog: Catalog
    requests: Sequence[Request]
    staying: Collection[str]  # queries that the job file has, or had and cannot be read there now
    elsewhere: Collection[str] = ()  # nodes that are not where they were
    all_heard: Callable[[str], bool] = lambda carrier: False  # whether a carrier surely does nothing that nobody knows

    def __call__(self, controller: Controller) -> list[Instruction]:
        controller.known.add_history(EventKind.CONTROLLER_STARTED, self.summary)
        heard = [name for name in controller.state.carriers if self.all_heard(name)]
        found = controller.resume(self.elsewhere)
        for record in list(controller.state.queries.values()):
            if record.running and record.origin == "job" and record.name not in self.staying:
                found += controller.queries.withdraw(record.name, "the job file does not have it any more")
        wanted = [r for r in self.requests if not _is_aside(r, controller, self.catalog)]
        found += take_in(planned(wanted, controller, self.catalog), controller)
        found += controller.queries.endings.heard_of_all(heard)
        return [*found, *controller.queries.catch_up()]


def _is_aside(request: Request, controller: Controller, catalog: Catalog) -> bool:
    """Whether just this was set aside, and would fail again."""
    aside = controller.queries.aside.get(request.query.name)
    return aside is not None and is_as(aside, request, controller, catalog)
