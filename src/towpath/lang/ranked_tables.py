"""Top-N as other dialects write it: a derived table that numbers its rows, and WHERE around it that takes the first.

`SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY x) AS rn FROM ...) WHERE rn <= 3` says
the same as QUALIFY inside; what numbers the results of an aggregate is part of that aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from sqlglot import exp

from towpath.lang.functions import AGGREGATES
from towpath.lang.scope import conjuncts, sources_of
from towpath.lang.top import is_ranking
from towpath.lang.window_joins import set_condition

WINDOW_BOUNDS = ("window_start", "window_end")


def rankings(select: exp.Select) -> Iterator[exp.Window]:
    """row_number() OVER (...), and others of its kind, in SELECT and QUALIFY."""
    for root in filter(None, [*select.expressions, select.args.get("qualify")]):
        yield from (node for node in root.find_all(exp.Window) if is_ranking(node))


def by_window(ranking: exp.Window, names: frozenset[str] = frozenset(WINDOW_BOUNDS)) -> bool:
    """Whether each window is ranked by itself; `names` are what a window goes by."""
    keys = ranking.args.get("partition_by") or []
    return any(isinstance(key, exp.Column) and key.name.lower() in names for key in keys)


def take_first(select: exp.Select) -> bool:
    """Rewrites what a SELECT says of the ranks of its derived tables; whether it said anything."""
    found = [inner for source in sources_of(select) if (inner := _ranked(select, source)) is not None]
    moved = [inner for inner in found if _move_conditions(select, inner)]
    for inner in moved:
        _join_aggregate(inner)
        _take_place(select, inner)
    if not moved and select.args.get("qualify"):
        return _join_aggregate(select)
    return bool(moved)


def _ranked(select: exp.Select, source: exp.Expr) -> exp.Select | None:
    """The SELECT of a derived table that numbers its rows. One that has a name for this SELECT alone is put there."""
    inner = source.this if isinstance(source, exp.Subquery) else None
    clause = select.args.get("with_")
    if isinstance(source, exp.Table) and clause is not None and not source.args.get("db"):
        named = next((c for c in clause.expressions if c.alias.lower() == source.name.lower()), None)
        uses = sum(table.name.lower() == source.name.lower() for table in select.find_all(exp.Table))
        if named is None or uses > 1 or not isinstance(named.this, exp.Select) or not _ranks(named.this):
            return None
        inner = named.this
        alias = exp.TableAlias(this=exp.to_identifier(source.alias_or_name))
        subquery = exp.Subquery(this=inner, alias=alias)
        subquery.meta.update(source.meta)
        source.replace(subquery)
        others = [c for c in clause.expressions if c is not named]
        clause.set("expressions", others) if others else select.set("with_", None)
    return inner if isinstance(inner, exp.Select) and _ranks(inner) else None


def _ranks(select: exp.Select) -> dict[str, exp.Expr]:
    """The numbers of its rows, by what a SELECT calls them."""
    return {i.alias.lower(): i.this for i in select.expressions if isinstance(i, exp.Alias) and is_ranking(i.this)}


def _move_conditions(select: exp.Select, inner: exp.Select) -> bool:
    """Conditions on the rank, from WHERE around to QUALIFY inside."""
    where, names = select.args.get("where"), _ranks(inner)
    if where is None or inner.args.get("qualify"):
        return False
    alias = inner.parent.alias.lower() if inner.parent else ""
    alone = len(sources_of(select)) == 1

    def of_rank(condition: exp.Expr) -> bool:
        columns = list(condition.find_all(exp.Column))
        mine = (c.table.lower() == alias if c.table else alone for c in columns)
        return bool(columns) and all(mine) and all(c.name.lower() in names for c in columns)

    conditions = conjuncts(where.this)
    first = [c for c in conditions if of_rank(c)]
    if not first:
        return False
    set_condition(select, where, "this", [c for c in conditions if c not in first])
    for column in [c for condition in first for c in condition.find_all(exp.Column)]:
        column.replace(names[column.name.lower()].copy())
    inner.set("qualify", exp.Qualify(this=_all(first)))
    return True


def _all(conditions: list[exp.Expr]) -> exp.Expr:
    return reduce(lambda a, b: exp.And(this=a, expression=b), [c.copy() for c in conditions])


def _take_place(select: exp.Select, inner: exp.Select) -> None:
    """A SELECT that only picks columns of the first rows becomes the SELECT that ranks them."""
    if {key for key, value in select.args.items() if value} - {"expressions", "from_"}:
        return
    if isinstance(sources_of(select)[0], exp.Subquery) and len(sources_of(select)) == 1:
        items = _picked(select, inner)
        if items is not None:
            inner.set("expressions", items)
            _become(select, inner)


def _become(select: exp.Select, inner: exp.Select) -> None:
    arguments = dict(inner.args)
    for key in list(select.args):
        select.set(key, None)
    for key, value in arguments.items():
        select.set(key, value)


def _named(select: exp.Select) -> dict[str, exp.Expr]:
    """The items of a SELECT by name."""
    return {i.alias_or_name.lower(): i for i in select.expressions if not i.is_star and i.alias_or_name}


def _picked(select: exp.Select, inner: exp.Select) -> list[exp.Expr] | None:
    """The items of a SELECT in the words of the derived table that it reads; None if they are more than its columns."""
    items: list[exp.Expr] = []
    known = _named(inner)
    for item in select.expressions:
        column = item.unalias()
        if isinstance(column, exp.Star) and not any(column.args.values()):
            items += [i.copy() for i in inner.expressions]
            continue
        if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star):
            return None
        found = known.get(column.name.lower())
        if found is None and not any(i.is_star for i in inner.expressions):
            return None
        value = exp.column(column.name) if found is None else found.unalias().copy()
        if found is None:
            value.meta.update(column.meta)
        name = item.alias_or_name if found is None or item.alias else found.alias_or_name
        items.append(_renamed(value, name, item))
    return items


def _renamed(value: exp.Expr, name: str, at: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Column) and value.name == name:
        return value
    made = exp.Alias(this=value, alias=exp.to_identifier(name))
    made.meta.update(at.meta)
    return made


def _join_aggregate(select: exp.Select) -> bool:
    """Ranks the groups of each window in the SELECT that makes them; whether the derived table is such a one."""
    sources = sources_of(select)
    if {key for key, value in select.args.items() if value} - {"expressions", "from_", "qualify"}:
        return False
    inner = sources[0].this if len(sources) == 1 and isinstance(sources[0], exp.Subquery) else None
    if not isinstance(inner, exp.Select) or not _aggregates(inner) or inner.args.get("qualify"):
        return False
    known = _named(inner)
    bounds = frozenset(n for n, i in known.items() if i.unalias().name.lower() in WINDOW_BOUNDS)
    if not all(by_window(ranking, bounds) for ranking in rankings(select)):
        return False
    ranks = _ranks(select)
    items: list[exp.Expr] = []
    for item in select.expressions:
        if item.is_star:
            items += [i.copy() for i in inner.expressions]
        else:
            items.append(_renamed(_inlined(item.unalias(), known, frozenset()), item.alias_or_name, item))
    qualify = _inlined(select.args["qualify"], known, frozenset(ranks))
    unknown = {c.name.lower() for root in (*select.expressions, select.args["qualify"]) for c in _columns(root)}
    if unknown - known.keys() - ranks.keys():
        return False
    inner.set("expressions", items)
    inner.set("qualify", qualify)
    _become(select, inner)
    return True


def _columns(root: exp.Expr) -> Iterator[exp.Column]:
    return (c for c in root.find_all(exp.Column) if not isinstance(c.this, exp.Star))


def _inlined(root: exp.Expr, known: dict[str, exp.Expr], ranks: frozenset[str]) -> exp.Expr:
    """With what the columns of a derived table stand for; `ranks` are no columns of it."""

    def stand_in(node: exp.Expr) -> exp.Expr:
        item = known.get(node.name.lower()) if isinstance(node, exp.Column) and node.name.lower() not in ranks else None
        if item is None:
            return node
        value = item.unalias().copy()
        return value if isinstance(value, exp.Column | exp.Anonymous) else exp.Paren(this=value)

    return root.copy().transform(stand_in)


def _aggregates(select: exp.Select) -> bool:
    calls = (node.name.lower() for item in select.expressions for node in item.find_all(exp.Anonymous))
    return bool(select.args.get("group")) or any(name in AGGREGATES for name in calls)
