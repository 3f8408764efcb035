"""What SQL has and the language has not: the words for it, and what to do instead."""

from __future__ import annotations

from sqlglot import exp

from towpath.lang.functions import changing
from towpath.lang.underline import Problems, span

_NO_ORDER = "results are a stream ordered by result time; order them where you read them"
_ONE_LEVEL = "join the streams in FROM instead, or make it a query of its own"

CLAUSES: dict[str, tuple[str, str]] = {
    "with_": ("WITH is not supported", "write the inner SELECT as a derived table: FROM (SELECT ...) AS name"),
    "distinct": ("SELECT DISTINCT is not supported", "GROUP BY the columns over a window: [RANGE 10 SECONDS]"),
    "order": ("ORDER BY is not supported", _NO_ORDER),
    "sort": ("SORT BY is not supported", _NO_ORDER),
    "cluster": ("CLUSTER BY is not supported", _NO_ORDER),
    "distribute": ("DISTRIBUTE BY is not supported", _NO_ORDER),
    "limit": ("LIMIT is not supported", "a standing query never ends; limit the rows where you read them"),
    "offset": ("OFFSET is not supported", "a standing query never ends; skip rows where you read them"),
    "qualify": ("QUALIFY is not supported", "filter with WHERE, or with HAVING over a window"),
    "windows": ("WINDOW is not supported", "give the stream a window: FROM stream [RANGE 10 SECONDS]"),
    "laterals": ("LATERAL is not supported", "name the streams in FROM and tie them by an equality in WHERE"),
    "rollup": ("ROLLUP is not supported", "write a SELECT for each grouping, with UNION ALL between them"),
    "totals": ("WITH TOTALS is not supported", "write a SELECT for each grouping, with UNION ALL between them"),
    "all": ("GROUP BY ALL is not supported", "name the columns"),
    "joins": ("a join inside a join is not supported", "write FROM a, b, c WHERE a.x = b.x AND b.y = c.y"),
    "sample": ("SAMPLE is not supported", "a query reads every tuple of its streams; choose among them with WHERE"),
    "version": ("reading a stream as of a time is not supported", "choose times with WHERE"),
    "when": ("reading a stream as of a time is not supported", "choose times with WHERE"),
    "pivots": ("PIVOT and UNPIVOT are not supported", "name the columns one by one, with CASE where it takes one"),
    "hints": ("hints behind an input are not supported", "leave them out"),
    "into": ("INTO is not supported", "a query's results are kept under the query's name"),
}

_GROUPINGS = "write a SELECT for each grouping, with UNION ALL between them"
_SUBQUERY = ("a SELECT inside an expression is not supported", _ONE_LEVEL)
_INTERVAL = ("INTERVAL is not supported", "windows are written in FROM: stream [RANGE 10 SECONDS]")
_PARAMETER = ("parameters are not supported", "write the value itself")

EXPRESSIONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Window: ("OVER is not supported", "give the stream a window and use GROUP BY: FROM stream [RANGE 10 SECONDS]"),
    exp.Filter: ("FILTER is not supported", "aggregate a CASE: sum(CASE WHEN condition THEN x END)"),
    exp.Select: _SUBQUERY,
    exp.Subquery: _SUBQUERY,
    exp.Exists: _SUBQUERY,
    exp.Union: _SUBQUERY,
    exp.Interval: _INTERVAL,
    exp.Placeholder: _PARAMETER,
    exp.Parameter: _PARAMETER,
    exp.SessionParameter: _PARAMETER,
    exp.ILike: ("ILIKE is not supported", "write lower(x) LIKE 'pattern'"),
    exp.Escape: ("ESCAPE is not supported", ""),
    exp.NullSafeEQ: ("<=> is not supported", "write x = y OR (x IS NULL AND y IS NULL)"),
    exp.NullSafeNEQ: ("IS DISTINCT FROM is not supported", "write x <> y, and say with IS NULL what NULL means"),
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
