"""One SELECT of the tree to one checked `Select`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from towpath.lang.budget import MOST_WIDE, Budget
from towpath.lang.decimals import units_of
from towpath.lang.functions import AGGREGATE_NODES, BOOLEAN
from towpath.lang.grouping import (
    check_grouped,
    is_aggregate,
    refuse_aggregates,
    refuse_ranks,
    refuse_window_columns,
)
from towpath.lang.inputs import FromReader
from towpath.lang.joins import check_tied
from towpath.lang.literals import cast
from towpath.lang.lookups import Tables
from towpath.lang.outputs import OutputColumn, check_names, read_group_by, read_outputs, visible_in_having
from towpath.lang.query import Item, Select, Top
from towpath.lang.refusals import refuse_clauses
from towpath.lang.scope import Scope, ScopedInput
from towpath.lang.top import read_top
from towpath.lang.typing import Unknown, outside
from towpath.lang.underline import Problems
from towpath.lang.views import Views, WithName
from towpath.lang.windows import AGGREGATE, FIRST_ROWS, PLAIN, read_windows
from towpath.schema import DecimalType, Type


class SelectReader:
    """Reads a SELECT, noting every mistake. A derived table is read by a reader of its own, and flattened."""

    def __init__(
        self,
        views: Views,
        problems: Problems,
        budget: Budget,
        named: Mapping[str, WithName] | None = None,
        *,
        is_first: bool = True,
    ) -> None:
        self._views = views
        self._problems = problems
        self._budget = budget
        self._named = named or {}  # by WITH, in lower case
        self._is_first = is_first  # of a union: the names of its output columns count

    def read(self, raw: exp.Select) -> Select | None:
        """The checked SELECT, or None if it had mistakes."""
        before = len(self._problems)
        order = " order" if raw.args.get("limit") or raw.args.get("qualify") else ""
        refuse_clauses(raw, f"expressions from_ joins where group having with_ qualify limit{order}", self._problems)
        named = read_names(raw, self, self._problems)
        sources, conditions = FromReader(self._views, self._problems, named, self.inner).read(raw)
        if not sources:
            return None
        select = self._select(raw, sources, conditions, sound=len(self._problems) == before)
        return select if len(self._problems) == before else None

    @property
    def named(self) -> Mapping[str, WithName]:
        return self._named

    def inner(self, named: Mapping[str, WithName]) -> SelectReader:
        """For what stands in parentheses in FROM, and behind a name of WITH."""
        return SelectReader(self._views, self._problems, self._budget, named)

    def apart(self, named: Mapping[str, WithName]) -> SelectReader:
        """For what is no part of the query: the views in it are not the query's."""
        return SelectReader(self._views.copy(), self._problems, self._budget, named)

    def _select(
        self, raw: exp.Select, sources: list[ScopedInput], conditions: list[exp.Expr], sound: bool
    ) -> Select | None:
        problems = self._problems
        scope = Scope(sources, self._views.known, problems, self._budget)
        where = [c for on in [*conditions, _clause(raw, "where")] for c in scope.condition(on)]
        outputs = read_outputs(raw, scope, problems)
        group_by = read_group_by(raw, outputs, scope, problems)
        having = scope.condition(_clause(raw, "having"), visible_in_having(outputs, group_by, scope))
        top = read_top(raw, outputs, scope, problems)
        values = [*(o.expr for o in outputs), *(top.expressions if top else ())]
        aggregate = bool(raw.args.get("group") or raw.args.get("having")) or is_aggregate(values)
        ranks = bool(raw.args.get("qualify") or raw.args.get("limit"))
        unsure = not aggregate and (is_aggregate(where) or any(v.find(Unknown) for v in values))

        tables = Tables(scope, self._views.known, problems)
        before = len(problems)
        streams, left = tables.attach(sources, where) if sound else ([s for s in sources if not s.is_table], where)
        if not streams:
            return None
        sound = sound and len(problems) == before
        kind = "" if unsure else AGGREGATE if aggregate else FIRST_ROWS if ranks else PLAIN
        inputs, window = read_windows(streams, kind, problems)
        self._check_width(raw, values, group_by, having)
        conditions_of_all = [*where, *tables.outer]
        self._check_places(kind, conditions_of_all, outputs, group_by, having, top)
        items = self._typed(scope, conditions_of_all, outputs, group_by, having)
        for expr in top.expressions if top else ():
            scope.typer.of(expr)
        items = tuple(replace(item, expr=tables.resolved(item.expr)) for item in items)
        group_by, having = list(map(tables.resolved, group_by)), list(map(tables.resolved, having))
        top = replace(top.mapped(tables.resolved), of_tuples=not aggregate) if top else None
        if sound:
            check_tied(streams, left, Scope(streams, self._views.known, problems, self._budget).column_type, problems)
        where = [c.copy() for s in streams for c in s.where] + left
        looked_up = [value for i in inputs for table in i.lookups for value, _ in table.keys]
        select = Select(inputs, tuple(where), items, window, tuple(group_by), tuple(having), top)
        self._check_closed([*where, *looked_up, *select.above])
        return select

    def _check_width(
        self,
        raw: exp.Select,
        values: list[exp.Expression],
        group_by: list[exp.Expression],
        having: list[exp.Expression],
    ) -> None:
        calls = {call for value in (*values, *having) for call in value.find_all(*AGGREGATE_NODES)}
        counts = {
            "computed columns": sum(not isinstance(units_of(value), exp.Column) for value in values),
            "GROUP BY expressions": len(group_by),
            "aggregates": len(calls),
        }
        for what, count in counts.items():
            if count > MOST_WIDE:
                message = f"{count:,} {what}, at most {MOST_WIDE} are allowed in a SELECT"
                self._problems.add(raw, message, "split it into several queries")

    def _check_places(
        self,
        kind: str,
        where: list[exp.Expression],
        outputs: list[OutputColumn],
        group_by: list[exp.Expression],
        having: list[exp.Expression],
        top: Top | None,
    ) -> None:
        problems = self._problems
        if self._is_first:
            check_names(outputs, problems)
        refuse_aggregates(where, "WHERE", problems)
        refuse_aggregates(group_by, "GROUP BY", problems)
        refuse_window_columns(where, "in WHERE", problems)
        refuse_window_columns(group_by, "in an expression of GROUP BY", problems)
        values = [*(o.expr for o in outputs), *(top.expressions if top else ())]
        if kind != AGGREGATE:
            if kind != FIRST_ROWS:
                refuse_window_columns(values, "without an aggregate", problems)
            return
        keys = frozenset(group_by)
        refuse_ranks(having, "HAVING", problems)
        for value in [*values, *having]:
            check_grouped(value, keys, problems)

    def _typed(
        self,
        scope: Scope,
        where: list[exp.Expression],
        outputs: list[OutputColumn],
        group_by: list[exp.Expression],
        having: list[exp.Expression],
    ) -> tuple[Item, ...]:
        for name, conditions in (("WHERE", where), ("HAVING", having)):
            for condition in conditions:
                scope.typer.expect(condition, BOOLEAN, name)
        for key in group_by:
            scope.typer.of(key)
        types = [scope.typer.of(o.expr) for o in outputs]
        of = scope.typer.of
        return tuple(
            _item(o.name, o.expr, t, of(units_of(o.expr))) for o, t in zip(outputs, types, strict=True) if t is not None
        )

    def _check_closed(self, expressions: Iterable[exp.Expression]) -> None:
        """Later layers rely on it: no other nodes than those of `typing.ALLOWED`."""
        if len(self._problems):
            return
        for node in filter(None, map(outside, expressions)):
            self._problems.add(node, f"{self._problems.text(node)} is not supported")


