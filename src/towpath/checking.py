"""All queries of a job, checked together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from towpath.errors import Problem, QueryError
from towpath.job import Job, load
from towpath.lang import parse
from towpath.lang.query import Query


def check(job: Job | str | Path) -> dict[str, Query]:
    """The queries of a job, checked without running anything. Raises JobError or QueryError with every mistake."""
    return parse_all(job if isinstance(job, Job) else load(Path(job)))


def parse_all(job: Job) -> dict[str, Query]:
    """Every query under its name. Raises QueryError with the problems of all of them."""
    catalog = job.catalog
    queries: dict[str, Query] = {}
    problems: list[Problem] = []
    for name, definition in job.queries.items():
        try:
            queries[name] = parse(definition.sql, catalog, name)
        except QueryError as error:
            where = _where(job, name)
            problems += (replace(p, where=f"{where}, {p.where}" if p.where else where) for p in error.problems)
    if problems:
        raise QueryError(f"{len(problems):,} {'mistake' if len(problems) == 1 else 'mistakes'} in queries:", problems)
    return queries


def _where(job: Job, name: str) -> str:
    """The query's .sql file if it has one, else its key in the job file."""
    file = job.queries_folder / f"{name}.sql" if job.queries_folder else None
    if file is None or not file.exists():
        return f"queries.{name}"
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
