"""What somebody asks for, as what the controller takes in: a query, and before it the links that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from towpath.config.settings import BEGINNING, Start
from towpath.control.decide.controller import Controller, Instruction, Submission
from towpath.control.state.records import QueryRecord
from towpath.errors import JobError, Mistake
from towpath.job import QueryDef
from towpath.lang import Query
from towpath.plan import WHOLE
from towpath.plan.cut import Derived, plan
from towpath.schema import LINK, Catalog, SchemaClass, class_of


@dataclass(frozen=True)
class Request:
    """A query to be taken in. `origin` says who asked: those of a job file leave with it, others when withdrawn."""

    query: Query
    start: Start = BEGINNING
    sink: dict[str, str] | None = None
    origin: str = "api"
    node: str | None = None  # where it is to run; None: wherever it can be shared
    copies: int = 1  # on so many nodes at the same time
    fragments: str = WHOLE  # how it is cut into pieces that can sit on different nodes; copies are of whole queries

    @property
    def cut(self) -> str:
        """How it is cut into pieces; a query of several copies is not."""
        return self.fragments if self.copies == 1 else WHOLE


def request_of(query: Query, definition: QueryDef, fragments: str, origin: str = "job") -> Request:
    """A query as a job file defines it; `fragments` is what holds for those that say nothing of it."""
    sink = None if definition.sink is None else definition.sink.record()
    where = (definition.node, definition.copies, definition.fragments or fragments)
    return Request(query, definition.start, sink, origin, *where)


def is_as(record: QueryRecord, request: Request, controller: Controller, catalog: Catalog) -> bool:
    """Whether a query that was taken in is just what is asked for, over streams that are what they were."""
    return record.sink == request.sink and _asks_as(record, request, controller, catalog)


def _asks_as(record: QueryRecord, request: Request, controller: Controller, catalog: Catalog) -> bool:
    """Whether a query that was taken in gives the results that are asked for, wherever they go."""
    parts = request.copies * len(request.query.selects)
    same = (record.sql, record.fragments) == (request.query.sql, request.cut)
    if not same or len(controller.state.parts_of(record.id)) != parts:
        return False
    return controller.classes(record) <= classes_of(request.query, catalog)


def classes_of(query: Query, catalog: Catalog) -> set[SchemaClass]:
    streams = {catalog[name].schema_class for name in query.streams}
    return streams | {class_of(catalog[name]) for name in query.tables}


@dataclass(frozen=True)
class PlannedRequest:
    request: Request
    submissions: tuple[Submission, ...] = ()  # empty: the query runs already, and only its sink is another


def planned(requests: Iterable[Request], controller: Controller, catalog: Catalog) -> list[PlannedRequest]:
    """What is to be taken in of the requests: without those that run already, just so."""
    found = []
    for request in requests:
        record = controller.queries.running.get(request.query.name)
        if record is None or not _asks_as(record, request, controller, catalog):
            found.append(PlannedRequest(request, tuple(submissions(request, catalog))))
        elif record.sink != request.sink:
            found.append(PlannedRequest(request))
    return found


def take_in(wanted: Iterable[PlannedRequest], controller: Controller) -> list[Instruction]:
    """Takes in queries that have changed; one that runs under the same name is replaced, or gets another sink."""
    fresh: dict[str, Submission] = {}
    for asked in wanted:
        if not asked.submissions:
            controller.queries.change_sink(asked.request.query.name, asked.request.sink)
        fresh |= {submission.name: submission for submission in asked.submissions}
    known = [s for s in fresh.values() if s.origin != LINK or controller.queries.running.get(s.name) is None]
    found = controller.queries.submit(known)
    _refuse_past([s.name for s in known if s.origin != LINK], controller)
    return found


def _refuse_past(names: Iterable[str], controller: Controller) -> None:
    """Raises JobError for queries over views that ask for what went through the views before they came."""
    problems: list[Mistake] = []
    for name in names:
        parts = controller.state.parts_of(controller.queries.running[name].id)
        if any(controller.beginnings.is_out_of_reach(part) for part in parts):
            message = "it reads a view, and what its streams had before has been read past: a view is not made again"
            problems.append(Mistake(f"query {name}", message, "let it answer from now on: from: now"))
    if problems:
        raise JobError("nothing was submitted:", problems)


def submissions(request: Request, catalog: Catalog) -> Iterator[Submission]:
    query = request.query
    planned = plan(query, catalog, request.cut)
    for derived in planned.derived:
        yield _link(derived, request)
    yield Submission(
        query.name,
        query.sql,
        tuple(c.name for c in query.columns),
        planned.pipelines,
        request.start,
        request.sink,
        request.origin,
        request.node,
        request.copies,
        request.cut,
        tuple(c.kind.value for c in query.columns),
        planned.whole,
    )


def _link(derived: Derived, request: Request) -> Submission:
    """The query that makes a derived stream. It has the text of the first query that reads it."""
    name, sql, made = derived.stream.name, request.query.sql, (derived.pipeline,)
    return Submission(name, sql, derived.columns, made, origin=LINK, node=request.node, fragments=request.cut)
