"""What becomes of a job that has run before when its file has changed since. Decided before anything is started.

Streams become versions (streams/versions.py). Queries of the file that it does not have any more are withdrawn, changed
ones are replaced, and so are those whose streams are others now. Those that were submitted stay, whatever the file
says; if they cannot be understood any more, the job is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from towpath.control.records import QueryRecord, State
from towpath.control.requests import Request
from towpath.errors import JobError, Problem, QueryError
from towpath.job import Job
from towpath.lang import parse
from towpath.plan.cut import WHOLE
from towpath.schema import LINK
from towpath.streams.versions import Version, Versions, carried_on


def versions(job: Job, before: Sequence[Version], known: State) -> Versions:
    read = {c for carrier in known.carriers.values() for c in carrier.template.family.classes}
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
    problems: list[Problem] = []
    for name, record in staying.items():
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


def _lost(name: str, problem: Problem) -> Problem:
    hint = f"give the job back what it reads; or start it as it was, and `towpath withdraw {name}`"
    return replace(problem, where=f"query {name}", hint=hint)
