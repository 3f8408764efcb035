"""The entry: SQL text to checked query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from towpath.errors import QueryError
from towpath.lang.budget import MOST_PARTS, MOST_SELECTS, Budget, TooLarge
from towpath.lang.decimals import at_scale
from towpath.lang.fields import fold
from towpath.lang.literals import cast
from towpath.lang.named_views import NONE, compose
from towpath.lang.query import Item, Query, Select
from towpath.lang.refusals import refuse_clauses
from towpath.lang.select import SelectReader, read_names
from towpath.lang.show import is_rank
from towpath.lang.spellings import rewrite
from towpath.lang.statements import DialectStatement, aggregates, refuse_changes
from towpath.lang.syntax import read
from towpath.lang.typing import a, widest
from towpath.lang.underline import Composed, Problems, span
from towpath.lang.views import Views
from towpath.schema import Catalog, Type


def parse(sql: str, catalog: Catalog, name: str = "query", named: Mapping[str, str] = NONE) -> Query:
    """The checked query of a text. Raises QueryError with all mistakes, each with its place.

    `named` are the views that a job has, each before those that read it (named_views.py).
    """
    problems, composed = Problems(sql), Composed(sql)
    selects: tuple[Select, ...] = ()
    views = Views(catalog)
    translated, note = False, ""
    try:
        composed = compose(sql, named)
        problems = Problems(composed.text, composed)
        found = read(composed.text, problems)
        if found is not None:
            statement, tree = found
            translated = _rewrite(statement, tree, catalog, problems)
            note = _note(statement, name)
            selects = () if len(problems) else _read_selects(tree, views, problems)
    except RecursionError:
        problems.add((0, 1), "the query is nested too deeply", "take parentheses out, or split the query")
    except TooLarge as error:
        message = f"the query has more than {MOST_PARTS:,} parts (columns, literals, operators and calls)"
        hint = "split it; a name counts with all that it stands for, and what CASE compares once for each WHEN"
        problems.add(error.place, message, hint)
    wrong = problems.in_order()
    if wrong:
        count = "a problem" if len(wrong) == 1 else f"{len(wrong)} problems"
        raise QueryError(f"{name} has {count}", wrong)
    return Query(name, composed.text, selects, tuple(views.found), translated, note)


def _rewrite(statement: DialectStatement, tree: exp.Expr, catalog: Catalog, problems: Problems) -> bool:
    """Brings the spelling of other dialects into towpath's own; whether there was any."""
    fold(tree)
    rewritten = rewrite(tree, catalog, problems)
    if statement.changes and aggregates(tree):
        refused = refuse_changes(statement.changes)
        problems.add(refused.place, refused.message, refused.hint)
    return rewritten or statement.other


def _note(statement: DialectStatement, name: str) -> str:
    if not statement.result or statement.result.lower() == name.lower():
        return ""
    return f"the text calls its results {statement.result}; they are kept under the query's name, {name}"


def _read_selects(tree: exp.Expr, views: Views, problems: Problems) -> tuple[Select, ...]:
    budget = Budget()
    # A SELECT reads its own WITH; that of a union is for all of its SELECTs.
    named = {} if isinstance(tree, exp.Select) else read_names(tree, SelectReader(views, problems, budget), problems)
    raws = _union(tree, problems)
    if len(raws) > MOST_SELECTS:
        message = f"{len(raws):,} SELECTs, at most {MOST_SELECTS} can be put together"
        problems.add(raws[MOST_SELECTS], message, "split the query")
        return ()
    readers = (SelectReader(views, problems, budget, named, is_first=n == 0) for n in range(len(raws)))
    selects = [reader.read(raw) for reader, raw in zip(readers, raws, strict=True)]
    known = [s for s in selects if s]
    if len(known) < len(raws) or not known:
        return ()
    return _alike(known, raws, problems)


def _union(tree: exp.Expr, problems: Problems) -> list[exp.Select]:
    """The SELECTs under UNION ALL, from left to right."""
    found: list[exp.Select] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Select):
            found.append(node)
        elif isinstance(node, exp.Subquery) and not node.alias:
            refuse_clauses(node, "this", problems)
            waiting.append(node.this)
        elif isinstance(node, exp.SetOperation):
            _check_union(node, problems)
            waiting += [node.args["expression"], node.this]
        else:
            problems.add(node, f"a query is a SELECT, got {problems.text(node)}")
    return found


def _check_union(node: exp.SetOperation, problems: Problems) -> None:
    refuse_clauses(node, "this expression distinct with_", problems)
    at = span(node.args["expression"]) or span(node) or (0, 1)
    if not isinstance(node, exp.Union):
        problems.add(at, f"{node.key.upper()} is not supported", "UNION ALL is the only way to combine SELECTs")
    elif node.args.get("distinct"):
        problems.add(at, "UNION without ALL is not supported", "write UNION ALL; duplicates stay in the stream")


def _alike(selects: list[Select], raws: Sequence[exp.Select], problems: Problems) -> tuple[Select, ...]:
    """The SELECTs with the names of the first, and every column in the type that holds all of its values."""
    first = selects[0]
    for select, raw in zip(selects, raws, strict=True):
        if len(select.items) != len(first.items):
            message = f"the first SELECT has {len(first.items)} output columns, this one has {len(select.items)}"
            problems.add(raw, message, "UNION ALL needs the same number of columns everywhere")
    if len(problems):
        return ()
    columns = [_widen(column, problems) for column in zip(*(s.items for s in selects), strict=True)]
    return tuple(replace(s, items=items) for s, items in zip(selects, zip(*columns, strict=True), strict=True))


def _units(item: Item, scale: int) -> exp.Expression:
    value = item.expr if item.type is Type.BIGINT else cast(item.expr, Type.BIGINT)
    return at_scale(value, item.scale or 0, scale)


def _widen(column: tuple[Item, ...], problems: Problems) -> list[Item]:
    first = column[0]
    if any(item.scale is not None for item in column) and all(item.type.integral for item in column):
        scale = max(item.scale or 0 for item in column)
        return [Item(first.name, _units(item, scale), Type.BIGINT, scale) for item in column]
    common = None if any(i.scale is not None for i in column) else widest([item.type for item in column])
    if common is None:
        kind = first.column.kind
        other = next(
            i for i in column if widest((first.type, i.type)) is None or (i.scale is None) != (first.scale is None)
        )
        message = f"column {first.name} is {a(kind)} in the first SELECT and {a(other.column.kind)} here"
        problems.add(other.expr, message, "make them alike with CAST")
        return list(column)
    for item in column:
        if item.type is not common and is_rank(item.expr):
            hint = "cast the others to bigint"
            problems.add(item.expr, f"a rank stays a bigint, but column {first.name} is {a(common)} elsewhere", hint)
    return [Item(first.name, item.expr if item.type is common else cast(item.expr, common), common) for item in column]
