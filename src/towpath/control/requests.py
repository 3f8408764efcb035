"""What somebody asks for, as what the controller takes in: a query, and before it the links that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from towpath.control.controller import Submission
from towpath.control.records import PartRecord, QueryRecord
from towpath.lang import Query, parse
from towpath.plan.cut import WHOLE, Derived, plan
from towpath.plan.pipeline import Pipeline
from towpath.schema import LINK, Catalog


@dataclass(frozen=True)
class Request:
    """A query to be taken in. `origin` tells who asked: those of a job file leave with it, others when withdrawn."""

    query: Query
    from_now: bool = False
    sink: dict[str, str] | None = None
    origin: str = "api"
    node: str | None = None  # where it is to run; None: wherever it can be shared
    copies: int = 1  # on so many nodes at the same time
    fragments: str = WHOLE  # how it is cut into pieces that can sit on different nodes; copies are of whole queries

    @property
    def cut(self) -> str:
        """How it is cut into pieces; a query of several copies is not."""
        return self.fragments if self.copies == 1 else WHOLE


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
        request.from_now,
        request.sink,
        request.origin,
        request.node,
        request.copies,
        request.cut,
    )


def _link(derived: Derived, request: Request) -> Submission:
    """The query that makes a derived stream. It has the text of the first query that reads it, to be cut again."""
    name, sql, made = derived.stream.name, request.query.sql, (derived.pipeline,)
    return Submission(name, sql, derived.columns, made, origin=LINK, node=request.node, fragments=request.cut)


def pipeline_of(part: PartRecord, query: QueryRecord, catalog: Catalog) -> Pipeline:
    """What a part of a query computes, planned again from the query's text."""
    planned = plan(parse(query.sql, catalog, query.name), catalog, query.fragments)
    if query.origin == LINK:
        return next(derived.pipeline for derived in planned.derived if derived.stream.name == query.name)
    return planned.pipelines[part.select]
