"""All queries of a job, checked together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from towpath.api.steering import control_mistakes
from towpath.errors import JobError, Mistake, QueryError
from towpath.job import Job, load
from towpath.lang import parse
from towpath.lang.query import Query
from towpath.tables.watching import refuse_bad


def check(job: Job | str | Path) -> dict[str, Query]:
    """The queries of a job, checked without running anything. Raises JobError or QueryError with every mistake."""
    job = job if isinstance(job, Job) else load(Path(job))
    queries = parse_all(job)
    refuse_bad(job.tables)
    return queries


def parse_all(job: Job) -> dict[str, Query]:
    """Every query under its name.

    Raises QueryError with the problems of all of them, and of files that hold none; JobError if the control section has
    problems, too.
    """
    queries, problems = _parse(job)
    found = [*job.folder.problems, *(p for found in problems.values() for p in found)]
    if wrong := control_mistakes(job):
        raise JobError("the job names a planner or a policy that cannot be used:", [*wrong, *found])
    refuse(found)
    return queries


def parse_good(job: Job) -> tuple[dict[str, Query], list[Mistake]]:
    """As `parse_all`, but a bad file of the queries folder only keeps its own query out; its problems are returned."""
    queries, problems = _parse(job)
    refuse([p for name, found in problems.items() if name not in job.folder.names for p in found])
    return queries, [*job.folder.problems, *(p for found in problems.values() for p in found)]


def refuse(problems: Sequence[Mistake]) -> None:
    if problems:
        raise QueryError(f"{len(problems):,} {'mistake' if len(problems) == 1 else 'mistakes'} in queries:", problems)


def _parse(job: Job) -> tuple[dict[str, Query], dict[str, list[Mistake]]]:
    catalog = job.catalog
    queries: dict[str, Query] = {}
    problems: dict[str, list[Mistake]] = {}
    for name, definition in job.queries.items():
        try:
            queries[name] = parse(definition.sql, catalog, name)
        except QueryError as error:
            problems[name] = placed(error, _where(job, name))
        else:
            problems |= {name: found} if (found := list(copied_lookups(queries[name], definition.copies))) else {}
    return queries, problems


def copied_lookups(query: Query, copies: int) -> Iterator[Mistake]:
    """Copies are to answer alike, and each meets the version of a table that its own micro-batches have."""
    if copies > 1 and query.tables:
        message = f"expected 1, got {copies}: the query reads the table {min(query.tables)}"
        hint = "remove copies: each could meet another version of the table"
        yield Mistake(f"queries.{query.name}.copies", message, hint)


def placed(error: QueryError, where: str | Path) -> list[Mistake]:
    """The problems of a query's text with the place that the text is at."""
    return [replace(p, where=f"{short(where)}, {p.where}" if p.where else short(where)) for p in error.problems]


def short(where: str | Path) -> str:
    here = Path.cwd()
    return str(where.relative_to(here) if isinstance(where, Path) and where.is_relative_to(here) else where)


def _where(job: Job, name: str) -> str | Path:
    """The query's .sql file if it has one, else its key in the job file."""
    if job.queries_folder is None or name not in job.folder.names:
        return f"queries.{name}"
    return job.queries_folder / f"{name}.sql"
