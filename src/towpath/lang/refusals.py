"""What SQL has and the language has not: the words for it, and what is missing or says the same."""

from __future__ import annotations

from sqlglot import exp

from towpath.lang.functions import changing
from towpath.lang.underline import Problems, span

_NO_ORDER = "results are a stream ordered by result time; order them where you read them"
_ONE_LEVEL = "subqueries in expressions are missing; a join gives a row for every pair, IN and EXISTS one at most"
_OVER = (
    "values over other rows (OVER) are missing; row_number, rank and dense_rank stand in QUALIFY, "
    "where they choose the first rows of each window"
)
_DISTINCT = "each row once for ever is missing; GROUP BY over a window gives each row once per window"
_TOP = "put it into a SELECT with a window, in parentheses, where it gives the first rows of each window"
_SAMPLE = "reading a part of a stream is missing: a query reads every tuple"
_AS_OF = "choosing the version of a row by a time (as-of joins) is missing"

CLAUSES: dict[str, tuple[str, str]] = {
    "with_": ("WITH is not supported", "write the inner SELECT as a derived table: FROM (SELECT ...) AS name"),
    "distinct": (
        "SELECT DISTINCT is not supported",
        _DISTINCT,
    ),
    "order": ("ORDER BY is not supported", _NO_ORDER),
    "sort": ("SORT BY is not supported", _NO_ORDER),
    "cluster": ("CLUSTER BY is not supported", _NO_ORDER),
    "distribute": ("DISTRIBUTE BY is not supported", _NO_ORDER),
    "limit": (
        "LIMIT is not supported",
        _TOP,
    ),
    "offset": ("OFFSET is not supported", "rows behind the first ones of a window are missing"),
    "windows": ("WINDOW is not supported", "write it behind OVER"),
    "alias": ("the name of a window is not supported behind OVER", "write OVER (PARTITION BY ... ORDER BY ...)"),
    "spec": ("a frame of rows is not supported", "ranks have none; values of other rows are missing"),
    "laterals": ("LATERAL is not supported", "a table for each row (LATERAL, UNNEST) is missing"),
    "rollup": ("ROLLUP is not supported", "write a SELECT for each grouping, with UNION ALL between them"),
    "totals": ("WITH TOTALS is not supported", "write a SELECT for each grouping, with UNION ALL between them"),
    "all": ("GROUP BY ALL is not supported", "name the columns"),
    "joins": ("a join inside a join is not supported", "write FROM a, b, c WHERE a.x = b.x AND b.y = c.y"),
    "sample": ("SAMPLE is not supported", _SAMPLE),
    "version": ("reading a stream as of a time is not supported", _AS_OF),
    "when": ("reading a stream as of a time is not supported", _AS_OF),
    "pivots": ("PIVOT and UNPIVOT are not supported", "name the columns one by one, with CASE where it takes one"),
    "hints": ("hints behind an input are not supported", "leave them out"),
    "into": ("INTO is not supported", "a query's results are kept under the query's name"),
}

_GROUPINGS = "write a SELECT for each grouping, with UNION ALL between them"
_SUBQUERY = ("a SELECT inside an expression is not supported", _ONE_LEVEL)
_INTERVAL = (
    "INTERVAL is not supported here",
    "lengths of time as values are missing: an INTERVAL stands behind + or - of a timestamp or a date",
)
_PARAMETER = ("parameters are not supported", "write the value itself")

EXPRESSIONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Window: ("OVER is not supported", _OVER),
    exp.Filter: ("FILTER is supported behind an aggregate alone", "write sum(x) FILTER (WHERE condition)"),
    exp.Select: _SUBQUERY,
    exp.Subquery: _SUBQUERY,
    exp.Exists: _SUBQUERY,
    exp.Union: _SUBQUERY,
    exp.Interval: _INTERVAL,
    exp.AtTimeZone: (
        "AT TIME ZONE is not supported",
        "all timestamps are in UTC; t + INTERVAL '2' HOUR is the time of a place that is always two hours ahead",
    ),
    exp.Placeholder: _PARAMETER,
    exp.Parameter: _PARAMETER,
    exp.SessionParameter: _PARAMETER,
    exp.SimilarTo: ("SIMILAR TO is not supported", "patterns of this kind are missing; there are LIKE and regexp_like"),
    exp.Escape: ("ESCAPE is not supported", ""),
    exp.Star: ("* stands alone in SELECT or in count(*)", "name the columns"),
    exp.Distinct: ("DISTINCT is supported in count(DISTINCT x) alone", ""),
    exp.Tuple: ("row values are not supported", "name the columns one by one"),
    exp.Alias: ("a name is given in SELECT alone", ""),
    exp.Rollup: ("ROLLUP is not supported", _GROUPINGS),
    exp.Cube: ("CUBE is not supported", _GROUPINGS),
    exp.GroupingSets: ("GROUPING SETS are not supported", _GROUPINGS),
    exp.CurrentTimestamp: changing("current_timestamp"),
    exp.CurrentDate: changing("current_date"),
    exp.CurrentTime: changing("current_time"),
    exp.CurrentUser: changing("current_user"),
    exp.Localtime: changing("localtime"),
    exp.Localtimestamp: changing("localtimestamp"),
}


def refuse_clauses(node: exp.Expr, read: str, problems: Problems) -> None:
    """Notes every clause of a node but those that are `read` elsewhere: nothing is dropped in silence."""
    for clause, value in node.args.items():
        if clause in read.split() or not value:
            continue
        message, hint = CLAUSES.get(clause, (f"{clause.strip('_').upper()} is not supported", ""))
        at = value[0] if isinstance(value, list) else value
        problems.add(at if isinstance(at, exp.Expr) and span(at) else node, message, hint)


def refuse_expression(node: exp.Expr, problems: Problems) -> None:
    message, hint = EXPRESSIONS.get(type(node), (f"{problems.text(node)} is not supported", ""))
    problems.add(node, message, hint)
