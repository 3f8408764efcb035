"""Checked queries and expressions back to SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, reduce

from sqlglot import TokenType, exp

from towpath.lang.decimals import PLACES, Unscaled, like, of_decimal, scaled
from towpath.lang.dialect import TowpathDialect
from towpath.lang.query import RANK, ROW, WINDOW, Input, Item, Query, Select, SortKey, Top, window
from towpath.schema import RESULT_TIME

_LEVELS: tuple[tuple[type[exp.Expr], ...], ...] = (
    (exp.Or,),
    (exp.And,),
    (exp.Not,),
    (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Like),
    (exp.DPipe,),
    (exp.Add, exp.Sub, exp.TimestampAdd),
    (exp.Mul, exp.Div, exp.Mod),
    (exp.Neg,),
)
_BINDING: dict[type[exp.Expr], int] = {kind: level for level, kinds in enumerate(_LEVELS) for kind in kinds}
_CHAINED = (exp.Or, exp.And, exp.DPipe, exp.Add, exp.Sub, exp.TimestampAdd, exp.Mul, exp.Div, exp.Mod)


def parenthesised(expr: exp.Expression) -> exp.Expression:
    """A copy with the parentheses its structure needs, so that `.sql(dialect)` of any dialect keeps the meaning."""
    top = expr.copy()
    for node in list(top.walk()):
        if node is not top and _needs_parentheses(node):
            paren = exp.Paren()
            node.replace(paren)
            paren.set("this", node)
    return top


def _needs_parentheses(node: exp.Expr) -> bool:
    inner = _BINDING.get(type(node))
    outer = _BINDING.get(type(node.parent)) if node.parent else None
    if inner is None or outer is None:
        return False
    if inner == outer:
        return not (isinstance(node, _CHAINED) and node.arg_key == "this")
    # SQL dialects disagree on how tightly || binds.
    return inner < outer or exp.DPipe in (type(node), type(node.parent))


def expression_text(expr: exp.Expression) -> str:
    """An expression as towpath SQL."""
    printed = parenthesised(expr)
    for identifier in list(printed.find_all(exp.Identifier)):
        identifier.set("quoted", not _plain(identifier.name))
    for column in list(printed.find_all(exp.Column)):
        if column.text("table") == WINDOW:
            column.set("table", None)
        if PLACES in column.meta:
            units = Unscaled(this=column.copy())
            if column is printed:
                printed = units
            else:
                column.replace(units)
    return printed.sql(TowpathDialect)


def to_sql(query: Query) -> str:
    """The query in towpath SQL; parsing it again gives equal selects."""
    times = {view.name: view.stream.time for view in query.views}
    views = [f"{_name(view.name)} AS ({select_text(_with_result_time(view.select, times))})" for view in query.views]
    selects = "\nUNION ALL\n".join(select_text(_with_result_time(select, times)) for select in query.selects)
    return f"WITH {', '.join(views)}\n{selects}" if views else selects


def _with_result_time(select: Select, times: Mapping[str, str]) -> Select:
    """The event time of views by its name in SQL."""
    time_of = {i.alias: times[i.stream] for i in select.inputs if i.stream in times}
    if not time_of:
        return select

    def rename(node: exp.Expression) -> exp.Expression:
        is_time = isinstance(node, exp.Column) and time_of.get(node.table) == node.name
        return exp.column(RESULT_TIME, table=node.text("table"), quoted=True) if is_time else node

    return select.mapped(lambda expr: expr.transform(rename))


def select_text(select: Select) -> str:
    select = _with_tables(select)
    if select.window and len(select.inputs) > 1 and any(i.range_us != select.window.range_us for i in select.inputs):
        return _over_derived_table(select)
    return _lines(
        _items_text(select),
        ", ".join(_input_text(i, select) for i in select.inputs),
        select.where,
        select.group_by,
        select.having,
        select.top,
    )


def _items_text(select: Select) -> str:
    return ", ".join(f"{item_text(item, select.top)} AS {_name(item.name)}" for item in select.items)


def item_text(item: Item, top: Top | None) -> str:
    if top and is_rank(item.expr):
        return top_text(top)
    return expression_text(item.expr if item.scale is None else scaled(item.expr.copy(), item.scale))


def is_rank(expr: exp.Expr) -> bool:
    return isinstance(expr, exp.Column) and expr.text("table") == WINDOW and expr.name == RANK


def top_text(top: Top) -> str:
    """`row_number() OVER (PARTITION BY a ORDER BY b DESC)`."""
    parts = [f"PARTITION BY {', '.join(map(expression_text, top.partition_by))}"] if top.partition_by else []
    parts += [f"ORDER BY {', '.join(map(_sort_key_text, top.order_by))}"]
    return f"{top.function}() OVER ({' '.join(parts)})"


def _sort_key_text(key: SortKey) -> str:
    nulls = "" if key.nulls_first is not key.descending else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return f"{expression_text(key.expr)}{' DESC' if key.descending else ''}{nulls}"


def _with_tables(select: Select) -> Select:
    """Columns that tables bring as those of the tables."""
    columns = {
        (i.alias, brought.name): (alias, name)
        for i in select.inputs
        for alias, lookup in zip(_table_aliases(i, select), i.lookups, strict=True)
        for name, brought in lookup.columns
    }
    return select.mapped(lambda expr: _of_table(expr, columns)) if columns else select


def _of_table(expr: exp.Expression, columns: Mapping[tuple[str, str], tuple[str, str]]) -> exp.Expression:
    def rename(node: exp.Expression) -> exp.Expression:
        found = columns.get((node.text("table"), node.name)) if isinstance(node, exp.Column) else None
        return node if found is None else like(node, exp.column(found[1], table=found[0], quoted=True))

    return expr.transform(rename)


def _table_aliases(source: Input, select: Select) -> list[str]:
    """What the tables of an input are called: like nothing else in FROM."""
    taken = {i.alias.lower() for i in select.inputs}
    found: list[str] = []
    for lookup in source.lookups:
        wanted = f"{source.alias}_{lookup.table}"
        while wanted.lower() in taken:
            wanted += "_"
        taken.add(wanted.lower())
        found.append(wanted)
    return found


def _input_text(source: Input, select: Select) -> str:
    named = f"{_name(source.stream)} AS {_name(source.alias)}"
    if select.window and (source.range_us is None or source.range_us == select.window.range_us):
        named = f"{named} {select.window.text}"
    elif source.range_us:
        named = f"{named} {window(source.range_us, None)}"
    return f"{named}{_joined_tables(source, select)}"


def _joined_tables(source: Input, select: Select) -> str:
    text = ""
    columns: dict[tuple[str, str], tuple[str, str]] = {}
    for alias, lookup in zip(_table_aliases(source, select), source.lookups, strict=True):
        equal = []
        decimals = {name: brought.decimal for name, brought in lookup.columns}
        for value, name in lookup.keys:
            left = value.transform(lambda n: like(n, exp.column(n.name, table=source.alias)) if _is_of_row(n) else n)
            right = of_decimal(exp.column(name, table=alias, quoted=True), decimals.get(name))
            equal.append(expression_text(exp.EQ(this=_of_table(left, columns), expression=right)))
        kind = "LEFT JOIN" if lookup.outer else "JOIN"
        text += f" {kind} {_name(lookup.table)} AS {_name(alias)} ON {' AND '.join(equal)}"
        columns |= {(source.alias, brought.name): (alias, name) for name, brought in lookup.columns}
    return text


def _is_of_row(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and node.text("table") == ROW


def _over_derived_table(select: Select) -> str:
    assert select.window
    used: dict[exp.Expression, str] = {}
    for column in (c for e in select.above for c in e.find_all(exp.Column) if c.text("table") != WINDOW):
        used.setdefault(column, f"c{len(used) + 1}")
    inner = _lines(
        ", ".join(f"{expression_text(c)} AS {name}" for c, name in used.items()) or "1 AS one",
        ", ".join(_input_text(i, replace(select, window=None)) for i in select.inputs if i.range_us),
        select.where,
    )

    def renamed(expr: exp.Expression) -> exp.Expression:
        top = exp.Paren(this=expr.copy())
        for node in list(top.find_all(exp.Column)):
            if node in used:
                node.replace(exp.column(used[node], table="j"))
        return top.this

    outer = replace(select, where=()).mapped(renamed)
    return _lines(
        _items_text(outer), f"({inner}) {select.window.text} AS j", (), outer.group_by, outer.having, outer.top
    )


def _lines(
    items: str,
    inputs: str,
    where: Iterable[exp.Expression],
    group_by: Iterable[exp.Expression] = (),
    having: Iterable[exp.Expression] = (),
    top: Top | None = None,
) -> str:
    parts = [f"SELECT {items}", f"FROM {inputs}"]
    if where := list(where):
        parts.append(f"WHERE {_all(where)}")
    if group_by := list(group_by):
        parts.append(f"GROUP BY {', '.join(expression_text(e) for e in group_by)}")
    if having := list(having):
        parts.append(f"HAVING {_all(having)}")
    if top:
        parts.append(f"QUALIFY {top_text(top)} <= {top.most}")
    return "\n".join(parts)


def _all(conditions: Iterable[exp.Expression]) -> str:
    return expression_text(reduce(lambda a, b: exp.And(this=a, expression=b), [c.copy() for c in conditions]))


def _name(name: str) -> str:
    return exp.to_identifier(name, quoted=not _plain(name)).sql(TowpathDialect)


@lru_cache(maxsize=4096)
def _plain(name: str) -> bool:
    """Whether a name is read as a name without quotes."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return False
    return [token.token_type for token in TowpathDialect().tokenize(name)] == [TokenType.VAR]
