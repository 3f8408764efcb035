"""All queries of a job, checked together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from towpath.api.steering import control_mistakes
from towpath.arrow import arrow_schema
from towpath.config.settings import meant, shown
from towpath.errors import JobError, Mistake, ProblemsError, QueryError
from towpath.job import Job, QueryDef, load
from towpath.lang import parse
from towpath.lang.named_views import tables
from towpath.lang.query import Query
from towpath.streams.definition import StreamDef
from towpath.streams.fields import as_pairs
from towpath.streams.reading import UNREADABLE, Form, missing_columns
from towpath.streams.sources import FilesSource
from towpath.tables.watching import refuse_bad

LOOKED_AT = 10  # files of a folder, the newest


def check(job: Job | str | Path) -> dict[str, Query]:
    """The queries of a job, checked without running anything. Raises JobError or QueryError with every mistake."""
    job = job if isinstance(job, Job) else load(Path(job))
    files = list(_unlike_files(job.streams.values()))
    try:
        refuse_bad(job.tables)
    except JobError as error:
        files += error.problems
    try:
        queries = parse_all(job)
    except ProblemsError as error:
        if files:
            raise JobError(
                "the files of streams and tables, and the queries, have mistakes:", [*files, *error.problems]
            ) from None
        raise
    if files:
        raise JobError("the files of streams and tables are not what the job says:", files)
    return queries


def _unlike_files(streams: Iterable[StreamDef]) -> Iterator[Mistake]:
    """Columns that no file of a folder of CSV has: they would be NULL in every row.

    Only who asks hears of it. A job that runs goes on, since files that have them may come.
    """
    for definition in streams:
        source, stream = definition.source, definition.stream
        if isinstance(source, FilesSource) and source.format == "csv" and source.header and "://" not in source.path:
            types = {column.name: column.type for column in stream.columns}
            paths = as_pairs(source.fields)
            form = Form("csv", arrow_schema(types), stream.time, delimiter=source.delimiter, fields=paths)
            yield from _missing(f"streams.{stream.name}.schema", Path(source.path), source.glob, form)


def _missing(where: str, folder: Path, glob: str, form: Form) -> Iterator[Mistake]:
    named = (file for file in folder.iterdir() if fnmatchcase(file.name, glob))
    files = [file for file in named if file.is_file() and not file.name.startswith((".", "_"))]
    newest = sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)[:LOOKED_AT]
    missing: list[list[str]] = []
    for file in newest:
        with suppress(*UNREADABLE):  # what is bad about a file is said where it is refused
            missing.append(missing_columns(str(file), form))
    for column in missing[0] if missing else ():
        if all(column in others for others in missing):
            message = f"no file of {folder} has the column {column} in its header; looked into {newest[0].name}"
            more = f" and {len(newest) - 1} more" if len(newest) > 1 else ""
            yield Mistake(where, message + more, "remove it from the schema, or spell it as the files do")


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
    catalog, views = job.catalog, job.views
    queries: dict[str, Query] = {}
    problems, unsound = _views_problems(job)
    for name, definition in job.queries.items():
        if unsound and not unsound.isdisjoint(tables(definition.sql)):
            continue  # it could only say that again
        try:
            queries[name] = parse(definition.sql, catalog, name, views)
        except QueryError as error:
            problems[name] = placed(error, _where(job, name))
        else:
            others = [*sink_mistakes(queries[name], definition), *copied_lookups(queries[name], definition.copies)]
            problems |= {name: others} if others else {}
    return queries, problems


def sink_mistakes(query: Query, definition: QueryDef) -> Iterator[Mistake]:
    """Columns that a sink names, and its query has not."""
    known = [item.name for item in query.selects[0].items]
    for name in sorted(definition.sink.columns - set(known)) if definition.sink else ():
        yield Mistake(f"queries.{query.name}.sink", f"the query has no column {shown(name)}", meant(name, known))


def _views_problems(job: Job) -> tuple[dict[str, list[Mistake]], set[str]]:
    """What is wrong in views, whoever reads them; and, in lower case, those that stand for nothing because of it."""
    problems: dict[str, list[Mistake]] = {}
    unsound: set[str] = set()
    for name, sql in job.views.items():
        where = f"views.{name}"
        if not unsound.isdisjoint(tables(sql)):
            unsound.add(name.lower())
            continue
        try:
            if len(parse(sql, job.catalog, name, job.views).selects) == 1:
                continue
            message = "a view is one SELECT, here several are put together"
            problems[where] = [Mistake(where, message, "make a view of each, and put UNION ALL into the query")]
        except QueryError as error:
            problems[where] = placed(error, where)
        unsound.add(name.lower())
    return problems, unsound


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