def _item(name: str, expr: exp.Expression, kind: Type | DecimalType, units_type: Type | DecimalType | None) -> Item:
    """An output column; of a decimal it has the units."""
    if not isinstance(kind, DecimalType):
        return Item(name, expr, kind)
    units = expr.this if units_type is Type.BIGINT else cast(expr.this, Type.BIGINT)
    return Item(name, units, Type.BIGINT, kind.scale)


def read_names(raw: exp.Expr, reader: SelectReader, problems: Problems) -> Mapping[str, WithName]:
    """What names stand for in a SELECT, or a union of them: those of its WITH go before those from outside."""
    known, clause = dict(reader.named), raw.args.get("with_")
    if clause is None:
        return known
    if clause.args.get("recursive"):
        problems.add(clause, "WITH RECURSIVE is not supported: a view cannot read itself")
    refuse_clauses(clause, "expressions recursive", problems)
    seen: dict[str, exp.CTE] = {}
    for node in clause.expressions:
        name = node.alias.lower()
        if name in seen:
            problems.add(node.args["alias"], f"WITH says twice what {node.alias} is", "give one of them another name")
        seen[name] = node
        known[name] = WithName(node, dict(known))
    tables = [table.name.lower() for table in raw.find_all(exp.Table)]
    for name, node in seen.items():
        if name not in tables and isinstance(node.this, exp.Select):
            reader.apart(known[name].known).read(node.this)  # what nobody reads is checked, too
    return known


def _clause(raw: exp.Select, name: str) -> exp.Expr | None:
    clause = raw.args.get(name)
    return clause.this if clause else None
