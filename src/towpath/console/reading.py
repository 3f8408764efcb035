"""What pages ask for beside the running job: whether a text is a query, how it would run, what one has answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field

from towpath.api.explaining import Explained, explain, sharing_text
from towpath.config.sqlfiles import NAME, NAME_HINT
from towpath.control.journal.answers import Answers
from towpath.control.journal.journal import Journal
from towpath.errors import Mistake, QueryError
from towpath.job import Job
from towpath.lang import parse
from towpath.results import Part, Position, end, read
from towpath.results.render import is_number, json_rows
from towpath.store.layout import Store

LONGEST_SQL = 100_000
MOST_RESULTS = 500
FIRST_LOOK = 8  # micro-batches back; then eight times as many, until there are rows enough

Sql = Annotated[str, Field(max_length=LONGEST_SQL)]


@dataclass(frozen=True)
class CheckRequest:
    sql: Sql
    name: Annotated[str, Field(max_length=500)] = ""  # checked too, unless it is empty


@dataclass(frozen=True)
class Underlined:
    """A mistake with its place in the text; without one, it is about the name."""

    message: str
    hint: str
    line: int | None = None  # from 1
    column: int | None = None
    length: int | None = None  # characters, on that line


@dataclass(frozen=True)
class Checked:
    problems: list[Underlined]
    columns: dict[str, str] = field(default_factory=dict)  # of the results, with their types; none with problems


@dataclass(frozen=True)
class ExplainRequest:
    sql: Sql


@dataclass(frozen=True)
class Operator:
    operator: str
    detail: str
    rate: float  # estimated tuples per second
    fragment: int | None
    inputs: list[Operator]


@dataclass(frozen=True)
class Seat:
    """Where a piece of the query would run."""

    node: str
    carrier: str
    kind: str
    sharing: str  # in a sentence
    equal: list[str]  # queries that its fragment answers too


@dataclass(frozen=True)
class ExplainedPiece:
    derived: str | None  # the derived stream that it makes; None: it answers a SELECT of the query
    start: str  # from when on it would answer
    template: dict[str, list[str]]
    parameters: dict[str, list[str]]
    seats: list[Seat]  # one for each copy


@dataclass(frozen=True)
class ExplainAnswer:
    translation: str  # into towpath's own SQL, if the text is in another dialect's
    note: str
    plan: Operator
    pieces: list[ExplainedPiece]


@dataclass(frozen=True)
class ResultsRequest:
    name: Annotated[str, Field(max_length=500)]
    limit: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 100


@dataclass(frozen=True)
class Results:
    """The newest rows of a query, the newest first."""

    columns: list[str]
    numbers: list[bool]  # which columns are
    rows: list[list[Any]]
    more: bool  # there are older ones


def check(job: Job, asked: CheckRequest) -> Checked:
    problems = [] if not asked.name or NAME.fullmatch(asked.name) else [_bad_name(asked.name)]
    columns: dict[str, str] = {}
    try:
        query = parse(asked.sql, job.catalog, asked.name or "query", job.views)
        columns = {column.name: column.kind.value for column in query.columns}
    except QueryError as error:
        problems += [_underlined(problem) for problem in error.problems]
    return Checked(problems, {} if problems else columns)


def _bad_name(name: str) -> Underlined:
    return Underlined(f"{name!r} is not a valid name", NAME_HINT)


def _underlined(problem: Mistake) -> Underlined:
    place = re.fullmatch(r"line (\d+), column (\d+)", problem.where)
    if place is None:
        return Underlined(problem.message, problem.hint)
    marks = problem.excerpt.rsplit("\n", 1)[-1].count("^")
    return Underlined(problem.message, problem.hint, int(place[1]), int(place[2]), max(1, marks))


def explained(job: Job, asked: ExplainRequest) -> ExplainAnswer:
    """As if it were submitted now. Raises QueryError with what is wrong with it."""
    (found,) = explain(job, sql=asked.sql)
    report = found.report()
    pieces = [
        ExplainedPiece(said["derived"], said["start"], said["template"], said["parameters"], _seats(found, n))
        for n, said in enumerate(report["selects"])
    ]
    return ExplainAnswer(found.translation, found.query.note or "", _operator(report["plan"]), pieces)


def _operator(said: dict[str, Any]) -> Operator:
    inputs = [_operator(below) for below in said["inputs"]]
    return Operator(said["operator"], said["detail"], said["rate"], said["fragment"], inputs)


def _seats(found: Explained, piece: int) -> list[Seat]:
    return [
        Seat(share.node, share.carrier, str(share.kind), sharing_text(share, found.stored), list(share.equal))
        for share in found.pieces[piece].shares
    ]


def results(store: Store, asked: ResultsRequest) -> Results:
    """Raises UnknownQueryError."""
    with closing(Journal(store.journal, read_only=True)) as journal:
        parts = Answers(journal, store).parts(asked.name)
    table = _newest(parts, asked.limit + 1)
    more = table.num_rows > asked.limit
    shown = table.slice(max(0, table.num_rows - asked.limit))
    numbers = [is_number(f.type) for f in shown.schema]
    rows = [[_exact(value) for value in row] for row in json_rows(shown)]
    return Results(shown.column_names, numbers, rows[::-1], more)


def _exact(value: Any) -> Any:
    """A browser rounds whole numbers that need more than 53 bits, so they go as text."""
    return str(value) if isinstance(value, int) and abs(value) > 2**53 else value


def _newest(parts: Sequence[Part], rows: int) -> pa.Table:
    """At least so many, if there are: from as few micro-batches as it takes, since a log may have millions of rows."""
    newest = end(parts)
    back = FIRST_LOOK
    while True:
        after = Position({part.key: max(-1, newest.of(part) - back) for part in parts})
        table = read(parts, after=after)
        if table.num_rows >= rows or all(batch < 0 for batch in after.seen.values()):
            return table
        back *= 8
